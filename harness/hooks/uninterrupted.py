"""Cancellation: finishing what must be finished, and telling whose cancellation it is."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["is_being_cancelled", "uninterrupted"]

T = TypeVar("T")


def is_being_cancelled() -> bool:
    """Whether it is this task that is to end, and not only something that foreign code waited for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


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
