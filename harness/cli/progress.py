"""Bars for work that takes long: on standard error, and only where a person looks at it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from harness.transcripts.telling import Tell

__all__ = ["progress", "share_of"]


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
    """Show a bar while the block runs; the function it gives says how much of it is done, and of how much.

    It may be called from any thread.
    """
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(label, total=total)
        yield lambda done, whole: bars.update(task, completed=done, total=whole or None)
