"""Asking a store of snapshots that anybody may have written: what it raises becomes an error of ours, and it is not
waited for without end.

A store that does not answer is not one that has nothing: nobody goes on as if its snapshot were gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from harness.errors import HarnessError, PersistenceError
from harness.sessions.snapshots.state_files import FileSession
from harness.state import Session, SessionKey, State
from harness.text import said

__all__ = ["SECONDS_TO_ANSWER", "AskedStore", "asked"]

SECONDS_TO_ANSWER = 30.0
"""How long a store may take; a call that waits for it holds its session all the while."""

T = TypeVar("T")


async def asked(session: Session, key: SessionKey, work: Callable[[], Awaitable[T]], advice: str) -> T:
    """What comes of `work`, which asks this store. Raises `PersistenceError` that ends with the advice."""
    if isinstance(session, FileSession):  # its errors are ours, and a disk is waited for
        return await work()
    limit = asyncio.timeout(SECONDS_TO_ANSWER)
    try:
        async with limit:
            return await work()
    except HarnessError:
        raise
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and _is_being_cancelled():
            raise
        words = f"it gave no answer within {SECONDS_TO_ANSWER:g} s" if limit.expired() else said(error)
        store = f"the store of session {key.session!r} ({type(session).__name__})"
        raise PersistenceError(f"{store} failed: {words}; {advice}") from error


def _is_being_cancelled() -> bool:
    """Whether it is this task that is to end, and not only something the store waited for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


class AskedStore:
    """What one store has under one key. Every method raises `PersistenceError`, and no stranger's error."""

    def __init__(self, session: Session, key: SessionKey) -> None:
        self._session = session
        self._key = key

    async def get(self, name: str) -> State | None:
        """The single value, or None."""
        value = await self._ask(lambda: self._session.get(self._key, name))
        return None if value is None else self._checked(value, dict)

    async def get_list(self, name: str) -> list[State]:
        """The list; empty if there is none."""
        return self._checked(await self._ask(lambda: self._session.get_list(self._key, name)), list)

    async def exists(self) -> bool:
        """Whether anything is there."""
        return await self._ask(lambda: self._session.exists(self._key))

    async def delete(self) -> None:
        """Remove everything."""
        await self._ask(lambda: self._session.delete(self._key))

    def _checked(self, value: T, kind: type) -> T:
        if isinstance(value, kind):
            return value
        raise PersistenceError(
            f"the store of session {self._key.session!r} ({type(self._session).__name__}) gave a "
            f"{type(value).__name__} where a {kind.__name__} is asked for; mend the store"
        )

    async def _ask(self, work: Callable[[], Awaitable[T]]) -> T:
        return await asked(self._session, self._key, work, "try again when it is back")
