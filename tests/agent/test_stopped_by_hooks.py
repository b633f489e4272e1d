"""A turn that a hook has ended has its reply: the same key gets it again, and no tool runs a second time."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, Held, agent_of, call_of, logged

from harness import CompactionConfig, HarnessAgent, tool
from harness.agent.open_session import _cache
from harness.errors import CallCancelled
from harness.hooks import PostActing, PostReasoning
from harness.testing import ScriptedModel


def after_reasoning(event: PostReasoning) -> PostReasoning:
    return event.change(stop=bool(event.message.tool_uses))


def after_acting(event: PostActing) -> PostActing:
    return event.change(stop=True)


async def _nothing(agent: HarnessAgent) -> None:
    assert agent


async def _another_prompt(agent: HarnessAgent) -> None:
    await agent.call("And now?", ALICE)


async def _another_process(agent: HarnessAgent) -> None:
    assert agent
    _cache._open.clear()


async def _a_boundary(agent: HarnessAgent) -> None:
    await agent.call("And now?", ALICE)
    assert await agent.sessions("alice").compact("s1")  # the first turn lies before it


@pytest.mark.parametrize("meanwhile", [_nothing, _another_prompt, _another_process, _a_boundary])
@pytest.mark.parametrize("stop", [after_reasoning, after_acting])
async def test_the_reply_of_a_turn_that_a_hook_has_ended_is_given_again(
    workspace: Path, stop: Any, meanwhile: Any
) -> None:
    paid: list[str] = []

    @tool
    def pay(order: str) -> str:
        """Pay an order."""
        paid.append(order)
        return "paid"

    model = ScriptedModel([["Paying now.", call_of("pay", order="7")], "Nothing else.", "A summary."])
    by_hand = CompactionConfig(trigger_messages=1000, keep_messages=2)
    async with agent_of(workspace, model, pay, hooks=[stop], compaction=by_hand) as agent:
        first = agent.call("Pay order 7", ALICE, idempotency_key="k")
        reply = await first
        ran = len(paid)
        await meanwhile(agent)
        before, asked = logged(workspace), len(model.requests)
        second = agent.call("Pay order 7", ALICE, idempotency_key="k")
        assert (await second).text == "Paying now."
        assert (await second).id == reply.id
        third = agent.call("Pay order 8", ALICE, idempotency_key="k")
        assert (await third).id == reply.id
    assert (second.entry_id, second.turn_id) == (first.entry_id, first.turn_id)
    assert second.warnings == []
    assert ["used before, with another message" in warning for warning in third.warnings] == [True]
    assert (len(paid), len(model.requests), logged(workspace)) == (ran, asked, before)


async def test_a_turn_that_its_caller_stopped_is_asked_again(workspace: Path) -> None:
    held = Held()
    tools: list[str] = []

    @tool
    async def look() -> str:
        """Look at something."""
        tools.append("look")
        if len(tools) == 1:
            held.asked.set()
            await held.let_go.wait()
        return "seen"

    model = ScriptedModel([call_of("look"), "between", "an answer"])
    async with agent_of(workspace, model, look) as agent:
        call = agent.call("Look", ALICE, idempotency_key="k")
        call.start()
        await held.asked.wait()
        call.cancel()
        with pytest.raises(CallCancelled):
            await call
        await agent.call("Something else", ALICE)
        assert (await agent.call("Look", ALICE, idempotency_key="k")).text == "an answer"
