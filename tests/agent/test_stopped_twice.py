"""A call that is stopped more than once: everything that must happen on the way out happens, and once."""

import asyncio
import contextlib
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, Held, agent_of, call_of, ledger, logged, of_kind

from harness import HarnessAgent
from harness.agent import Call
from harness.errors import CallCancelled, ModelRejected
from harness.hooks import ActingChunk, Error, PostCall, PostReasoning
from harness.hooks.uninterrupted import shielded, stop_all
from harness.testing import ScriptedModel


class Ends:
    """Hears how calls end; on an error it waits as long as it is told to."""

    priority = 200
    events = (Error, PostCall)

    def __init__(self, turns: int = 0) -> None:
        self.heard: list[str] = []
        self.told: list[str] = []
        self._turns = turns

    async def on_event(self, event: Error | PostCall) -> None:
        self.heard.append(type(getattr(event, "error", event)).__name__)
        for _ in range(self._turns):
            await asyncio.sleep(0)
        self.told.append(self.heard[-1])


class Waits:
    """Hears the end of a call, and waits for ever."""

    priority = 150
    events = (Error,)

    def __init__(self) -> None:
        self.there = asyncio.Event()

    async def on_event(self, event: Error) -> None:
        self.there.set()
        await asyncio.Event().wait()


async def started(agent: HarnessAgent, held: Held) -> Call:
    call = agent.call("hi", ALICE)
    call.start()
    await held.asked.wait()
    return call


async def test_a_call_cancelled_again_in_every_turn_of_the_loop_tells_its_end_once(workspace: Path) -> None:
    held, ends = Held(), Ends()
    async with agent_of(workspace, ScriptedModel([held]), hooks=[ends]) as agent:
        call = await started(agent, held)
        while call.cancel():
            await asyncio.sleep(0)
        assert isinstance(call.exception(), CallCancelled)
    assert ends.heard == ["CallCancelled"]
    assert [event.event for event in call.events].count("error") == 1
    assert [entry["data"]["reason"] for entry in of_kind(ledger(workspace), "abort")] == ["stopped"]


async def test_a_second_cancel_cuts_short_the_hook_that_is_waited_for_and_tells_the_others(workspace: Path) -> None:
    held, waits, ends = Held(), Waits(), Ends()
    async with agent_of(workspace, ScriptedModel([held]), hooks=[waits, ends]) as agent:
        call = await started(agent, held)
        call.cancel()
        await waits.there.wait()
        assert not call.done
        call.cancel()
        with pytest.raises(CallCancelled):
            await call
    assert ends.told == ["CallCancelled"]


async def test_a_cancelled_iteration_within_the_block_lets_the_hooks_finish(workspace: Path) -> None:
    held, ends = Held(), Ends(turns=50)
    calls = []

    async def watch() -> None:
        async with agent.call("hi", ALICE) as call:
            calls.append(call)
            async for _ in call:
                pass

    async with agent_of(workspace, ScriptedModel([held]), hooks=[ends]) as agent:
        watching = asyncio.ensure_future(watch())
        await held.asked.wait()
        watching.cancel()
        await asyncio.wait([watching])
        assert calls[0].done
    assert ends.told == ["CallCancelled"]


@pytest.mark.parametrize("consume", ["iterate", "await"])
async def test_who_leaves_a_cancelled_scope_of_anyio_leaves_a_call_that_has_ended(
    workspace: Path, consume: str
) -> None:
    held, ends = Held(), Ends(turns=50)
    calls = []

    async def watch() -> None:
        async with agent.call("hi", ALICE) as call:
            calls.append(call)
            if consume == "await":
                await call
            async for _ in call:
                pass

    async with agent_of(workspace, ScriptedModel([held]), hooks=[ends]) as agent:
        async with anyio.create_task_group() as group:
            group.start_soon(watch)
            await held.asked.wait()
            group.cancel_scope.cancel()
        assert calls[0].done
        assert ends.told == ["CallCancelled"]


async def test_an_error_stays_what_ended_the_call_when_it_is_cancelled_afterwards(workspace: Path) -> None:
    waits = Waits()
    async with agent_of(workspace, ScriptedModel([ModelRejected("no")]), hooks=[waits]) as agent:
        call = agent.call("hi", ALICE)
        call.start()
        await waits.there.wait()
        call.cancel()
        with pytest.raises(ModelRejected):
            await call
    assert [event.data["error"] for event in call.events if event.event == "error"] == ["ModelRejected"]


