"""How far the reading of a long session has come, told for a person who waits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from harness.transcripts.lines import Line

__all__ = ["Sparing", "Tell", "part_of", "told"]

Tell: TypeAlias = Callable[[int, int], None]
"""Is given how much is done, and of how much."""

_EVERY = 256
_PAUSE = 0.1


def told(lines: Iterator[Line], size: int, tell: Tell | None) -> Iterator[Line]:
    """The lines, and word of how many of `size` bytes lie behind them."""
    if tell is None:
        yield from lines
        return
    for count, line in enumerate(lines):
        if count % _EVERY == 0:
            tell(line.offset, size)
        yield line
    tell(size, size)


@dataclass(slots=True)
class Sparing:
    """Passes on what it is told at most ten times a second, and that everything is done."""

    tell: Tell
    _next: float = 0.0

    def __call__(self, done: int, total: int) -> None:
        """Tell how much is done, if it is time."""
        now = time.monotonic()
        if now >= self._next or done >= total:
            self._next = now + _PAUSE
            self.tell(done, total)


def part_of(tell: Tell, before: int, total: int) -> Tell:
    """For one piece of work among others: tells of all of them, of which `before` lie behind."""
    return lambda done, _: tell(before + done, total)
