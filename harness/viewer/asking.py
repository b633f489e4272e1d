"""Asking the service who may see what, at every request.

A function of the service that is not async may look something up, and hang at it. It has threads of its own here,
neither the service's nor those in which sessions are read, so that who waits for it keeps nobody else waiting.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request

from harness.errors import ConfigError
from harness.hooks.uninterrupted import handed_on, is_the_end_of
from harness.text import said
from harness.tools.threads import run_in_own_thread

__all__ = ["AnswerRefused", "Asked"]

_AT_ONCE = 100
"""Threads in which a function may be at work: one that hangs keeps its own until it ends."""
_PATIENCE = 10.0
"""Seconds that a visitor waits for it."""
_log = logging.getLogger("harness.viewer")

R = TypeVar("R")
T = TypeVar("T")


class AnswerRefused(ConfigError):
    """A function of the service gave, or raised, something that says nothing about who asks."""


class Asked(Generic[T]):
    """A function of the service, for any number of requests at a time.

    what    what a log calls it
    kind    what it has to give, if not None
    """

    def __init__(self, what: str, function: Callable[[Request], Awaitable[T | None] | T | None], kind: type[T]) -> None:
        self._what = what
        self._function = function
        self._kind = kind
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def __call__(self, request: Request) -> T | None:
        """What it says to a request. Raises a 503 where it takes too long, `AnswerRefused` for what is no answer."""
        found = await self._guarded(self._answer(request))
        if found is None or isinstance(found, self._kind):
            return found
        wanted = f"return a {self._kind.__name__}, or None for who may see nothing"
        raise AnswerRefused(f"{self._what} ({self._name}) gave {_named(found)}; {wanted}")

    async def _answer(self, request: Request) -> T | None:
        found = self._function(request) if self._is_async else await self._in_thread(request)
        return await found if inspect.isawaitable(found) else found

    async def _guarded(self, work: Awaitable[R]) -> R:
        """What would end the process, or says that the request is over, does neither where the function raises it.

        Asked within the task that waits for the function: a task that ends with a `SystemExit` ends its loop.
        """
        task = asyncio.current_task()
        try:
            return await work
        except Exception:
            raise
        except BaseException as error:
            if is_the_end_of(task, error):
                raise
            handed_on(error)
            wanted = f"raise an Exception, or return a {self._kind.__name__}, or None for who may see nothing"
            raise AnswerRefused(f"{self._what} ({self._name}) raised {said(error)}; {wanted}") from error

    async def _in_thread(self, request: Request) -> Awaitable[T | None] | T | None:
        try:
            async with asyncio.timeout(_PATIENCE) as patience:
                await self._places.acquire()
                work = asyncio.ensure_future(self._guarded(run_in_own_thread(self._what, self._function, request)))
                work.add_done_callback(lambda _: self._places.release())
                return await asyncio.shield(work)
        except TimeoutError as error:
            if not patience.expired():
                raise  # its own
            text = "%s (%s) did not answer within %g s; its visitors get a 503: give it a time-out of its own"
            _log.error(text, self._what, self._name, _PATIENCE)
            raise HTTPException(503) from error

    @property
    def _name(self) -> str:
        return str(getattr(self._function, "__qualname__", type(self._function).__qualname__))


def _named(found: object) -> str:
    """What it is, and nothing of what is in it."""
    if isinstance(found, (bool, type)):
        return str(found)
    return f"something of the type {type(found).__name__}"
