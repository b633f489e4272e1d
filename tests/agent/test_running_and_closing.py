"""A call seen from other requests: to stop it, to steer it, and to close the agent under it."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, BOB, Held, agent_of, call_of, ledger, logged, of_kind, shown, until

from harness import HarnessAgent
from harness.agent import Call
from harness.errors import AgentClosed, CallCancelled, ConfigError, ModelRejected
from harness.hooks import Error, MemoryFlushHook, PostCall, PreReasoning
from harness.messages import Msg
from harness.models import Chunk, ModelRequest
from harness.testing import ScriptedModel


async def started(agent: HarnessAgent, held: Held, **options: Any) -> Call:
    call = agent.call("hi", ALICE, **options)
    call.start()
    await held.asked.wait()
    return call


async def test_the_call_in_progress_can_be_found_by_its_context(workspace: Path) -> None:
    held = Held()
    async with agent_of(workspace, ScriptedModel([held])) as agent:
        assert agent.running(ALICE) is None
        call = await started(agent, held)
        assert agent.running(ALICE) is call
        assert agent.running(BOB) is None
        assert agent.running(ALICE.with_changes(session_id="s2")) is None
        held.let_go.set()
        await call
        assert agent.running(ALICE) is None


async def test_another_request_can_stop_it(workspace: Path) -> None:
    held = Held()
    async with agent_of(workspace, ScriptedModel([held])) as agent:
        call = await started(agent, held)
        running = agent.running(ALICE)
        assert running is not None
        assert running.cancel() is True
        with pytest.raises(CallCancelled):
            await call


async def test_another_agent_object_of_the_process_can_stop_it(workspace: Path) -> None:
    held = Held()
    async with agent_of(workspace, ScriptedModel([held])) as agent, agent_of(workspace, ScriptedModel()) as other:
        call = await started(agent, held)
        assert other.running(ALICE) is call
        held.let_go.set()


async def test_steering_reaches_the_model_with_its_next_request_and_goes_when_the_turn_closes(workspace: Path) -> None:
    held = Held(call_of("gone"))
    model = ScriptedModel([held, "done", "next"])
    async with agent_of(workspace, model) as agent:
        call = await started(agent, held)
        assert call.steer("Hurry up.") is True
        held.let_go.set()
        await call
        await agent.call("and?", ALICE)
    assert shown(model.requests[1])[-1] == ("user", "Hurry up.")
    assert "Hurry up." not in str(shown(model.requests[2]))
    assert ("steer", "user", "Hurry up.") in logged(workspace)
    assert len({entry["turnId"] for entry in of_kind(ledger(workspace), "message")}) == 2


async def test_steering_during_the_last_answer_keeps_the_turn_going(workspace: Path) -> None:
    held = Held("done")
    model = ScriptedModel([held, "done in French"])
    async with agent_of(workspace, model) as agent:
        call = await started(agent, held)
        call.steer("In French!")
        held.let_go.set()
        assert (await call).text == "done in French"
    assert shown(model.requests[1]) == [("user", "hi"), ("assistant", "done"), ("user", "In French!")]


async def test_steering_at_the_limit_of_steps_is_seen_by_the_summary(workspace: Path) -> None:
    held = Held("done")
    model = ScriptedModel([held, "summed up in French"])
    async with agent_of(workspace, model, max_steps=1) as agent:
        call = await started(agent, held)
        call.steer("In French!")
        held.let_go.set()
        assert (await call).text == "summed up in French"
    assert ("user", "In French!") in shown(model.requests[1])


async def test_steering_that_comes_too_late_is_told_so(workspace: Path) -> None:
    late = []

    async def hook(event: PostCall) -> None:
        running = agent.running(ALICE)
        assert running is not None
        late.append(running.steer("too late"))

    async with agent_of(workspace, ScriptedModel(["done"]), hooks=[hook]) as agent:
        call = agent.call("hi", ALICE)
        await call
        late.append(call.steer("much too late"))
    assert late == [False, False]
    assert [text for _, _, text in logged(workspace)] == ["hi", "done"]


async def test_what_was_said_to_a_turn_that_failed_is_kept(workspace: Path) -> None:
    held = Held(ModelRejected("no"))
    model = ScriptedModel([held, "next"])
    async with agent_of(workspace, model) as agent:
        call = await started(agent, held)
        call.steer("Hurry up.")
        held.let_go.set()
        with pytest.raises(ModelRejected):
            await call
        await agent.call("again", ALICE)
    assert ("steer", "user", "Hurry up.") in logged(workspace)
    assert shown(model.requests[1]) == [("user", "hi"), ("assistant", "[stopped]"), ("user", "again")]


async def test_steering_from_another_thread_is_heard(workspace: Path) -> None:
    held = Held(call_of("gone"))
    model = ScriptedModel([held, "done"])
    async with agent_of(workspace, model) as agent:
        call = await started(agent, held)
        await asyncio.to_thread(call.steer, Msg.user("Hurry up."))
        held.let_go.set()
        await call
    assert shown(model.requests[1])[-1] == ("user", "Hurry up.")


async def test_only_a_user_steers(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel()) as agent:
        with pytest.raises(ConfigError, match="'assistant'"):
            agent.call("hi", ALICE).steer(Msg.assistant("I am the user"))


async def test_closing_lets_running_calls_end(workspace: Path) -> None:
    held = Held()
    agent = agent_of(workspace, ScriptedModel([held]))
    call = await started(agent, held)
    closing = asyncio.ensure_future(agent.aclose(30))
    await asyncio.sleep(0)
    with pytest.raises(AgentClosed):
        agent.call("more", ALICE)
    held.let_go.set()
    await closing
    assert (await call).text == "held"
    assert len(logged(workspace)) == 2


async def test_closing_stops_what_takes_too_long_and_everything_is_stored(workspace: Path) -> None:
    held = Held()
    agent = agent_of(workspace, ScriptedModel([held]))
    call = await started(agent, held)
    waiting = agent.call("me too", ALICE)
    waiting.start()
    await asyncio.sleep(0.01)
    await agent.aclose(0.02)
    assert [type(one.exception()) for one in (call, waiting)] == [CallCancelled, CallCancelled]
    assert logged(workspace) == [("user", "user", "hi")]
    assert [entry["data"]["reason"] for entry in of_kind(ledger(workspace), "abort")] == ["stopped"]


async def test_closing_ends_also_where_a_hook_waits_for_ever_when_it_hears_of_the_end(workspace: Path) -> None:
    held = Held()

    async def wait(event: Error) -> None:
        await asyncio.Event().wait()

    agent = agent_of(workspace, ScriptedModel([held]), hooks=[wait])
    from harness.agent import lifecycle

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lifecycle, "_SECONDS_TO_STOP", 0.02)
        await started(agent, held)
        await asyncio.wait_for(agent.aclose(0.02), 20)
    assert [entry["data"]["reason"] for entry in of_kind(ledger(workspace), "abort")] == ["stopped"]


async def test_closing_twice_is_fine(workspace: Path) -> None:
    agent = agent_of(workspace, ScriptedModel(["hello"]))
    await agent.call("hi", ALICE)
    await agent.aclose()
    await agent.aclose()


async def test_leaving_the_agents_block_writes_the_list_of_sessions(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["hello"])) as agent:
        await agent.call("hi", ALICE)
    assert (workspace / "tenants/alice/agents/notes/sessions/sessions.json").is_file()


async def test_closing_waits_for_calls_of_other_loops(workspace: Path) -> None:
    there, go = threading.Event(), threading.Event()

    def slow() -> str:
        there.set()
        go.wait(20)
        return "x"

    agent = agent_of(workspace, ScriptedModel([call_of("slow"), "done"]), slow)
    thread = threading.Thread(target=lambda: agent.call("hi", ALICE).block())
    thread.start()
    await until(there.is_set)
    closing = asyncio.ensure_future(agent.aclose(30))
    await asyncio.sleep(0.01)
    go.set()
    await closing
    assert logged(workspace)[-1] == ("model", "assistant", "done")
    thread.join()


class Recollecting:
    """Answers prompts at once, and requests for facts when it is let."""

    provider, name, context_window = "test", "recollecting", None

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.let_go = threading.Event()
        self._script = ScriptedModel(["hello", "hello"])

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        if "Extract" not in request.system and "fact" not in request.system.lower():
            async for chunk in self._script.stream(request):
                yield chunk
            return
        self.asked.set()
        await until(self.let_go.is_set)
        async for chunk in ScriptedModel(["- Alice likes tea."]).stream(request):
            yield chunk


def daily_files(workspace: Path) -> list[str]:
    return [path.read_text() for path in (workspace / "tenants/alice/memory").glob("*.md")]


async def test_a_memory_flush_does_not_delay_the_reply_and_closing_waits_for_it(workspace: Path) -> None:
    model = Recollecting()
    agent = agent_of(workspace, model, hooks=[MemoryFlushHook()])
    assert (await agent.call("I like tea.", ALICE)).text == "hello"
    await until(model.asked.is_set)
    assert (await agent.call("the session is free meanwhile", ALICE)).text == "hello"
    assert daily_files(workspace) == []
    closing = asyncio.ensure_future(agent.aclose(30))
    await asyncio.sleep(0.01)
    assert not closing.done()
    model.let_go.set()
    await closing
    assert "Alice likes tea." in daily_files(workspace)[0]


def test_closing_waits_for_a_memory_flush_of_a_script(workspace: Path) -> None:
    model = Recollecting()
    agent = agent_of(workspace, model, hooks=[MemoryFlushHook()])
    agent.call("I like tea.", ALICE).block()
    assert model.asked.wait(10)
    threading.Timer(0.05, model.let_go.set).start()
    asyncio.run(agent.aclose(30))
    assert "Alice likes tea." in daily_files(workspace)[0]


def test_closing_stops_a_memory_flush_that_takes_too_long(workspace: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = Recollecting()
    agent = agent_of(workspace, model, hooks=[MemoryFlushHook()])
    agent.call("I like tea.", ALICE).block()
    assert model.asked.wait(10)
    asyncio.run(agent.aclose(0.02))
    assert daily_files(workspace) == []
    assert (
        "memory flush of agent 'notes', tenant 'alice', session 's1' was stopped: the agent is closing" in caplog.text
    )
    assert agent._lifecycle.background.pending() == {}


async def test_two_steps_hear_two_steers_each_once(workspace: Path) -> None:
    steers = iter(["first", "second"])

    async def hook(event: PreReasoning) -> None:
        running = agent.running(ALICE)
        if running is not None and (word := next(steers, None)):
            running.steer(word)

    model = ScriptedModel([call_of("gone"), call_of("gone"), "done"])
    async with agent_of(workspace, model, hooks=[hook]) as agent:
        await agent.call("hi", ALICE)
    assert [text for via, _, text in logged(workspace) if via == "steer"] == ["first", "second"]
    assert [text for role, text in shown(model.requests[2]) if role == "user"] == ["hi", "first", "second"]
