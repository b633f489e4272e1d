"""`agent.stream` and `call.observable()`: the events of a call for reactive code, from any thread."""

import asyncio
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from reactivex import operators as ops

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, Held, agent_of, exists, logged, names, until

from harness.errors import CallCancelled, ModelRejected
from harness.testing import ScriptedModel

PLAIN = ["pre_call", "pre_reasoning", "reasoning_chunk", "post_reasoning", "post_call"]


class Seen:
    """An observer that keeps what it is told; `over` is set when there is no more."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.error: Exception | None = None
        self.completed = False
        self.over = threading.Event()

    def on_next(self, event: Any) -> None:
        self.events.append(event.event)

    def on_error(self, error: Exception) -> None:
        self.error = error
        self.over.set()

    def on_completed(self) -> None:
        self.completed = True
        self.over.set()


async def test_nothing_runs_before_somebody_subscribes(workspace: Path) -> None:
    model = ScriptedModel()
    async with agent_of(workspace, model) as agent:
        agent.stream("hi", ALICE)
        await asyncio.sleep(0.01)
    assert (model.requests, exists(workspace)) == ([], False)


async def test_a_subscriber_gets_all_events_and_the_end(workspace: Path) -> None:
    seen = Seen()
    async with agent_of(workspace, ScriptedModel(["hello"])) as agent:
        agent.stream("hi", ALICE).subscribe(seen)
        await until(seen.over.is_set)
    assert (seen.events, seen.completed, seen.error) == (PLAIN, True, None)


async def test_a_late_subscriber_gets_all_events_from_the_first(workspace: Path) -> None:
    seen = Seen()
    async with agent_of(workspace, ScriptedModel(["hello"])) as agent:
        call = agent.call("hi", ALICE)
        await call
        call.observable().subscribe(seen)
    assert (seen.events, seen.completed) == (PLAIN, True)


async def test_two_subscriptions_share_one_run(workspace: Path) -> None:
    model, first, second = ScriptedModel(["hello"]), Seen(), Seen()
    async with agent_of(workspace, model) as agent:
        stream = agent.stream("hi", ALICE)
        stream.subscribe(first)
        stream.subscribe(second)
        await until(lambda: first.over.is_set() and second.over.is_set())
    assert (first.events, second.events, len(model.requests)) == (PLAIN, PLAIN, 1)


async def test_a_failed_call_gives_its_events_and_then_the_error(workspace: Path) -> None:
    seen = Seen()
    async with agent_of(workspace, ScriptedModel([ModelRejected("too rude")])) as agent:
        agent.stream("hi", ALICE).subscribe(seen)
        await until(seen.over.is_set)
    assert (seen.events, seen.completed) == (["pre_call", "pre_reasoning", "error"], False)
    assert isinstance(seen.error, ModelRejected)


async def test_disposing_of_the_only_subscription_stops_the_call(workspace: Path) -> None:
    held, seen = Held(), Seen()
    async with agent_of(workspace, ScriptedModel([held])) as agent:
        call = agent.call("hi", ALICE)
        subscription = call.observable().subscribe(seen)
        await held.asked.wait()
        subscription.dispose()
        await until(lambda: call.done)
    assert isinstance(call.exception(), CallCancelled)
    assert (seen.over.is_set(), logged(workspace)) == (False, [("user", "user", "hi")])


async def test_disposing_of_one_of_two_does_not(workspace: Path) -> None:
    held, seen = Held(), Seen()
    async with agent_of(workspace, ScriptedModel([held])) as agent:
        call = agent.call("hi", ALICE)
        going = call.observable().subscribe(Seen())
        call.observable().subscribe(seen)
        await held.asked.wait()
        going.dispose()
        held.let_go.set()
        await until(seen.over.is_set)
    assert (seen.events, seen.completed) == (PLAIN, True)


async def test_disposing_beside_an_await_does_not(workspace: Path) -> None:
    held = Held()
    async with agent_of(workspace, ScriptedModel([held])) as agent:
        call = agent.call("hi", ALICE)
        subscription = call.observable().subscribe(Seen())
        waiting = asyncio.ensure_future(names(call))
        await held.asked.wait()
        subscription.dispose()
        held.let_go.set()
        assert await waiting == PLAIN


async def test_taking_the_first_events_only_stops_the_call(workspace: Path) -> None:
    seen = Seen()
    async with agent_of(workspace, ScriptedModel([Held()])) as agent:
        call = agent.call("hi", ALICE)
        call.observable().pipe(ops.take(2)).subscribe(seen)
        await until(lambda: call.done)
    assert (seen.events, seen.completed) == (PLAIN[:2], True)
    assert isinstance(call.exception(), CallCancelled)


async def test_disposing_after_the_end_changes_nothing(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["hello"])) as agent:
        call = agent.call("hi", ALICE)
        subscription = call.observable().subscribe(Seen())
        await call
        subscription.dispose()
        assert call.exception() is None


def test_a_plain_thread_without_a_loop_can_subscribe(workspace: Path) -> None:
    seen = Seen()
    agent_of(workspace, ScriptedModel(["hello"])).stream("hi", ALICE).subscribe(seen)
    assert seen.over.wait(10)
    assert (seen.events, seen.completed) == (PLAIN, True)


def test_reactive_operators_work_on_the_text_of_an_answer(workspace: Path) -> None:
    stream = agent_of(workspace, ScriptedModel(["one two three"])).stream("hi", ALICE)
    chunks = stream.pipe(
        ops.filter(lambda event: event.event == "reasoning_chunk"), ops.map(lambda event: event.data["text"])
    )
    assert chunks.pipe(ops.reduce(lambda text, chunk: text + chunk)).run() == "one two three"


async def test_a_subscriber_that_fails_does_not_disturb_the_call(
    workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(event: object) -> None:
        raise ZeroDivisionError

    async with agent_of(workspace, ScriptedModel(["hello"])) as agent:
        call = agent.call("hi", ALICE)
        call.observable().subscribe(fail)
        assert (await call).text == "hello"
    assert "a subscriber of session 's1' failed" in caplog.text


async def test_a_subscriber_may_make_the_next_call_when_one_has_ended(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["one", "two"])) as agent:
        follow = []
        agent.stream("hi", ALICE).subscribe(on_completed=lambda: follow.append(agent.call("and?", ALICE)))
        await until(lambda: follow)
        assert (await follow[0]).text == "two"


async def test_stream_takes_the_options_of_a_call(workspace: Path) -> None:
    seen, other = Seen(), ScriptedModel(["from the other"])
    async with agent_of(workspace, ScriptedModel()) as agent:
        agent.stream("hi", ALICE, model=other).subscribe(seen)
        await until(seen.over.is_set)
    assert len(other.requests) == 1
