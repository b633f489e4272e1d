r"""The JSON of track 1: one object a file, or one object a line.

Bytes in and out, no disk. A line ends in the byte `\n` and in nothing else; a line that is no JSON
object is damage, an empty one is not.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from harness.state import State
from harness.text import clean, dumps, loads, read_json

__all__ = ["Lines", "decode", "decode_lines", "encode", "encode_lines"]

_log = logging.getLogger("harness.sessions")


class Lines(NamedTuple):
    """What was found in the bytes of a list."""

    items: list[State]
    damaged: tuple[int, ...]
    """Numbers, from 1, of the finished lines that nobody can read."""
    fragment: bytes
    """A last line without its newline that nobody can read; empty if there is none."""
    open_end: bool
    """Whether the last item is whole but for its newline."""


def encode(value: State, what: str) -> bytes:
    """The stored form of a single value, after the text edge; `what` names it in the log."""
    cleaned, marks = clean(value)
    if marks:
        _log.warning("%s was changed to be stored: %s", what, ", ".join(marks))
    return dumps(cleaned)


def encode_lines(items: Sequence[State]) -> list[bytes]:
    """The stored forms of list items, a line each without its newline.

    Items passed the text edge when they became messages; one that did not passes it here.
    """
    try:
        return [*map(dumps, items)]
    except TypeError:
        return [_line(item) for item in items]


def decode(raw: bytes) -> State | None:
    """The object in these bytes; None for anything else, such as two objects or half of one."""
    try:
        value = loads(raw)
    except ValueError:
        value = _foreign(raw)
    return value if isinstance(value, dict) else None


def decode_lines(raw: bytes) -> Lines:
    """Every item that can be read, and what could not."""
    *finished, last = raw.split(b"\n")
    items: list[State] = []
    damaged = []
    for number, line in enumerate(finished, start=1):
        if (item := decode(line)) is not None:
            items.append(item)
        elif line.strip():
            damaged.append(number)
    final = decode(last) if last.strip() else None
    if final is not None:
        items.append(final)
    fragment = last if final is None and last.strip() else b""
    return Lines(items, tuple(damaged), fragment, final is not None)


def _line(item: State) -> bytes:
    try:
        return dumps(item)
    except TypeError:
        return encode(item, "a list item")


def _foreign(raw: bytes) -> object:
    """What another program wrote, after the text edge."""
    if not raw.strip():
        return None
    try:
        return clean(read_json(raw)).value
    except ValueError:
        return None
