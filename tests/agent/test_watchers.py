"""Those who watch a call, from any thread: whatever becomes of them, the call goes on and the others hear of it."""

import asyncio
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from reactivex.abc import ObserverBase

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, Held, agent_of, logged, names

from harness.agent import Call
from harness.agent.listeners import Listeners, soon_on
from harness.errors import ModelError
from harness.hooks import PostCall, ReasoningChunk
from harness.testing import ScriptedModel

PLAIN = ["pre_call", "pre_reasoning", "reasoning_chunk", "post_reasoning", "post_call"]


async def _iterated(call: Call, watching: threading.Event) -> None:
    async for event in call:
        if event.event == "pre_reasoning":
            watching.set()


async def _awaited(call: Call, watching: threading.Event) -> None:
    asyncio.get_running_loop().call_soon(watching.set)
    await call


@pytest.mark.parametrize("watch", [_iterated, _awaited])
async def test_a_watcher_whose_loop_was_closed_does_not_hurt_the_call(workspace: Path, watch: Any) -> None:
    held = Held("hello")
    watching = threading.Event()
    loop = asyncio.new_event_loop()

    def elsewhere() -> asyncio.Task[None]:
        task = loop.create_task(watch(call, watching))
        loop.run_until_complete(asyncio.to_thread(watching.wait))
        loop.run_until_complete(asyncio.sleep(0))  # the watcher waits for news now
        loop.close()
        return task

    async with agent_of(workspace, ScriptedModel([held])) as agent:
        call = agent.call("hi", ALICE)
        call.start()
        await held.asked.wait()
        left = await asyncio.to_thread(elsewhere)
        held.let_go.set()
        assert (await call).text == "hello"
        assert await names(call) == PLAIN
    left.get_coro().close()  # type: ignore[union-attr]  # it is the coroutine that was made above
    left._log_destroy_pending = False  # type: ignore[attr-defined]  # its loop was closed by hand: that is the test
    assert logged(workspace)[-1] == ("model", "assistant", "hello")


class Faulty(ObserverBase[Any]):
    """An observer that raises when it is told of one thing."""

    def __init__(self, at: str, error: BaseException) -> None:
        self.at, self.error = at, error

    def on_next(self, value: Any) -> None:
        self._told("next")

    def on_error(self, error: Exception) -> None:
        self._told("error")

    def on_completed(self) -> None:
        self._told("completed")

    def _told(self, what: str) -> None:
        if what == self.at:
            raise self.error


class Odd(BaseException):
    """An error that is nobody's."""


ENDINGS: list[BaseException] = [
    ZeroDivisionError(), asyncio.CancelledError(), SystemExit(3), GeneratorExit(), KeyboardInterrupt(), Odd(),
]  # fmt: skip


@pytest.fixture
def interrupts() -> Iterator[list[int]]:
    """The interrupts that the process gets, which are kept from the test run."""
    got: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: got.append(number))
    yield got
    signal.signal(signal.SIGINT, before)


def interrupts_for(error: BaseException) -> list[int]:
    return [signal.SIGINT] if isinstance(error, KeyboardInterrupt) else []


@pytest.mark.parametrize("error", ENDINGS, ids=repr)
@pytest.mark.parametrize("at", ["next", "completed", "error"])
async def test_a_subscriber_that_raises_at_any_time_keeps_no_other_from_hearing(
    workspace: Path, at: str, error: BaseException, caplog: pytest.LogCaptureFixture, interrupts: list[int]
) -> None:
    step: Any = ZeroDivisionError("the model") if at == "error" else "hello"
    async with agent_of(workspace, ScriptedModel([step])) as agent:
        call = agent.call("hi", ALICE)
        call.observable().subscribe(Faulty(at, error))
        others = [asyncio.ensure_future(_events(call)) for _ in range(2)]
        first, second = await asyncio.gather(*others)
    assert first == second == [event.event for event in call.events]
    assert first[-1] == ("error" if at == "error" else "post_call")
    assert "of session 's1' failed" in caplog.text
    assert interrupts == interrupts_for(error)
    if at != "error":
        assert logged(workspace)[-1] == ("model", "assistant", "hello")


