"""Ledgers of this library among the sessions of others: who started them, what they are called, whose they are."""

from pathlib import Path

import pytest

from harness import HarnessAgent, RuntimeContext
from harness.testing import ScriptedModel
from harness.transcripts import Candidate, candidates, read

CTX = RuntimeContext(session_id="s1", user_id="alice")


def agent_in(workspace: Path, *answers: str) -> HarnessAgent:
    return HarnessAgent.builder().name("notes").model(ScriptedModel(answers)).workspace(workspace).build()


def by_id(workspace: Path) -> dict[str, Candidate]:
    return {one.session_id: one for one in candidates(workspace)}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path / "ws"


async def test_a_session_that_was_handed_over_is_no_sub_agents(workspace: Path) -> None:
    async with agent_in(workspace, "Hello.", "Go on.") as agent:
        await agent.call("I am Alice.", CTX)
        await agent.sessions("alice").handoff("s1", "s2")
        await agent.call("Go on, please.", CTX.with_changes(session_id="s2"))
    found = by_id(workspace)["s2"]
    assert (found.subagent_of, found.title, found.prompt) == (None, "Go on, please.", "Go on, please.")
    assert [turn.text for turn in read(found.path).turns if turn.kind == "prompt"] == ["Go on, please."]


async def test_a_session_is_called_what_somebody_called_it_last(workspace: Path) -> None:
    async with agent_in(workspace, "Hello.") as agent:
        await agent.call("I am Alice.", CTX)
        await agent.sessions("alice").rename("s1", "First name")
        await agent.sessions("alice").rename("s1", "Second name")
    found = by_id(workspace)["s1"]
    assert (found.title, read(found.path).head.title) == ("Second name", "Second name")


async def test_a_name_that_was_given_in_the_middle_of_a_long_session_is_listed(workspace: Path) -> None:
    async with agent_in(workspace, *["Long. " * 20_000] * 3) as agent:
        await agent.call("Begin.", CTX)
        await agent.call("Go on.", CTX)
        await agent.sessions("alice").rename("s1", "In the middle")
        await agent.call("End.", CTX)
    assert by_id(workspace)["s1"].title == "In the middle"


async def test_a_ledger_says_whose_it_is(workspace: Path) -> None:
    async with agent_in(workspace, "Hello.") as agent:
        await agent.call("I am Alice.", CTX)
    found = by_id(workspace)["s1"].to_dict()
    assert (found["tenant"], found["agent"]) == ("alice", "notes")
