"""How far the reading of a long session has come, told across processes for a person who waits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from harness.filesystem import disk
from harness.transcripts.lines import Line

__all__ = ["Noticeboard", "Tell", "told"]

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
class Noticeboard:
    """A `Tell` that can be sent to a worker process: it writes to a small file, at most ten times a second.

    `path` is a file of its own in a folder that the caller removes.
    """

    path: Path
    _next: float = 0.0

    def __call__(self, done: int, total: int) -> None:
        """Put up how much is done."""
        now = time.monotonic()
        if now >= self._next or done >= total:
            self._next = now + _PAUSE
            disk.replace(self.path, b"%d %d" % (done, total), sync=False)

    def look(self) -> tuple[int, int] | None:
        """What was put up last; None where nothing was yet. Blocking."""
        if disk.mark(self.path) is None:
            return None
        done, total = disk.read(self.path).split()
        return int(done), int(total)
