"""`Call`: it starts with its first consumer, runs once, and everybody sees all of it."""

import asyncio
import contextvars
import gc
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, Held, agent_of, exists, logged, names, until

from harness.errors import BlockInsideLoop, ConfigError, ModelRejected
from harness.messages import Msg
from harness.models import TextDelta
from harness.testing import ScriptedModel

PLAIN = ["pre_call", "pre_reasoning", "reasoning_chunk", "post_reasoning", "post_call"]


async def test_a_call_that_nobody_looks_at_leaves_nothing(workspace: Path) -> None:
    model = ScriptedModel()
    async with agent_of(workspace, model) as agent:
        agent.call("hi", ALICE)
        await asyncio.sleep(0)
    assert model.requests == []
    assert not exists(workspace)


async def test_awaiting_gives_the_reply(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["hello"])) as agent:
        reply = await agent.call("hi", ALICE)
    assert (reply.role, reply.text, reply.model, reply.provider) == ("assistant", "hello", "scripted", "scripted")


async def test_a_second_await_gives_the_same_message_and_runs_nothing(workspace: Path) -> None:
    model = ScriptedModel(["hello"])
    async with agent_of(workspace, model) as agent:
        call = agent.call("hi", ALICE)
        assert await call is await call
    assert len(model.requests) == 1


async def test_a_second_await_gives_the_same_error(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel([ModelRejected("too rude")])) as agent:
        call = agent.call("hi", ALICE)
        with pytest.raises(ModelRejected) as first:
            await call
        with pytest.raises(ModelRejected) as second:
            await call
    assert first.value is second.value is call.exception()


async def test_many_consumers_at_once_share_one_run(workspace: Path) -> None:
    model = ScriptedModel(["hello"])
    async with agent_of(workspace, model) as agent:
        call = agent.call("hi", ALICE)
        seen = await asyncio.gather(names(call), names(call), call, call)
    assert seen[:2] == [PLAIN, PLAIN]
    assert seen[2] is seen[3]
    assert len(model.requests) == 1


async def test_a_late_consumer_gets_all_events_from_the_first(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["hello"])) as agent:
        call = agent.call("hi", ALICE)
        await call
        assert await names(call) == PLAIN


async def test_events_come_while_the_call_runs(workspace: Path) -> None:
    held = Held()
    async with agent_of(workspace, ScriptedModel([held])) as agent:
        events = aiter(agent.call("hi", ALICE))
        assert [(await anext(events)).event, (await anext(events)).event] == ["pre_call", "pre_reasoning"]
        held.let_go.set()
        assert [event.event async for event in events] == PLAIN[2:]


async def test_iterating_a_failed_call_gives_its_events_and_then_the_error(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel([ModelRejected("too rude")])) as agent:
        call = agent.call("hi", ALICE)
        with pytest.raises(ModelRejected, match="too rude"):
            await names(call)
    assert [event.event for event in call.events] == ["pre_call", "pre_reasoning", "error"]


async def test_event_ids_count_within_the_call_and_name_the_request(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["hello"])) as agent:
        events = [event async for event in agent.call("hi", ALICE)]
    assert [event.id.rpartition("/")[2] for event in events] == ["1", "2", "3", "4", "5"]
    chunk = events[2].to_dict()
    assert chunk["id"] == f"{chunk['requestId']}/3"
    assert list(chunk) == ["event", "id", "session", "agent", "turnId", "requestId", "source", "data"]
    assert (chunk["session"], chunk["agent"], chunk["source"], chunk["data"]) == ("s1", "notes", [], {"text": "hello"})


async def test_no_two_calls_share_an_event_id(workspace: Path) -> None:
    model = ScriptedModel(["one", ModelRejected("no"), "two"])
    async with agent_of(workspace, model) as agent:
        calls = [agent.call(text, ALICE, idempotency_key=text) for text in ("a", "b", "b")]  # the last resumes a turn
        await asyncio.gather(*calls, return_exceptions=True)
    ids = [event.id for call in calls for event in call.events]
    assert len(ids) > 10
    assert len(set(ids)) == len(ids)
    assert calls[1].turn_id == calls[2].turn_id
    assert calls[0].events[0].id == f"{calls[0].id}/1"


async def test_the_call_knows_its_turn_its_reply_and_its_usage(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["hello"])) as agent:
        call = agent.call("hi", ALICE)
        reply = await call
        tree = await agent.sessions("alice").tree("s1")
    assert call.turn_id == tree.turn
    assert call.entry_id == tree.entry_id(reply.id)
    assert (call.usage, call.warnings, call.done) == (None, [], True)


async def test_a_call_runs_in_the_context_it_was_written_in(workspace: Path) -> None:
    word = contextvars.ContextVar("word", default="none")
    seen = []

    async def look(event: object) -> None:
        seen.append(word.get())

    async with agent_of(workspace, ScriptedModel(["hello"]), hooks=[look]) as agent:
        word.set("when written")
        call = agent.call("hi", ALICE)
        word.set("when awaited")
        await call
    assert set(seen) == {"when written"}


async def test_break_alone_does_not_stop_the_call(workspace: Path) -> None:
    held = Held()
    async with agent_of(workspace, ScriptedModel([held])) as agent:
        call = agent.call("hi", ALICE)
        async for _ in call:
            break
        gc.collect()
        held.let_go.set()
        assert (await call).text == "held"


