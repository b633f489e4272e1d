"""What stops a call, what does not, and that what it had done is kept."""

import asyncio
import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, Held, agent_of, exists, ledger, logged, of_kind, until

from harness import HarnessAgent
from harness.agent import Call
from harness.errors import CallCancelled, CallTimeout, SessionBusy
from harness.testing import ScriptedModel


async def started(agent: HarnessAgent, held: Held) -> Call:
    call = agent.call("hi", ALICE)
    call.start()
    await held.asked.wait()
    return call


def assert_stopped_and_kept(workspace: Path) -> None:
    assert logged(workspace) == [("user", "user", "hi")]
    assert [entry["data"]["reason"] for entry in of_kind(ledger(workspace), "abort")] == ["stopped"]
    assert [entry["status"] for entry in of_kind(ledger(workspace), "request_end")] == ["aborted"]


async def test_cancel_stops_the_call_and_keeps_the_prompt(workspace: Path) -> None:
    held = Held()
    async with agent_of(workspace, ScriptedModel([held])) as agent:
        call = await started(agent, held)
        assert call.cancel() is True
        with pytest.raises(CallCancelled, match="'s1'"):
            await call
    assert_stopped_and_kept(workspace)


async def test_cancel_from_another_thread_stops_the_call(workspace: Path) -> None:
    held = Held()
    async with agent_of(workspace, ScriptedModel([held])) as agent:
        call = await started(agent, held)
        await asyncio.to_thread(call.cancel)
        with pytest.raises(CallCancelled):
            await call
    assert_stopped_and_kept(workspace)


async def test_a_call_cancelled_before_its_start_never_runs(workspace: Path) -> None:
    model = ScriptedModel()
    async with agent_of(workspace, model) as agent:
        call = agent.call("hi", ALICE)
        assert call.cancel() is True
        with pytest.raises(CallCancelled):
            await call
    assert (model.requests, exists(workspace)) == ([], False)


async def test_a_call_cancelled_as_it_starts_ends_all_the_same(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["hello"])) as agent:
        call = agent.call("hi", ALICE)
        call.start()
        call.cancel()
        with pytest.raises(CallCancelled):
            await call


async def test_cancelling_an_ended_call_is_told_and_changes_nothing(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["hello"])) as agent:
        call = agent.call("hi", ALICE)
        await call
        assert call.cancel() is False
        assert (await call).text == "hello"


async def test_leaving_the_block_stops_the_call(workspace: Path) -> None:
    held = Held()
    async with agent_of(workspace, ScriptedModel([held])) as agent:
        async with agent.call("hi", ALICE) as call:
            await held.asked.wait()
        assert call.done
        assert isinstance(call.exception(), CallCancelled)
    assert_stopped_and_kept(workspace)


async def test_leaving_the_block_after_the_reply_changes_nothing(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["hello"])) as agent:
        async with agent.call("hi", ALICE) as call:
            await call
        assert call.exception() is None


async def test_the_last_cancelled_await_stops_the_call_and_sees_it_to_its_end(workspace: Path) -> None:
    held = Held()

    async def wait(call: Call) -> None:
        await call

    async with agent_of(workspace, ScriptedModel([held])) as agent:
        call = agent.call("hi", ALICE)
        waiting = asyncio.ensure_future(wait(call))
        await held.asked.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert isinstance(call.exception(), CallCancelled)
    assert_stopped_and_kept(workspace)


async def test_a_timeout_around_an_await_stops_the_call(workspace: Path) -> None:
    held = Held()
    async with agent_of(workspace, ScriptedModel([held])) as agent:
        call = agent.call("hi", ALICE)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(call._wait(), 0.05)
        assert isinstance(call.exception(), CallCancelled)


async def test_a_cancelled_iteration_that_was_alone_stops_the_call(workspace: Path) -> None:
    held = Held()

    async def watch(call: Call) -> None:
        async for _ in call:
            pass

    async with agent_of(workspace, ScriptedModel([held])) as agent:
        call = agent.call("hi", ALICE)
        watching = asyncio.ensure_future(watch(call))
        await held.asked.wait()
        watching.cancel()
        await asyncio.wait([watching])
        assert isinstance(call.exception(), CallCancelled)


