"""One call at a time on a session, first come, first served, for the whole process.

The gate belongs to the process, not to an agent object or an event loop: two agents, or two loops
in two threads, that serve the same session queue up together. It costs no thread; who waits looks
now and then whether the call inside was lost, since nobody is left to wake others when its loop is
closed. Other processes are kept out by the writer lock behind it.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from harness.agent.listeners import soon_on
from harness.errors import SessionBusy

__all__ = ["MAX_WAITERS", "WAIT_SECONDS", "Gate", "SessionPlace", "process_gate"]

MAX_WAITERS = 16
WAIT_SECONDS = 30.0
_LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class SessionPlace:
    """Which session, on which disk: the sessions folder as text, and the session's id."""

    folder: str
    session_id: str


class _Visit:
    """One passage through the gate: waiting first, perhaps, and then inside."""

    def __init__(self, holder: Any) -> None:
        self.holder = holder
        self.loop = asyncio.get_running_loop()
        self.woken = asyncio.Event()
        self.granted = False

    @property
    def lost(self) -> bool:
        """Whether nothing can run it any more."""
        return self.loop.is_closed()

    def grant(self) -> bool:
        """Hand the session over; False if this visitor's loop is gone."""
        self.granted = soon_on(self.loop, self.woken.set)
        return self.granted


class _Queue:
    def __init__(self, inside: _Visit) -> None:
        self.inside = inside
        self.waiting: deque[_Visit] = deque()


class Gate:
    """Who holds which session, and who waits for it. All methods are safe from any thread."""

    def __init__(self, max_waiters: int = MAX_WAITERS) -> None:
        self._lock = threading.Lock()
        self._queues: dict[SessionPlace, _Queue] = {}
        self._max_waiters = max_waiters
        self._visits: ContextVar[frozenset[_Visit]] = ContextVar("harness_session_visits", default=frozenset())

    def forget_all(self) -> None:
        """Begin anew, in a forked child."""
        self._lock = threading.Lock()
        self._queues = {}

    def holder(self, place: SessionPlace) -> Any:
        """What the call in progress on this session gave as its holder, or None."""
        with self._lock:
            queue = self._queues.get(place)
            return queue.inside.holder if queue else None

    def held_below(self, folder: str) -> list[SessionPlace]:
        """The sessions below a folder that a call holds."""
        with self._lock:
            held = [place for place, queue in self._queues.items() if not queue.inside.lost]
        return [place for place in held if place.folder.startswith(f"{folder}/")]

    @asynccontextmanager
    async def hold(self, place: SessionPlace, holder: Any, timeout: float = WAIT_SECONDS) -> AsyncIterator[None]:
        """Wait for the session, at most `timeout` seconds, and hold it for the block.

        Raises `SessionBusy` when the wait is over, when too many wait already, and at once for a
        call from inside a call on the same session, which could only wait for itself. What a call
        has left behind (a task, a thread) may come in when the call has ended.
        """
        visit = _Visit(holder)
        if self._enter(place, visit):
            await self._wait(place, visit, timeout)
        token = self._visits.set(self._visits.get() | {visit})
        try:
            yield
        finally:
            self._leave(place, visit)
            if not visit.lost:  # what is left of a lost call is ended in a foreign context, which has nothing to reset
                self._visits.reset(token)

    def _enter(self, place: SessionPlace, visit: _Visit) -> bool:
        """Step inside, or into the queue; whether there is something to wait for."""
        with self._lock:
            self._pass_by_lost(place)
            queue = self._queues.get(place)
            if queue is None:
                self._queues[place] = _Queue(visit)
                return False
            if queue.inside in self._visits.get():
                raise SessionBusy(
                    f"session {place.session_id!r} is held by the call this one was made from; "
                    "call another session, or let the first call end"
                )
            if len(queue.waiting) >= self._max_waiters:
                raise SessionBusy(
                    f"session {place.session_id!r} has a call in progress and {len(queue.waiting)} waiting; "
                    "try again later"
                )
            queue.waiting.append(visit)
            return True

    async def _wait(self, place: SessionPlace, visit: _Visit, timeout: float) -> None:
        try:
            async with asyncio.timeout(timeout):
                while not visit.woken.is_set():
                    with suppress(TimeoutError):
                        await asyncio.wait_for(visit.woken.wait(), _LOOK_SECONDS)
                    with self._lock:
                        self._pass_by_lost(place)
        except BaseException as error:
            self._give_up(place, visit)
            if not isinstance(error, TimeoutError):
                raise
            raise SessionBusy(
                f"session {place.session_id!r} was still held by another call after {timeout:g} s; "
                "try again later, or stop that call with agent.running(ctx).cancel()"
            ) from None

    def _give_up(self, place: SessionPlace, visit: _Visit) -> None:
        """Leave the queue; a session that was handed over in the same moment is passed on."""
        with self._lock:
            queue = self._queues.get(place)
            if queue and not visit.granted:
                queue.waiting.remove(visit)
        if visit.granted:
            self._leave(place, visit)

    def _leave(self, place: SessionPlace, visit: _Visit) -> None:
        with self._lock:
            queue = self._queues.get(place)
            # Otherwise it was held before a fork, by the parent, or was lost, and somebody else is inside.
            if queue is not None and queue.inside is visit:
                self._pass_on(place, queue)

    def _pass_by_lost(self, place: SessionPlace) -> None:
        """Let the next one in where the event loop of the call inside was closed; the lock is held."""
        queue = self._queues.get(place)
        if queue is not None and queue.inside.lost:
            self._pass_on(place, queue)

    def _pass_on(self, place: SessionPlace, queue: _Queue) -> None:
        while queue.waiting:
            queue.inside = queue.waiting.popleft()
            if queue.inside.grant():
                return
        del self._queues[place]


_process_gate = Gate()
# A forked child has none of the calls that held or waited for sessions in its parent.
os.register_at_fork(after_in_child=_process_gate.forget_all)


def process_gate() -> Gate:
    """The one gate of this process."""
    return _process_gate
