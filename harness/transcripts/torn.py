"""What can still be read of a line that is damaged."""

from __future__ import annotations

import re

from orjson import loads

__all__ = ["members_of"]

_MOST = 4 * 1024
_MEMBER = re.compile(rb'\s*("\w{1,40}")\s*:\s*(null|"(?:[^"\\]|\\.)*"|-?[\w.+-]{1,40})\s*,')


def members_of(raw: bytes) -> dict[str, str | None]:
    """The texts, and what is null, that an object begins with in front of its first list, object, or damage."""
    found: dict[str, str | None] = {}
    told = raw[:_MOST].lstrip(b"\0 \t\r")
    at = 1 if told.startswith(b"{") else len(told)
    while (member := _MEMBER.match(told, at)) is not None:
        try:
            key, value = loads(member[1]), loads(member[2])
        except ValueError:
            return found
        if value is None or isinstance(value, str):
            found[key] = value
        at = member.end()
    return found
