"""Where a user's blocking code runs: tools and hooks that are plain functions.

Each runs in a thread of its own and not in a pool: one that hangs holds up nobody else's, however
many hang, and none keeps the process from ending. A thread costs a fraction of a millisecond.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic, ParamSpec, TypeVar

from harness.context import current_scope
from harness.errors import NoCurrentCall
from harness.text import said

__all__ = ["run_in_own_thread"]

log = logging.getLogger("harness.tools")

P = ParamSpec("P")
T = TypeVar("T")


async def run_in_own_thread(what: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """What the function returns or raises; it sees the caller's context variables.

    A `StopIteration` or `GeneratorExit` comes as a `RuntimeError` that names it.

    A caller that is cancelled stops waiting; the function cannot be stopped and runs to its end, which
    the log then tells, with `what` ran there and for whom.
    """
    loop = asyncio.get_running_loop()
    waited: _Waited[T] = _Waited(what, _for_whom(), loop, loop.create_future())
    work = partial(contextvars.copy_context().run, partial(function, *args, **kwargs))
    threading.Thread(target=waited.run, args=(work,), name="harness-tool", daemon=True).start()
    return await waited.future


def _for_whom() -> str:
    try:
        return f" ({current_scope()})"
    except NoCurrentCall:
        return ""


@dataclass(frozen=True, slots=True)
class _Waited(Generic[T]):
    """A function in a thread, and the caller who waits for it on a loop, for as long as that lasts."""

    what: str
    for_whom: str
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[T]

    def run(self, work: Callable[[], T]) -> None:
        """Run it, in its thread, and bring what came of it to the caller."""
        bring: Callable[[], None]
        try:
            bring = partial(self._give, work())
        # Raised by an await these say that the caller itself has ended, and no future takes the first.
        except (StopIteration, GeneratorExit) as error:
            told = RuntimeError(said(error))
            told.__cause__ = error
            bring = partial(self._fail, told)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is for the caller to see
            bring = partial(self._fail, error)
        try:
            self.loop.call_soon_threadsafe(bring)
        except RuntimeError:  # the loop is closed, and the caller with it
            bring()

    def _give(self, value: T) -> None:
        if self.future.done() or self.loop.is_closed():
            log.warning("%s%s has ended, when nobody waited for it any more: its result is lost", *self._place)
        else:
            self.future.set_result(value)

    def _fail(self, error: BaseException) -> None:
        if self.future.done() or self.loop.is_closed():
            text = "%s%s has failed, when nobody waited for it any more"
            log.warning(text, *self._place, exc_info=(type(error), error, error.__traceback__))
        else:
            self.future.set_exception(error)

    @property
    def _place(self) -> tuple[str, str]:
        return self.what, self.for_whom
