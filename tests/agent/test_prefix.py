"""Requests begin alike from turn to turn and step to step; where one does not, the ledger says why."""

import itertools
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, agent_of, call_of, ledger, of_kind

from harness import HarnessAgent
from harness.agent import open_session
from harness.errors import ModelRejected
from harness.hooks import CompactionConfig, FunctionHook, PreCall
from harness.models import ModelRequest
from harness.testing import ScriptedModel
from harness.tools import tool


@tool
def dig(n: int) -> str:
    """Dig."""
    return f"layer {n}"


def causes(workspace: Path) -> list[str]:
    return [entry["data"]["cause"] for entry in of_kind(ledger(workspace), "prefix_changed")]


def as_sent(request: ModelRequest) -> list[dict[str, Any]]:
    return [message.to_dict() for message in request.messages]


async def test_system_text_tools_and_older_turns_stay_as_they_are(workspace: Path) -> None:
    steps = ["one", call_of("dig", n=1), call_of("dig", n=2), "two", "three", "four"]
    model = ScriptedModel(steps)
    builder = HarnessAgent.builder().name("notes").model(model).workspace(workspace).tools(dig).system_prompt("Dig.")
    async with builder.build() as agent:
        for text in ("a", "dig twice", "c", "d"):
            await agent.call(text, ALICE)
    requests = model.requests
    assert len({request.system for request in requests}) == 1
    assert all(request.tools == requests[0].tools for request in requests)
    for before, now in itertools.pairwise(requests):
        same_turn = now.messages[-1].role == "tool"
        directive = max(i for i, message in enumerate(before.messages) if message.role == "user")
        stable = as_sent(before) if same_turn else as_sent(before)[:directive]
        assert as_sent(now)[: len(stable)] == stable
    assert causes(workspace) == []


async def test_what_changes_with_every_call_stands_at_the_end(workspace: Path) -> None:
    count = iter(range(9))

    def date(event: PreCall) -> PreCall:
        return event.change(context=(f"It is {next(count)} o'clock.",))

    model = ScriptedModel(["one", "two", "three"])
    async with agent_of(workspace, model, hooks=(FunctionHook(date),)) as agent:
        for text in "abc":
            await agent.call(text, ALICE)
    assert [message.text for message in model.requests[2].messages] == ["a", "one", "b", "two", "c\nIt is 2 o'clock."]
    assert causes(workspace) == []


async def test_each_request_that_ended_well_says_how_it_began(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["one", call_of("dig", n=1), "two"]), dig) as agent:
        await agent.call("a", ALICE)
        await agent.call("b", ALICE)
    digests = [entry["prefixDigest"] for entry in of_kind(ledger(workspace), "request_end")]
    assert (len(digests), len(set(digests))) == (3, 2)
    assert digests[1] == digests[2]


async def test_each_change_is_told_with_its_cause(workspace: Path) -> None:
    def prompt(text: str) -> dict[str, Any]:
        return {"system_prompt": text}

    for tools, options in (
        ((), prompt("One.")), ((), prompt("One.")), ((), prompt("Two.")), ((dig,), prompt("Two.")),
    ):  # fmt: skip
        async with agent_of(workspace, ScriptedModel(["ok"]), *tools, **options) as agent:
            await agent.call("a", ALICE)
        open_session._cache._open.clear()
    async with agent_of(workspace, ScriptedModel(["ok"], name="other"), dig, system_prompt="Two.") as agent:
        await agent.call("a", ALICE)
    assert causes(workspace) == ["system: prompt", "tools", "model"]


async def test_a_compaction_is_a_cause_once(workspace: Path) -> None:
    model = ScriptedModel(["one", "two", "SUMMARY", "three", "four"])
    config = CompactionConfig(trigger_messages=5, keep_messages=2)
    async with agent_of(workspace, model, compaction=config) as agent:
        for text in "abcd":
            await agent.call(text, ALICE)
    assert causes(workspace) == ["compaction"]


async def test_a_turn_that_failed_does_not_change_the_beginning(workspace: Path) -> None:
    model = ScriptedModel(["one", ModelRejected("no"), "three", "four"])
    async with agent_of(workspace, model) as agent:
        await agent.call("a", ALICE)
        with pytest.raises(ModelRejected):
            await agent.call("b", ALICE)
        await agent.call("c", ALICE)
        await agent.call("d", ALICE)
    assert causes(workspace) == []


async def test_a_memory_that_was_changed_is_named(workspace: Path) -> None:
    model = ScriptedModel(["one", "two"])
    builder = HarnessAgent.builder().name("notes").model(model).workspace(workspace)
    async with builder.build() as agent:
        await agent.call("a", ALICE)
        await agent.config.filesystem.for_namespace(("alice",)).write("MEMORY.md", "- likes tea")
        await agent.call("b", ALICE)
    assert causes(workspace) == ["system: memory_context"]
