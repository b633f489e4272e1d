"""JSON that stands in a text: the arguments of a call as one string, a body in a body, a log of records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.text import clean, dumps, is_clean, read_json

__all__ = ["changed_within", "json_in"]


def changed_within(text: str, change: Callable[[Any], Any]) -> str:
    """A text with a change to what it says as JSON, whole or line by line; as it was written where there is none.

    `change` is given a value, and gives that or another.
    """
    value = json_in(text)
    if value is not None:
        made = change(value)
        return text if made == value else dumps(made).decode()
    if "\n" not in text or not any(sign in text for sign in "{["):
        return text
    return "\n".join(_line(line, change) for line in text.split("\n"))


def _line(line: str, change: Callable[[Any], Any]) -> str:
    value = json_in(line) if line[:1] in ("{", "[") else None
    made = change(value) if value is not None else None
    return line if made == value else dumps(made).decode()


def json_in(text: str) -> dict[str, Any] | list[Any] | str | None:
    """What a text says; None where it is no JSON, or no more than a number or a word."""
    begins, ends = text.lstrip()[:1], text.rstrip()[-1:]
    if (begins, ends) not in (("{", "}"), ("[", "]"), ('"', '"')):
        return None
    try:
        found = read_json(text.encode())
    except ValueError:
        return None
    found = found if is_clean(found) else clean(found).value
    return found if isinstance(found, dict | list | str) else None
