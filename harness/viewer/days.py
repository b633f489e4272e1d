"""What was said on which day, in the time zone of the reader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import tzinfo
from typing import Any, NamedTuple

from harness.viewer.shown import day

__all__ = ["Day", "days_of"]

_SAID = frozenset({"prompt", "queued", "answer"})


class Day(NamedTuple):
    """A day with something said on it: the prompts and answers, and the tokens of its requests."""

    name: str
    messages: int
    input: int
    output: int


def days_of(moments: Iterable[Mapping[str, Any]], requests: Iterable[Mapping[str, Any]], zone: tzinfo) -> list[Day]:
    """The days of a session in their order, from the moments and requests of its overview."""
    found: dict[str, list[int]] = {}
    for moment in moments:
        if moment.get("kind") in _SAID:
            found.setdefault(day(moment.get("at"), zone), [0, 0, 0])[0] += 1
    for request in requests:
        used, sums = request.get("usage"), found.get(day(request.get("at"), zone))
        if sums is not None and isinstance(used, dict):
            sums[1] += sum(_whole(used.get(name)) for name in ("input", "cacheRead", "cacheWrite"))
            sums[2] += _whole(used.get("output"))
    named = sorted((name for name in found if name), key=lambda name: name.rpartition(" ")[2])
    return [Day(name, *found[name]) for name in named]


def _whole(number: object) -> int:
    return number if isinstance(number, int) else 0
