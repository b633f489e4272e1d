"""Endings: finishing what must be finished, and telling what it is that is to end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

__all__ = ["handed_on", "is_being_cancelled", "is_the_end_of", "patiently", "shielded", "stop_all", "uninterrupted"]

T = TypeVar("T")


def is_being_cancelled() -> bool:
    """Whether it is this task that is to end, and not only something that foreign code waited for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def is_the_end_of(task: asyncio.Task[Any] | None, error: BaseException) -> bool:
    """Whether what foreign code raised is the end of the task that ran it, and not that code's own fault."""
    if isinstance(error, asyncio.CancelledError):
        return is_being_cancelled()
    return isinstance(error, GeneratorExit) and _is_being_closed(task)


def _is_being_closed(task: asyncio.Task[Any] | None) -> bool:
    """Whether a `GeneratorExit` throws away what `task` ran, for then somebody else runs, or nobody."""
    try:
        return asyncio.current_task() is not task
    except RuntimeError:  # no loop runs here
        return True


def handed_on(error: BaseException) -> None:
    """A `KeyboardInterrupt` raised by foreign code in a call is the process's, which gets it as from the keyboard.

    It gets it from the loop and not from within the call that runs there, which is then stopped as any other is.
    """
    if not isinstance(error, KeyboardInterrupt):
        return
    try:
        asyncio.get_running_loop().call_soon(_interrupt)
    except RuntimeError:
        _interrupt()


def _interrupt() -> None:
    main = threading.main_thread().ident
    if main is not None:  # it has begun
        signal.pthread_kill(main, signal.SIGINT)  # which wakes it, too, whatever it waits for


def _times_cancelled() -> int:
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end; a cancellation that comes meanwhile is raised again afterwards."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if task.cancelled():
                raise
            cancelled = error
        except Exception:  # noqa: BLE001 - as below
            break  # the task's own error: raised below, where its result is taken
    result = task.result()
    if cancelled is not None:
        raise cancelled
    return result


async def patiently(work: Coroutine[Any, Any, T], seconds: float) -> T:
    """The same for work that may never end: a cancellation leaves it so many seconds, a second one none.

    Where the task is being cancelled already, the seconds count from now on. Raises `TimeoutError` when they are
    over, or the cancellation that came meanwhile; the work is cancelled by then.
    """
    is_second = is_being_cancelled()
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    try:
        await asyncio.wait([task], timeout=seconds if is_second else None)
    except asyncio.CancelledError as error:
        cancelled = error
        if not is_second and _times_cancelled() < 2:  # two that come at once are raised as one
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([task], timeout=seconds)
    if not task.done():
        task.cancel()
        raise cancelled or TimeoutError
    result = task.result()
    if cancelled is not None:
        raise cancelled
    return result


async def shielded(work: Coroutine[Any, Any, T]) -> T:
    """The same where a user's task waits: a scope of anyio (Starlette, FastAPI) may stand around it.

    Such a scope cancels its tasks again in every turn of the event loop for as long as they wait; only
    a shield of anyio's own keeps that from making the loop run hot.
    """
    anyio = sys.modules.get("anyio")  # where nobody has loaded it there is no such scope
    shield: contextlib.AbstractContextManager[Any] = (
        contextlib.nullcontext() if anyio is None else anyio.CancelScope(shield=True)
    )
    with shield:
        return await uninterrupted(work)


async def stop_all(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel these tasks and see each to its end. A cancellation that comes meanwhile is passed on to them.

    For whoever is on the way out already, with an error that is raised afterwards.
    """
    left = {task for task in tasks if not task.done()}
    stopping = {task for task in left if not task.cancelling()}  # a second time would cut their clearing up short
    while left:
        for task in stopping:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait(left)
        left = stopping = {task for task in left if not task.done()}
