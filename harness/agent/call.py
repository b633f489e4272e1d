"""`Call`: one question to the agent and everything that comes of it.

A call runs once, as one task, however many look at it. It starts with its first consumer, in the
context in which `agent.call` was written; one that nobody consumes never runs, and the log says so
when it is forgotten. Consumers are `await call`, `async for event in call`,
`call.block()` and subscriptions to `call.observable()`; each gets all events from the first, and
each gets the same reply or error.

Looking away is not stopping: leaving an `async for` early lets the call go on. It is stopped by
`cancel()`, by leaving `async with call`, by `block(timeout)` running out, and when the last consumer
was an await that got cancelled or a subscription that was disposed of.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import sys
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol, Self

from harness.agent import background
from harness.agent.checks import kind_of
from harness.agent.listeners import Listeners, soon_on
from harness.agent.stream import StreamEvent
from harness.errors import CallCancelled, CallTimeout, ConfigError
from harness.hooks.uninterrupted import shielded
from harness.ids import new_id
from harness.messages import Msg, Usage
from harness.sessions.view.pairing import in_its_place

if TYPE_CHECKING:
    from reactivex import Observable

__all__ = ["Call", "Runner"]

log = logging.getLogger("harness.agent")


class Runner(Protocol):
    """What a call runs: the turn itself. It reports through the call it is given."""

    def __call__(self, call: Call) -> Awaitable[Msg]:
        """Run the turn to its reply."""
        ...


class Call:
    """One question to the agent and everything that comes of it; made by `agent.call`, not by hand.

    Consume it in any of these ways, in several at once, and as often as you like: it runs once, from its
    first consumer on, and each gets all events from the first and the same reply or error.

        reply = await call                  # a Msg; raises what ended the call
        async for event in call: ...        # StreamEvents as they happen; leaving the loop stops nothing
        async with call: ...                # runs it, and stops it where the block is left
        reply = call.block(60)              # in a script
        call.observable().subscribe(...)    # reactivex

    While it runs: `events`, `steer` to say something to it, `cancel` to stop it. Afterwards: `done`,
    `exception()`, `entry_id`, `usage`, `warnings`. What says "for the loop" is for the agent itself.
    """

    def __init__(self, runner: Runner, session_id: str, timeout: float | None = None) -> None:
        self.id = new_id()
        """The call's own: what its stream events are known by outside a request."""
        self.session_id = session_id
        """The session in use: the caller's, or the new one made for this call."""
        self.turn_id: str | None = None
        """The ledger entry that opened the turn, once it is logged."""
        self.entry_id: str | None = None
        """The ledger entry of the reply, once it is logged."""
        self.usage: Usage | None = None
        """Tokens of all requests of the turn; None where no provider told."""
        self.warnings: list[str] = []
        """What went less than well without ending the call, in sentences."""
        self._runner = runner
        self._timeout = timeout
        self._context = contextvars.copy_context()
        self._lock = threading.RLock()  # a loop with eager tasks runs the call within `start`
        self._events: list[StreamEvent] = []
        self._listeners = Listeners(session_id)
        self._result: Future[Msg] = Future()
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = os.getpid()
        self._waiting = 0
        self.subscribers = 0
        """How many subscriptions there are; for the loop."""
        self._iterators: weakref.WeakSet[_Events] = weakref.WeakSet()
        self._steering: list[Msg] | None = []
        self._limit: asyncio.Timeout | None = None
        self._stopping = False
        self._stopped: BaseException | None = None

    def __del__(self) -> None:
        # Without a result only where `__init__` has failed.
        result = getattr(self, "_result", None)
        if result is not None and self._task is None and not result.done() and not sys.is_finalizing():
            log.warning(
                "a call on session %r was made and never run; await it, iterate over it, or use .block()",
                self.session_id,
            )

    # ---- consumers

    def __await__(self) -> Generator[Any, None, Msg]:
        return self._wait().__await__()

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        iterator = _Events(self)
        self._iterators.add(iterator)
        return iterator

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stop()
        await self._settle()

    def block(self, timeout: float | None = None) -> Msg:
        """The reply, for scripts. After `timeout` seconds the call is stopped and `CallTimeout` raised.

        Raises `BlockInsideLoop` where an event loop is running; use `await` there.
        """
        background.refuse_inside_loop(".block()")
        self.start()
        try:
            return self._result.result(timeout)
        except TimeoutError:
            if not self.cancel():
                return self._result.result()
            self._settled().result()  # a script may end here: what was done must be stored by then
            raise CallTimeout(
                f"no answer within {timeout:g} s on session {self.session_id!r}; the call was stopped"
            ) from None
        except KeyboardInterrupt:
            self.cancel()
            raise

    def observable(self) -> Observable[StreamEvent]:
        """The events as a reactivex Observable; every subscription gets them from the first."""
        from harness.agent.reactive import observable_of  # reactivex is loaded only where it is used

        return observable_of(self)

    # ---- control

    @property
    def done(self) -> bool:
        """Whether the call has ended, in a reply or an error."""
        return self._result.done()

    def exception(self) -> BaseException | None:
        """The error a finished call ended in, or None."""
        return self._result.exception() if self._result.done() else None

    @property
    def events(self) -> tuple[StreamEvent, ...]:
        """The events so far."""
        return tuple(self._events)

    @property
    def event_count(self) -> int:
        """How many events there were so far."""
        return len(self._events)

    def event_at(self, position: int) -> StreamEvent | None:
        """The event at a position, counted from 0; None where it has not come yet."""
        return self._events[position] if position < len(self._events) else None

    def cancel(self) -> bool:
        """Stop the call. What it has done is kept. False if it had ended already.

        Hooks hear of the end as an `Error`; a second `cancel` cuts short the one that is being waited for.
        """
        with self._lock:
            if self._result.done():
                return False
            self._stopping = True
            task, loop = self._task, self._loop
        if task is None or loop is None or self.lost or not soon_on(loop, task.cancel):
            self._finish(error=self._cancellation())
        return True

    def _stop(self) -> bool:
        """Stop the call, if nobody has yet: who only goes away cuts no hook short. False if it had ended already."""
        return self.cancel() if self.lost or not self._stopping else not self._result.done()

    @property
    def lost(self) -> bool:
        """Whether nothing can run the call any more: its loop was closed, or stayed behind in a parent process."""
        return self._loop is not None and (self._loop.is_closed() or self._process != os.getpid())

    def steer(self, message: str | Msg) -> bool:
        """Say something to the turn in progress; the model sees it with its next request.

        A turn that was about to end goes on for it. False if it had ended already: then nobody
        heard it, and it is said with a new call.
        """
        text = (
            Msg.user(message) if isinstance(message, str) else kind_of("steer", message, Msg, "text or a Msg").checked()
        )
        if text.role != "user":
            raise ConfigError(f"only a user message can steer a call, not one of role {text.role!r}")
        in_its_place(text)
        with self._lock:
            if self._steering is None or self._result.done():
                return False
            self._steering.append(text.cleaned())
        return True

    def take_steering(self, *, last: bool = False) -> list[Msg]:
        """What was said since the last request; for the loop. The `last` time no more is taken in."""
        with self._lock:
            taken = self._steering or []
            self._steering = None if last or self._steering is None else []
        return taken

    def end_steering(self) -> bool:
        """Take no more steering; False if there is some that nobody has taken. For the loop, before it ends."""
        with self._lock:
            if self._steering:
                return False
            self._steering = None
        return True

    def emit(self, event: StreamEvent) -> None:
        """Add an event for every consumer; for the loop."""
        self._events.append(event)
        self._listeners.wake()

    # ---- the run

    def start(self) -> None:
        """Begin the run, if it has not begun. Every consumer does this by itself."""
        with self._lock:
            if self._task is not None or self._result.done():
                return
            loop = background.running_loop()
            if loop is not None:
                self._create_task(loop)
                return
        created: Future[None] = Future()
        background.background_loop().call_soon_threadsafe(self._create_there, created)
        created.result()

    def _create_there(self, created: Future[None]) -> None:
        with self._lock:
            if self._task is None and not self._result.done():
                self._create_task(asyncio.get_running_loop())
        created.set_result(None)

    def _create_task(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._task = loop.create_task(self._main(), context=self._context, name=f"call {self.session_id}")
        # A task that its loop cancels before the first step never comes into `_main`.
        self._task.add_done_callback(lambda _: self._finish(error=self._cancellation()))

    async def _main(self) -> None:
        try:
            async with asyncio.timeout(self._timeout) as self._limit:
                reply = await self._runner(self)
        except BaseException as error:  # noqa: BLE001 - whoever waits gets it; raised here it would end the loop
            self._finish(error=self.ending(error))
        else:
            self._finish(reply=reply)

    def ending(self, error: BaseException) -> BaseException:
        """What the caller gets for the error that ends the run; for the loop. Hooks are told the same."""
        expired = self._limit is not None and self._limit.expired()
        if not isinstance(error, asyncio.CancelledError) and not (expired and isinstance(error, TimeoutError)):
            return error
        if self._stopped is None:  # what stopped it first stays what stopped it
            self._stopped = self._timed_out() if expired else self._cancellation()
        return self._stopped

    def _cancellation(self) -> CallCancelled:
        return CallCancelled(f"the call on session {self.session_id!r} was stopped; what it had done is kept")

    def _timed_out(self) -> CallTimeout:
        return CallTimeout(
            f"no answer within {self._timeout:g} s on session {self.session_id!r}; what was done is kept, "
            "call again to go on"
        )

    def _finish(self, reply: Msg | None = None, error: BaseException | None = None) -> None:
        with self._lock:
            if self._result.done():
                return
            if reply is not None:
                self._result.set_result(reply)
            elif error is not None:
                self._result.set_exception(error)
        self._listeners.wake()

    # ---- waiting and waking

    async def _wait(self) -> Msg:
        self.start()
        self._count(1)
        try:
            await asyncio.shield(asyncio.wrap_future(self._settled()))
        except asyncio.CancelledError:
            await self.consumer_left(1)
            raise
        finally:
            self._count(-1)
        return self._result.result()

    def _count(self, change: int) -> None:
        with self._lock:  # consumers may be in several threads
            self._waiting += change

    async def consumer_left(self, leaving: int) -> None:
        """A consumer was cancelled: stop the call if it was the last, and see it to its end. For the loop."""
        if self._consumers() <= leaving and self._stop():
            await self._settle()

    def stop_if_unwatched(self) -> None:
        """Stop the call if nobody waits for it; for the loop, where a subscription was disposed of."""
        if not self._consumers():
            self._stop()

    def _consumers(self) -> int:
        return self._waiting + len(self._iterators) + self.subscribers

    async def _settle(self) -> None:
        """Wait for the end, however often whoever waits is cancelled: by then everything is stored and told."""
        if self._task is not None:
            await shielded(self._ended())

    async def _ended(self) -> None:
        await asyncio.wait([asyncio.wrap_future(self._settled())])

    def _settled(self) -> Future[None]:
        """Done when the result is, whatever it is; whoever stops waiting for it leaves the result alone."""
        settled: Future[None] = Future()
        self._result.add_done_callback(lambda _: settled.set_result(None))
        return settled

    def listen(self, wake: Callable[[], object]) -> Callable[[], None]:
        """Call `wake`, from any thread, when there is news; returns what ends it. For the loop."""
        return self._listeners.add(wake)


class _Events:
    """One `async for` over a call: its own position, and an event that wakes it on its own loop."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._position = 0

    def __aiter__(self) -> _Events:
        return self

    async def __anext__(self) -> StreamEvent:
        call = self._call
        call.start()
        while self._position >= len(call._events):
            if call.done:
                call._result.result()
                raise StopAsyncIteration
            await self._news()
        self._position += 1
        return call._events[self._position - 1]

    async def _news(self) -> None:
        loop = asyncio.get_running_loop()
        news = asyncio.Event()

        stop = self._call.listen(lambda: soon_on(loop, news.set))  # who watches from a closed loop has gone
        try:
            if self._position >= len(self._call._events) and not self._call.done:
                await news.wait()
        except asyncio.CancelledError:
            await self._call.consumer_left(1)
            raise
        finally:
            stop()
