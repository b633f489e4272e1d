"""Asking a store of snapshots that anybody may have written: what it raises becomes an error of ours, and it is not
waited for without end.

A store that does not answer is not one that has nothing: nobody goes on as if its snapshot were gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from harness.errors import HarnessError, PersistenceError
from harness.sessions.snapshots.state_files import FileSession
from harness.state import Session, SessionKey, State
from harness.text import said

__all__ = ["SECONDS_TO_ANSWER", "AskedStore", "AskedTenant", "asked"]

SECONDS_TO_ANSWER = 30.0
"""How long a store may take; a call that waits for it holds its session all the while."""

T = TypeVar("T")


async def asked(session: Session, whose: str, work: Callable[[], Awaitable[T]], advice: str) -> T:
    """What comes of `work`, which asks this store; `whose`, in an error, says for whom.

    Raises `PersistenceError` that ends with the advice.
    """
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
        store = f"the store of {whose} ({type(session).__name__})"
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
        return await asked(self._session, f"session {self._key.session!r}", work, "try again when it is back")


class AskedTenant:
    """What one store has of one tenant, under the keys of these agents. Every method raises `PersistenceError`."""

    def __init__(self, session: Session, namespace: tuple[str, ...], agents: Iterable[str]) -> None:
        self._session = session
        self._namespace = namespace
        self._agents = tuple(agents)

    async def keys(self) -> list[SessionKey]:
        """The tenant's keys. What a store gives beyond them is somebody else's, and left alone."""
        found = [key for agent in self._agents for key in await self._keys_of(agent)]
        return [key for key in found if key.namespace == self._namespace and key.agent in self._agents]

    async def empty(self) -> int:
        """Remove all of it, and see that it is gone; how many keys there were."""
        keys = await self.keys()
        for key in keys:
            await AskedStore(self._session, key).delete()
        if isinstance(self._session, FileSession):
            for agent in self._agents:
                await self._session.drop(self._namespace, agent)
        if left := await self.keys():
            raise PersistenceError(
                f"the store of the user ({type(self._session).__name__}) still has {len(left)} keys after they were "
                "deleted; mend the store, then delete the user again"
            )
        return len(keys)

    async def _keys_of(self, agent: str) -> list[SessionKey]:
        advice = "delete the user again when it is back"
        return await asked(self._session, "the user", lambda: self._session.list_keys(self._namespace, agent), advice)
