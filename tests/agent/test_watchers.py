"""Those who watch a call from other threads: whatever becomes of them, the call goes on and the others hear of it."""

import asyncio
import sys
import threading
from collections.abc import Callable
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


@pytest.mark.parametrize("error", [ZeroDivisionError(), asyncio.CancelledError()], ids=repr)
@pytest.mark.parametrize("at", ["next", "completed", "error"])
async def test_a_subscriber_that_raises_at_any_time_keeps_no_other_from_hearing(
    workspace: Path, at: str, error: BaseException, caplog: pytest.LogCaptureFixture
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


async def _events(call: Call) -> list[str]:
    heard: list[str] = []
    with suppress(ModelError):
        async for event in call:
            heard += [event.event]
    return heard


def test_a_listener_that_raises_hears_no_more_and_the_others_do(caplog: pytest.LogCaptureFixture) -> None:
    listeners, heard = Listeners("s1"), list[str]()
    wakes: list[Callable[[], object]] = [lambda: heard.append("a"), lambda: 1 // 0, lambda: heard.append("b")]
    for wake in wakes:
        listeners.add(wake)
    listeners.wake()
    listeners.wake()
    assert heard == ["a", "b", "a", "b"]
    assert caplog.text.count("a listener of session 's1' failed") == 1


def test_a_loop_that_was_closed_is_told_of_nothing_and_that_is_no_error() -> None:
    loop = asyncio.new_event_loop()
    assert soon_on(loop, lambda: None)
    loop.close()
    assert not soon_on(loop, lambda: None)
