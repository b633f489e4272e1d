"""The threads in which file work runs.

A pool of our own, so that slow disks never take the threads that `asyncio.to_thread` gives to others.
Tools and hooks of users have threads of their own (`harness.tools.threads`). No work that waits for a
lock of a call belongs here: a full pool of waiters stops everyone.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

__all__ = ["run"]

_THREADS = 6
_log = logging.getLogger("harness.filesystem")

P = ParamSpec("P")
T = TypeVar("T")


class _Pool:
    """The executor of this process, made at first use and forgotten in forked children."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None

    def executor(self) -> ThreadPoolExecutor:
        if self._executor is None:
            with self._lock:
                if self._executor is None:
                    self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="harness-files")
        return self._executor

    def forget(self) -> None:
        # Threads do not survive a fork, and the lock may have been held by one of them.
        self._lock = threading.Lock()
        self._executor = None


_pool = _Pool()
os.register_at_fork(after_in_child=_pool.forget)


async def run(fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking file work off the event loop and return what it returns or raise what it raises.

    The caller's context variables are visible inside. A cancelled caller still waits until the work
    has ended, so that no write goes on behind its back; then the cancellation is raised again and an
    error of the work is logged. Works from any event loop.
    """
    work = functools.partial(contextvars.copy_context().run, functools.partial(fn, *args, **kwargs))
    future = asyncio.get_running_loop().run_in_executor(_pool.executor(), work)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await _outlast(future)
        raise


async def _outlast(future: asyncio.Future[T]) -> None:
    """Wait for work whose caller was cancelled, through any number of further cancellations."""
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError:
            continue
    if not future.cancelled() and (error := future.exception()):
        _log.warning("file work of a cancelled caller failed: %s", error, exc_info=error)
