"""Bars for work that takes long: on standard error, and only where a person looks at it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from harness.filesystem import disk, pool
from harness.transcripts.telling import Noticeboard, Tell

__all__ = ["progress", "share_of", "watched"]

_PAUSE = 0.1


@contextmanager
def progress(label: str, total: int | None = None) -> Iterator[Callable[[], None]]:
    """Show a bar while the block runs; the function it gives counts one of `total` as done.

    Without a total the bar only says that there is work. `label` is a word of ours, never data.
    """
    done = 0

    def advance() -> None:
        nonlocal done
        done += 1
        tell(done, total or 0)

    with share_of(label, total) as tell:
        yield advance


@contextmanager
def share_of(label: str, total: int | None = None) -> Iterator[Tell]:
    """Show a bar while the block runs; the function it gives says how much of it is done, and of how much."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(label, total=total)
        yield lambda done, whole: bars.update(task, completed=done, total=whole or None)


@asynccontextmanager
async def watched(label: str) -> AsyncIterator[Tell | None]:
    """`share_of` for work in a worker process: gives what to send there, None where nobody looks at a bar."""
    if not sys.stderr.isatty():
        yield None
        return
    with disk.temporary_folder() as folder, share_of(label) as tell:
        board = Noticeboard(folder / "done")
        watcher = asyncio.create_task(_watch(board, tell))
        try:
            yield board
        finally:
            watcher.cancel()
            await asyncio.wait([watcher])


async def _watch(board: Noticeboard, tell: Tell) -> None:
    while True:
        found = await pool.run(board.look)
        if found is not None:
            tell(*found)
        await asyncio.sleep(_PAUSE)