@pytest.mark.parametrize("error", ENDINGS, ids=repr)
def test_a_call_whose_only_watcher_raises_in_a_plain_thread_goes_on(
    workspace: Path, error: BaseException, interrupts: list[int]
) -> None:
    held = Held("hello")
    call = agent_of(workspace, ScriptedModel([held])).call("hi", ALICE)
    told = threading.Event()

    def leave(event: Any) -> None:
        if event.event == "reasoning_chunk":
            told.set()
            raise error

    call.observable().subscribe(leave)
    assert call._loop is not None
    call._loop.call_soon_threadsafe(held.let_go.set)
    assert told.wait(10)
    assert call.block(10).text == "hello"
    assert logged(workspace)[-1] == ("model", "assistant", "hello")
    assert interrupts == interrupts_for(error)


@pytest.mark.parametrize("in_a_thread", [True, False])
@pytest.mark.parametrize("kind", [ReasoningChunk, PostCall])
@pytest.mark.parametrize("error", ENDINGS, ids=repr)
async def test_a_hook_that_is_only_told_ends_no_call_whatever_it_raises(
    workspace: Path, kind: type[Any], error: BaseException, in_a_thread: bool, interrupts: list[int]
) -> None:
    class Told:
        events = (kind,)

        def on_event(self, event: Any) -> None:
            raise error

    class ToldAtOnce(Told):
        async def on_event(self, event: Any) -> None:  # type: ignore[override]  # a hook is either
            raise error

    async with agent_of(workspace, ScriptedModel(["hello"]), hooks=[Told() if in_a_thread else ToldAtOnce()]) as agent:
        call = agent.call("hi", ALICE)
        assert (await call).text == "hello"
    assert [type(error).__name__ in warning for warning in call.warnings] == [True]
    assert logged(workspace)[-1] == ("model", "assistant", "hello")
    assert interrupts == interrupts_for(error)


def test_an_interrupt_in_a_watcher_ends_the_process_that_runs_the_loop_and_the_answer_is_kept(workspace: Path) -> None:
    def interrupt(event: Any) -> None:
        if event.event == "post_reasoning":
            raise KeyboardInterrupt

    async def main() -> None:
        call = agent_of(workspace, ScriptedModel(["hello"])).call("hi", ALICE)
        call.observable().subscribe(interrupt)
        await call
        await asyncio.Event().wait()

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert logged(workspace)[-1] == ("model", "assistant", "hello")


def test_an_interrupt_in_a_watcher_wakes_a_main_thread_that_waits_and_the_answer_is_kept(workspace: Path) -> None:
    held = Held("hello")
    call = agent_of(workspace, ScriptedModel([held])).call("hi", ALICE)

    def interrupt(event: Any) -> None:
        if event.event == "reasoning_chunk":
            raise KeyboardInterrupt

    def wait() -> None:
        assert call._loop is not None
        call._loop.call_soon_threadsafe(held.let_go.set)
        threading.Event().wait()

    call.observable().subscribe(interrupt)
    with pytest.raises(KeyboardInterrupt):
        wait()
    assert call.block(10).text == "hello"
    assert logged(workspace)[-1] == ("model", "assistant", "hello")


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), KeyboardInterrupt(), Odd()], ids=repr)
async def test_a_subscriber_that_ends_its_own_thread_while_it_subscribes_does_so(
    workspace: Path, error: BaseException, interrupts: list[int]
) -> None:
    async with agent_of(workspace, ScriptedModel(["hello"])) as agent:
        call = agent.call("hi", ALICE)
        await call
        with pytest.raises(type(error)):
            call.observable().subscribe(Faulty("next", error))
        assert (call.subscribers, interrupts) == (0, [])
        assert (await call).text == "hello"


async def _events(call: Call) -> list[str]:
    heard: list[str] = []
    with suppress(ModelError):
        async for event in call:
            heard += [event.event]
    return heard


def test_a_listener_that_raises_hears_no_more_and_the_others_do(caplog: pytest.LogCaptureFixture) -> None:
    listeners, heard = Listeners("s1"), list[str]()

    def leave() -> None:
        raise SystemExit

    wakes: list[Callable[[], object]] = [lambda: heard.append("a"), lambda: 1 // 0, leave, lambda: heard.append("b")]
    for wake in wakes:
        listeners.add(wake)
    listeners.wake()
    listeners.wake()
    assert heard == ["a", "b", "a", "b"]
    assert caplog.text.count("a listener of session 's1' failed") == 2


def test_a_loop_that_was_closed_is_told_of_nothing_and_that_is_no_error() -> None:
    loop = asyncio.new_event_loop()
    assert soon_on(loop, lambda: None)
    loop.close()
    assert not soon_on(loop, lambda: None)