async def test_a_call_that_was_stopped_is_not_out_of_time_as_well(workspace: Path) -> None:
    held, waits = Held(), Waits()
    async with agent_of(workspace, ScriptedModel([held]), hooks=[waits]) as agent:
        call = agent.call("hi", ALICE, timeout=60)
        call.start()
        await held.asked.wait()
        call.cancel()
        await waits.there.wait()
        assert call._limit is not None
        call._limit.reschedule(asyncio.get_running_loop().time())  # the time is over: that cuts the hook short
        with pytest.raises(CallCancelled):
            await call
    assert [event.data["error"] for event in call.events if event.event == "error"] == ["CallCancelled"]


async def test_a_tool_that_tidies_up_has_ended_before_the_session_is_given_back(workspace: Path) -> None:
    there, order = asyncio.Event(), []

    async def dig() -> str:
        there.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            for _ in range(5):
                try:
                    await asyncio.sleep(0.002)
                except asyncio.CancelledError:
                    continue
            order.append("tidied up")
        return "half a hole"

    class After:
        events = (Error,)

        async def on_event(self, event: Error) -> None:
            order.append("told")

    async with agent_of(workspace, ScriptedModel([call_of("dig")]), dig, hooks=[After()]) as agent:
        call = agent.call("hi", ALICE)
        call.start()
        await there.wait()
        for _ in range(3):
            call.cancel()
            await asyncio.sleep(0)
        with pytest.raises(CallCancelled):
            await call
    assert order == ["tidied up", "told"]
    assert logged(workspace)[-1] == ("tool", "tool", "half a hole")


async def test_a_hook_that_swallows_the_stop_does_not_keep_the_call_going(workspace: Path) -> None:
    there, model = asyncio.Event(), ScriptedModel([call_of("gone"), "on and on"])

    async def deaf(event: PostReasoning) -> None:
        there.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    async with agent_of(workspace, model, hooks=[deaf]) as agent:
        async with agent.call("hi", ALICE) as call:
            await there.wait()
        assert isinstance(call.exception(), CallCancelled)
    assert len(model.requests) == 1


async def test_no_hook_is_told_of_a_piece_after_the_end(workspace: Path) -> None:
    there, heard = asyncio.Event(), []

    async def dig() -> Any:
        yield "earth"
        await asyncio.Event().wait()

    class Slow:
        events = (ActingChunk, Error)

        async def on_event(self, event: ActingChunk | Error) -> None:
            there.set()
            try:
                if isinstance(event, ActingChunk):
                    await asyncio.Event().wait()
            finally:
                heard.append(type(event).__name__)

    async with agent_of(workspace, ScriptedModel([call_of("dig")]), dig, hooks=[Slow()]) as agent:
        async with agent.call("hi", ALICE):
            await there.wait()
        assert heard == ["ActingChunk", "Error"]


async def test_waiting_within_a_cancelled_scope_does_not_run_the_loop_hot() -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await shielded(asyncio.sleep(0.05))
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() <= 1


async def test_tasks_are_seen_to_their_ends_by_one_who_is_cancelled_meanwhile() -> None:
    ended = []

    async def stubborn(name: str, times: int) -> None:
        while times:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                times -= 1
        ended.append(name)

    tasks = [asyncio.ensure_future(stubborn(name, times)) for name, times in [("a", 1), ("b", 3)]]
    await asyncio.sleep(0)
    stopping = asyncio.ensure_future(stop_all(tasks))
    while not stopping.done():
        await asyncio.sleep(0)
        stopping.cancel()
    assert ended == ["a", "b"]


async def test_tasks_that_were_cancelled_already_clear_up_before_they_end() -> None:
    cleared = []

    async def clearing() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleared.append("up")

    tasks = [asyncio.ensure_future(clearing()) for _ in range(2)]
    await asyncio.sleep(0)
    tasks[0].cancel()  # as `gather` does when one of its tasks fails
    await stop_all(tasks)
    assert cleared == ["up", "up"]
