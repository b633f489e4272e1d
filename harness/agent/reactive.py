"""Calls as reactivex Observables; the only module that imports reactivex."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Protocol

import reactivex
from reactivex import Observable
from reactivex.abc import DisposableBase, ObserverBase, SchedulerBase
from reactivex.disposable import Disposable

from harness.agent.stream import StreamEvent

__all__ = ["Watched", "observable_of"]

log = logging.getLogger("harness.agent")


class Watched(Protocol):
    """What a subscription needs of a call."""

    session_id: str
    subscribers: int

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        ...

    def event_at(self, position: int) -> StreamEvent | None:
        """The event at a position, counted from 0; None where it has not come yet."""
        ...

    def start(self) -> None:
        """Begin, if it has not begun."""
        ...

    def listen(self, wake: Callable[[], object]) -> Callable[[], None]:
        """Call `wake` when there is news; returns what ends it."""
        ...

    def exception(self) -> BaseException | None:
        """The error it ended in, or None."""
        ...

    def stop_if_unwatched(self) -> None:
        """Stop it if nobody waits for it."""
        ...


def observable_of(call: Watched) -> Observable[StreamEvent]:
    """A cold Observable of the call's events that replays from the first to every subscriber.

    Events are pushed from the thread of the loop that runs the call. Disposing of the last
    consumer's subscription stops the call; a subscriber that raises does not, whatever it is.
    """

    def subscribe(observer: ObserverBase[StreamEvent], _scheduler: SchedulerBase | None = None) -> DisposableBase:
        return Disposable(_Subscription(call, observer).begin())

    return reactivex.create(subscribe)


class _Subscription:
    def __init__(self, call: Watched, observer: ObserverBase[StreamEvent]) -> None:
        self._call = call
        self._observer = observer
        self._position = 0
        self._over = False
        self._lock = threading.RLock()
        self._stop: Callable[[], None] = lambda: None

    def begin(self) -> Callable[[], None]:
        self._call.subscribers += 1
        self._stop = self._call.listen(self._pump)
        self._call.start()
        self._pump()
        return self._dispose

    def _pump(self) -> None:
        with self._lock:
            while not self._over and (event := self._call.event_at(self._position)) is not None:
                self._position += 1
                self._push(event)
            if not self._over and self._call.done and self._call.event_at(self._position) is None:
                self._end()

    def _push(self, event: StreamEvent) -> None:
        try:
            self._observer.on_next(event)
        # One subscriber's fault must not stop the call the others follow; a cancellation raised here is no task's.
        except BaseException as error:
            log.exception("a subscriber of session %r failed; it gets no more events", self._call.session_id)
            self._leave()
            if not isinstance(error, Exception | asyncio.CancelledError):
                raise  # to whoever subscribes, or to the call's `Listeners`, which end nothing for it

    def _end(self) -> None:
        self._leave()
        error = self._call.exception()
        if error is None:
            self._observer.on_completed()
        elif isinstance(error, Exception):
            self._observer.on_error(error)

    def _leave(self) -> None:
        self._over = True
        self._stop()
        self._call.subscribers -= 1

    def _dispose(self) -> None:
        with self._lock:
            if self._over:
                return
            self._leave()
        self._call.stop_if_unwatched()
