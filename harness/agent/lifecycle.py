"""What an agent has going on: its calls, and its work behind the reply. `aclose` waits for both."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable
from concurrent.futures import Future

from harness.agent.call import Call
from harness.agent.listeners import soon_on
from harness.errors import AgentClosed

__all__ = ["BackgroundWork", "Lifecycle"]

log = logging.getLogger("harness.agent")

_MAX_BACKLOG = 256
_MAX_IN_LANE = 32
"""One tenant that talks faster than its memory can be kept takes no place of the others."""
_SECONDS_BETWEEN_LINES = 60.0
_ROUNDS = 3
_SECONDS_TO_STOP = 5.0


class BackgroundWork:
    """Work that must not delay a reply. It runs on the loop of the call that asked for it.

    Bounded: when `_MAX_BACKLOG` pieces wait, or `_MAX_IN_LANE` of one lane, a new one is refused. The
    log says so, though not more than once a minute: then with how many were refused.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tasks: dict[asyncio.Task[None], Future[None]] = {}
        self._lanes: dict[Hashable, tuple[asyncio.Task[None], Future[None]]] = {}
        self._lane_of: dict[asyncio.Task[None], Hashable] = {}
        self._refusals = _Refusals()

    def start(self, name: str, work: Callable[[], Awaitable[None]], *, lane: Hashable = None) -> bool:
        """Run `work` soon; what it raises is logged. False if the backlog is full.

        Work of one lane is done piece after piece, in the order of its start.
        """
        with self._lock:
            if self._is_full(lane):
                self._refusals.add(name, len(self._tasks))
                return False
            before = self._before(lane)
            task = asyncio.get_running_loop().create_task(self._guarded(name, work, before), name=name)
            ended = self._tasks[task] = Future()
            if lane is not None:
                self._lanes[lane] = task, ended
                self._lane_of[task] = lane
        task.add_done_callback(self._forget)
        return True

    def _is_full(self, lane: Hashable) -> bool:
        in_lane = 0 if lane is None else sum(other == lane for other in self._lane_of.values())
        return len(self._tasks) >= _MAX_BACKLOG or in_lane >= _MAX_IN_LANE

    def _before(self, lane: Hashable) -> Future[None] | None:
        """The end of the work that goes before in this lane; work on a loop that was closed never ends."""
        self._lanes = {key: found for key, found in self._lanes.items() if not found[1].done()}
        task, ended = self._lanes.get(lane, (None, None))
        return None if task is None or task.get_loop().is_closed() else ended

    @staticmethod
    async def _guarded(name: str, work: Callable[[], Awaitable[None]], before: Future[None] | None) -> None:
        if before is not None:
            await asyncio.shield(asyncio.wrap_future(before))  # a cancelled wait must not cancel what is waited for
        try:
            await work()
        except Exception:
            log.exception("%s failed; the conversation is not affected", name)

    def _forget(self, task: asyncio.Task[None]) -> None:
        with self._lock:
            ended = self._tasks.pop(task)
            self._lane_of.pop(task, None)
        ended.set_result(None)

    def pending(self) -> dict[asyncio.Task[None], Future[None]]:
        """The work that has not ended, and for each what tells its end; it may be on any loop."""
        with self._lock:
            gone = [task for task in self._tasks if task.get_loop().is_closed()]
            for task in gone:  # asyncio.run ends what a loop still has; a loop closed by hand does not
                log.warning("%s was lost: its event loop was closed", task.get_name())
                del self._tasks[task]
                self._lane_of.pop(task, None)
            return dict(self._tasks)

    async def lane_ends(self, lane: Hashable, timeout: float) -> bool:
        """Wait for the work of one lane, at most `timeout` seconds; whether it has ended."""
        pending = self.pending()
        with self._lock:
            ends = [ended for task, ended in pending.items() if self._lane_of.get(task) == lane]
        await _end(ends, timeout)
        return all(ended.done() for ended in ends)

    def tell_refusals(self) -> None:
        """Log what was refused and not told yet; when the agent closes."""
        with self._lock:
            self._refusals.tell()


class _Refusals:
    """How much work was refused, told in a line now and then; a service at its limit refuses hundreds."""

    def __init__(self) -> None:
        self._untold = 0
        self._told_at = float("-inf")
        self._last = ""
        self._waiting = 0

    def add(self, name: str, waiting: int) -> None:
        """One more, of this name, while so many pieces waited."""
        self._untold, self._last, self._waiting = self._untold + 1, name, waiting
        if time.monotonic() - self._told_at >= _SECONDS_BETWEEN_LINES:
            self.tell()

    def tell(self) -> None:
        """Log what was not told yet."""
        if self._untold:
            others = f", and {self._untold - 1} other pieces of work before it" if self._untold > 1 else ""
            text = (
                "%s was left out%s: %d wait already, of %d at most and %d of one tenant; conversations are not affected"
            )
            log.warning(text, self._last, others, self._waiting, _MAX_BACKLOG, _MAX_IN_LANE)
        self._untold, self._told_at = 0, time.monotonic()


class Lifecycle:
    """The calls in progress of one agent, and whether it takes new ones. Safe from any thread."""

    def __init__(self) -> None:
        self.background = BackgroundWork()
        self._lock = threading.Lock()
        self._calls: dict[Call, Future[None]] = {}
        self._closed = False

    def enter(self, call: Call) -> None:
        """A call begins. Raises `AgentClosed` when the agent takes no more."""
        with self._lock:
            self.check_open()
            self._calls[call] = Future()

    def leave(self, call: Call) -> None:
        """A call has ended, and everything it had to store is stored."""
        with self._lock:
            ended = self._calls.pop(call, None)
        if ended is not None:
            ended.set_result(None)

    def check_open(self) -> None:
        """Raise `AgentClosed` where the agent takes no new calls."""
        if self._closed:
            raise AgentClosed("the agent has been closed; build another one to go on")

    async def drain(self, timeout: float) -> None:
        """Refuse new calls, wait for the running ones, stop what takes longer, then finish background work."""
        with self._lock:
            self._closed = True
        await _end(self._running().values(), timeout)
        # A hook that is told of the end may wait for ever too; each round stops one.
        for _ in range(_ROUNDS):
            for call in self._running():
                log.warning("stopping the call on session %r: the agent is closing", call.session_id)
                call.cancel()
            await _end(self._running().values(), max(timeout, _SECONDS_TO_STOP))
        for call in self._running():
            log.error("the call on session %r does not stop; it is left behind", call.session_id)
        await self._background_ends(timeout)
        self.background.tell_refusals()

    def _running(self) -> dict[Call, Future[None]]:
        with self._lock:
            return {call: ended for call, ended in self._calls.items() if not call.lost}

    async def _background_ends(self, timeout: float) -> None:
        await _end(self.background.pending().values(), timeout)
        for task in self.background.pending():
            log.warning("%s was stopped: the agent is closing", task.get_name())
            soon_on(task.get_loop(), task.cancel)
        await _end(self.background.pending().values(), max(timeout, _SECONDS_TO_STOP))


async def _end(ends: Iterable[Future[None]], timeout: float) -> None:
    """Wait until all have ended, at most `timeout` seconds; they may be on other loops."""
    waiting = [asyncio.wrap_future(ended) for ended in ends]
    if waiting:
        await asyncio.wait(waiting, timeout=timeout)
