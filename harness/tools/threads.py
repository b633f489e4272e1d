"""Where a user's blocking code runs: tools and hooks that are plain functions.

Each runs in a thread of its own and not in a pool: one that hangs holds up nobody else's, however
many hang, and none keeps the process from ending. A thread costs a fraction of a millisecond.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

__all__ = ["run_in_own_thread"]

P = ParamSpec("P")
T = TypeVar("T")


async def run_in_own_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """What the function returns or raises; it sees the caller's context variables.

    A caller that is cancelled stops waiting; the function cannot be stopped and runs to its end.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    work = partial(contextvars.copy_context().run, partial(function, *args, **kwargs))
    threading.Thread(target=_run, args=(work, future, loop), name="harness-tool", daemon=True).start()
    return await future


def _run(work: Callable[[], T], future: asyncio.Future[T], loop: asyncio.AbstractEventLoop) -> None:
    settle: Callable[[], None]
    try:
        settle = partial(_give, future, work())
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is for the caller to see
        settle = partial(_fail, future, error)
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits for it any more
        loop.call_soon_threadsafe(settle)


def _give(future: asyncio.Future[T], value: T) -> None:
    if not future.done():
        future.set_result(value)


def _fail(future: asyncio.Future[T], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