async def test_the_timeout_of_a_call_names_the_session_and_keeps_the_prompt(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel([Held()])) as agent:
        with pytest.raises(CallTimeout, match=r"0\.05 s on session 's1'"):
            await agent.call("hi", ALICE, timeout=0.05)
    assert logged(workspace) == [("user", "user", "hi")]
    assert [entry["data"]["reason"] for entry in of_kind(ledger(workspace), "abort")] == ["timeout"]


async def test_the_timeout_of_a_call_counts_its_waiting_for_the_session(workspace: Path) -> None:
    held = Held()
    async with agent_of(workspace, ScriptedModel([held])) as agent:
        first = await started(agent, held)
        with pytest.raises(CallTimeout):
            await agent.call("me too", ALICE, timeout=0.05)
        held.let_go.set()
        await first
    assert ("user", "user", "me too") not in logged(workspace)


async def test_a_call_within_its_timeout_is_not_disturbed_by_it(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["hello"])) as agent:
        assert (await agent.call("hi", ALICE, timeout=60)).text == "hello"


def test_block_stops_the_call_when_its_time_is_over_and_returns_with_everything_stored(workspace: Path) -> None:
    agent = agent_of(workspace, ScriptedModel([Held()]))
    call = agent.call("hi", ALICE)
    with pytest.raises(CallTimeout, match=r"0\.05 s on session 's1'"):
        call.block(timeout=0.05)
    assert isinstance(call.exception(), CallCancelled)
    assert_stopped_and_kept(workspace)


def test_block_in_time_gives_the_reply(workspace: Path) -> None:
    assert agent_of(workspace, ScriptedModel(["hello"])).call("hi", ALICE).block(timeout=60).text == "hello"


async def test_a_stopped_call_gives_its_session_back(workspace: Path) -> None:
    held = Held()
    async with agent_of(workspace, ScriptedModel([held, "hello"])) as agent:
        (await started(agent, held)).cancel()
        assert (await agent.call("again", ALICE)).text == "hello"


async def test_a_call_stopped_while_it_waits_leaves_nothing_and_does_not_hold_up_others(workspace: Path) -> None:
    held = Held()
    async with agent_of(workspace, ScriptedModel([held, "third"])) as agent:
        first = await started(agent, held)
        second, third = agent.call("second", ALICE), agent.call("third", ALICE)
        second.start()
        third.start()
        await asyncio.sleep(0.01)
        second.cancel()
        with pytest.raises(CallCancelled):
            await second
        held.let_go.set()
        await first
        assert (await third).text == "third"
    assert [text for via, _, text in logged(workspace) if via == "user"] == ["hi", "third"]


async def test_cancel_while_a_sync_tool_runs_in_its_thread_ends_the_call(workspace: Path) -> None:
    go, there = threading.Event(), threading.Event()

    def slow() -> str:
        there.set()
        go.wait(10)
        return "done"

    async with agent_of(workspace, ScriptedModel([ScriptedModel.tool_call("slow"), "hello"]), slow) as agent:
        call = agent.call("hi", ALICE)
        call.start()
        await until(there.is_set)
        call.cancel()
        with pytest.raises(CallCancelled):
            await call
        go.set()
        assert (await agent.call("again", ALICE)).text == "hello"


async def test_the_end_of_a_loop_ends_its_calls_and_nobody_waits_for_ever(workspace: Path) -> None:
    agent = agent_of(workspace, ScriptedModel([Held()]))
    calls = []

    async def leave_at_once() -> None:
        calls.append(agent.call("hi", ALICE))
        calls[0].start()

    await asyncio.to_thread(lambda: asyncio.run(leave_at_once()))
    with pytest.raises(CallCancelled):
        await asyncio.wait_for(calls[0]._wait(), 5)


async def test_a_busy_session_is_told_by_name(workspace: Path) -> None:
    held = Held()
    async with agent_of(workspace, ScriptedModel([held]), gate_timeout=0.05) as agent:
        first = await started(agent, held)
        with pytest.raises(SessionBusy, match="'s1'"):
            await agent.call("me too", ALICE)
        held.let_go.set()
        await first
