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
import weakref
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

__all__ = ["run", "run_alone"]

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


async def run_alone(whose: Hashable, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """The same for work that may take long, as a search does: of one `whose` one piece at a time in each event loop.

    A tenant who asks for many at once waits for himself, and the other threads are left to the others.
    """
    async with _turn_of(whose):
        return await run(fn, *args, **kwargs)


_Turns = weakref.WeakValueDictionary[Hashable, asyncio.Lock]
_turns: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Turns] = weakref.WeakKeyDictionary()


def _turn_of(whose: Hashable) -> asyncio.Lock:
    """The lock that those who wait in this loop share; it is forgotten with the last of them."""
    turns = _turns.setdefault(asyncio.get_running_loop(), _Turns())
    return turns.setdefault(whose, asyncio.Lock())


async def _outlast(future: asyncio.Future[T]) -> None:
    """Wait for work whose caller was cancelled, through any number of further cancellations."""
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError:
            continue
    if not future.cancelled() and (error := future.exception()):
        _log.warning("file work of a cancelled caller failed: %s", error, exc_info=error)
