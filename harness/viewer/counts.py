"""Sessions gone through as a whole: once for all who ask at the same time, and not again while they stay as they are.

What is asked for is kept as the bytes that a worker packed: they are small, their size is known, and who gets
something out of them can change nothing for the next one.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Count", "Counts"]

_KEPT = 32 * 1024 * 1024
"""Bytes that are kept of all sessions together. One that has more by itself is worked out each time."""

_Name: TypeAlias = tuple[Hashable, Hashable]
"""A place and its state."""


@dataclass(eq=False, slots=True)
class Count:
    """One that is under way: how many bytes were read, and of how many, and how many wait for it."""

    so_far: tuple[int, int] | None = None
    waiting: int = 0

    def tell(self, done: int, total: int) -> None:
        """Note how far it has come; from any thread."""
        self.so_far = done, total


class Counts:
    """Those of all visitors, on one event loop. A place is what is counted, its state what it changes with."""

    def __init__(self, kept: int = _KEPT) -> None:
        self._kept = kept
        self._size = 0
        self._found: OrderedDict[Hashable, tuple[Hashable, bytes]] = OrderedDict()
        self._running: dict[_Name, tuple[Count, asyncio.Task[bytes]]] = {}

    def so_far(self, place: Hashable) -> tuple[int, int] | None:
        """How far the newest count of a place has come; None where nobody waits for one."""
        told = [count.so_far for (where, _), (count, _) in self._running.items() if where == place]
        return told[-1] if told else None

    async def known(self, place: Hashable, state: Hashable) -> bytes | None:
        """What was found, or what one that is under way will find; None where there is neither."""
        found = self._found.get(place)
        if found is not None and found[0] == state:
            self._found.move_to_end(place)
            return found[1]
        return await self._awaited((place, state)) if (place, state) in self._running else None

    async def begun(self, place: Hashable, state: Hashable, make: Callable[[Count], Awaitable[bytes]]) -> bytes:
        """What a new one finds. Nobody may have begun it since `known` gave None."""
        count, name = Count(), (place, state)
        self._running[name] = count, asyncio.ensure_future(self._made(name, make(count)))
        return await self._awaited(name)

    async def _made(self, name: _Name, work: Awaitable[bytes]) -> bytes:
        found = await work
        self._keep(*name, found)
        return found

    async def _awaited(self, name: _Name) -> bytes:
        """The same for each who waits. With the last one who goes it is stopped."""
        count, work = self._running[name]
        count.waiting += 1
        try:
            return await asyncio.shield(work)
        finally:
            count.waiting -= 1
            if not count.waiting:
                del self._running[name]  # whoever comes now begins anew
                await _stopped(work)

    def _keep(self, place: Hashable, state: Hashable, found: bytes) -> None:
        _, old = self._found.pop(place, (None, b""))
        self._size -= len(old)
        if len(found) > self._kept:
            return
        self._found[place] = state, found
        self._size += len(found)
        while self._size > self._kept:
            _, (_, oldest) = self._found.popitem(last=False)
            self._size -= len(oldest)


async def _stopped(work: asyncio.Task[bytes]) -> None:
    work.cancel()
    await asyncio.wait((work,))
    if not work.cancelled():
        work.exception()  # who would have been told has gone
