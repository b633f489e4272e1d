"""Many lines parsed at once: a call of the parser for each line costs as much as a short line itself.

What comes out is what parsing each line alone gives. That is not a matter of course, for two damaged
lines can be one good value together: so a number that nobody can foresee stands between two lines, and
where it does not come back from between them the lines are parsed one by one.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

from harness.text import loads

__all__ = ["blocks_in", "values_in"]

_BLOCK = 128 * 1024
"""Bytes that are parsed at once: so many that the call counts for nothing, so few that they stay in a cache."""
_BETWEEN = secrets.randbits(62)
_COMMAS = b",%d," % _BETWEEN


def blocks_in(data: bytes) -> Iterator[bytes]:
    """Lines cut into blocks of whole lines, each without its last line end; a longer line is a block of its own."""
    at, end = 0, len(data)
    while at < end:
        cut = data.rfind(b"\n", at, at + _BLOCK)
        if cut < 0:
            cut = data.find(b"\n", at)
        if cut < 0 or end - at < _BLOCK:
            cut = end - 1 if data.endswith(b"\n") else end
        yield data[at:cut]
        at = cut + 1


def values_in(block: bytes) -> list[Any]:
    """What stands in each line; None where that is not JSON."""
    joined = block.replace(b"\n", _COMMAS)
    ends = (len(joined) - len(block)) // (len(_COMMAS) - 1)
    values: list[Any]
    try:
        values = loads(b"[%b]" % joined)
    except ValueError:
        values = []
    if len(values) == 2 * ends + 1 and values[1::2].count(_BETWEEN) == ends:
        del values[1::2]
        return values
    return [_value(line) for line in block.split(b"\n")]


def _value(line: bytes) -> Any:
    try:
        return loads(line)
    except ValueError:
        return None
