"""The event loop of scripts: one thread, started on first use, shared by the whole process.

`.block()` and reactive subscriptions outside an event loop run their calls here, so that a call
has a loop that outlives the line that asked for it.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from harness.errors import BlockInsideLoop

__all__ = ["background_loop", "refuse_inside_loop", "running_loop", "submit"]

T = TypeVar("T")
_lock = threading.Lock()
_state: tuple[int, threading.Thread, asyncio.AbstractEventLoop] | None = None


def background_loop() -> asyncio.AbstractEventLoop:
    """The shared loop, running; a forked child gets one of its own, and one that has ended is replaced."""
    global _state  # noqa: PLW0603 - the one loop of the process
    with _lock:
        if _state is None or _state[0] != os.getpid() or not _state[1].is_alive():
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, name="harness-loop", daemon=True)
            thread.start()
            _state = (os.getpid(), thread, loop)
        return _state[2]


def submit(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Run a coroutine on the shared loop."""
    return asyncio.run_coroutine_threadsafe(work, background_loop())


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The loop this thread runs, if it runs one."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def refuse_inside_loop(what: str) -> None:
    """Raise `BlockInsideLoop` where waiting would stop the loop that must do the work."""
    if running_loop() is not None:
        raise BlockInsideLoop(f"{what} would stop the running event loop; use `await` here")