async def test_after_a_break_nobody_need_look_for_the_call_to_end(workspace: Path) -> None:
    held = Held()
    async with agent_of(workspace, ScriptedModel([held])) as agent:
        call = agent.call("hi", ALICE)
        async for _ in call:
            break
        held.let_go.set()
        await until(lambda: call.done)
    assert logged(workspace)[-1] == ("model", "assistant", "held")


async def test_a_cancelled_await_beside_an_iterator_does_not_stop_the_call(workspace: Path) -> None:
    held = Held()
    async with agent_of(workspace, ScriptedModel([held])) as agent:
        call = agent.call("hi", ALICE)
        watching = asyncio.ensure_future(names(call))
        awaiting = asyncio.ensure_future(call._wait())
        await held.asked.wait()
        awaiting.cancel()
        await asyncio.wait([awaiting])
        assert not call.done
        held.let_go.set()
        assert await watching == PLAIN


async def test_one_of_two_cancelled_awaits_does_not_stop_the_call(workspace: Path) -> None:
    held = Held()

    async def wait() -> str:
        return (await call).text

    async with agent_of(workspace, ScriptedModel([held])) as agent:
        call = agent.call("hi", ALICE)
        first, second = asyncio.ensure_future(wait()), asyncio.ensure_future(wait())
        await held.asked.wait()
        first.cancel()
        await asyncio.wait([first])
        held.let_go.set()
        assert await second == "held"


def test_block_gives_the_reply_in_a_script(workspace: Path) -> None:
    agent = agent_of(workspace, ScriptedModel(["hello"]))
    assert agent.call("hi", ALICE).block().text == "hello"


def test_block_raises_what_ended_the_call(workspace: Path) -> None:
    agent = agent_of(workspace, ScriptedModel([ModelRejected("too rude")]))
    with pytest.raises(ModelRejected, match="too rude"):
        agent.call("hi", ALICE).block()


async def test_block_refuses_to_stop_a_running_loop(workspace: Path) -> None:
    model = ScriptedModel()
    async with agent_of(workspace, model) as agent:
        with pytest.raises(BlockInsideLoop, match="await"):
            agent.call("hi", ALICE).block()
    assert model.requests == []


def test_block_from_several_threads_waits_for_one_run(workspace: Path) -> None:
    model = ScriptedModel(["hello"], delay=0.01)
    call = agent_of(workspace, model).call("hi", ALICE)
    replies = []
    threads = [threading.Thread(target=lambda: replies.append(call.block())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {id(reply) for reply in replies} == {id(call.block())}
    assert len(model.requests) == 1


async def test_another_threads_loop_can_await_a_call_of_this_one(workspace: Path) -> None:
    held = Held()

    async def elsewhere() -> tuple[str, list[str]]:
        return (await call).text, await names(call)

    async with agent_of(workspace, ScriptedModel([held])) as agent:
        call = agent.call("hi", ALICE)
        call.start()
        other = asyncio.create_task(asyncio.to_thread(lambda: asyncio.run(elsewhere())))
        await held.asked.wait()
        held.let_go.set()
        text, events = await other
    assert text == "held"
    assert events == PLAIN


def test_a_call_outlives_the_loop_that_looked_at_it_first_from_a_script(workspace: Path) -> None:
    model = ScriptedModel(["hello"])
    call = agent_of(workspace, model).call("hi", ALICE)
    assert call.block().text == "hello"
    assert asyncio.run(names(call)) == PLAIN


async def test_thinking_and_tool_calls_stream_as_what_they_are(workspace: Path) -> None:
    answer = [TextDelta("one "), TextDelta(""), TextDelta("two")]
    async with agent_of(workspace, ScriptedModel([answer])) as agent:
        chunks = [event.data async for event in agent.call("hi", ALICE) if event.event == "reasoning_chunk"]
    assert chunks == [{"text": "one "}, {"text": "two"}]


@pytest.mark.parametrize("message", [[], 7, None, {}, [7], [["nested"]]])
async def test_what_is_no_message_is_refused_at_once(workspace: Path, message: object) -> None:
    async with agent_of(workspace, ScriptedModel()) as agent:
        with pytest.raises(ConfigError, match=r"message|text"):
            agent.call(message, ALICE)  # type: ignore[arg-type]


@pytest.mark.parametrize("message", ["", [""], Msg.user(""), ["Hello", ""]])
async def test_a_message_without_content_is_refused_at_once(workspace: Path, message: Any) -> None:
    async with agent_of(workspace, ScriptedModel()) as agent:
        with pytest.raises(ConfigError, match="a message without content cannot be sent; give it text or a block"):
            agent.call(message, ALICE)


async def test_no_message_at_all_is_told_as_that(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel()) as agent:
        with pytest.raises(ConfigError, match="a call without a message cannot be made; give text, a Msg, or a list"):
            agent.call([], ALICE)


async def test_an_eager_loop_runs_a_call_just_the_same(workspace: Path) -> None:
    if sys.version_info < (3, 12):
        pytest.skip("tasks start eagerly from Python 3.12 on")
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
    async with agent_of(workspace, ScriptedModel(["hello"])) as agent:
        assert (await agent.call("hi", ALICE)).text == "hello"
