"""A session goes on in a new one, which begins with word of the old."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import (
    ALICE,
    agent_of,
    call_of,
    context_folder,
    inexact,
    json_lines,
    ledger,
    logged,
    of_kind,
    sessions_folder,
    shown,
)

from harness import HarnessAgent, RuntimeContext
from harness.agent import open_session
from harness.errors import SessionExists, SessionNotFound
from harness.hooks import CompactionConfig
from harness.sessions import InMemorySession
from harness.testing import ScriptedModel

NEXT = RuntimeContext(session_id="next", user_id="alice")
BLOCK = """[handoff_from]
session: "s1"
workspace: the same files of the same user
previous_provider: scripted
previous_model: old
[/handoff_from]
This conversation goes on from that session. Nothing of it is repeated here.
Read it with session_history(session_id="s1") where it matters."""


def agent_with(workspace: Path, model: ScriptedModel, **options: object) -> HarnessAgent:
    open_session._cache._open.clear()
    builder = HarnessAgent.builder().name("notes").model(model).workspace(workspace).without("workspace_context")
    if "compaction" in options:
        builder = builder.compaction(options["compaction"])
    return builder.build()


async def handed_over(workspace: Path, to: str | None = "next") -> str:
    async with agent_with(workspace, ScriptedModel(["The code is blue-fox."], name="old")) as agent:
        await agent.call("What is the code?", ALICE)
        return await agent.sessions("alice").handoff("s1", to)


async def test_the_first_message_opens_with_the_handoff_and_holds_none_of_the_history(workspace: Path) -> None:
    await handed_over(workspace)
    before = (sessions_folder(workspace) / "s1.log.jsonl").read_bytes()
    model = ScriptedModel(["Go on."], name="new")
    async with agent_with(workspace, model) as agent:
        await agent.call("Let us go on.", NEXT)
        assert await inexact(agent, NEXT) == []
    assert [message.role for message in model.requests[0].messages] == ["user"]
    assert [block.text for block in model.requests[0].messages[0].blocks] == [BLOCK, "Let us go on."]
    assert "blue-fox" not in str(model.requests[0])
    assert (sessions_folder(workspace) / "s1.log.jsonl").read_bytes() == before


async def test_the_model_reads_the_old_session_with_its_tool(workspace: Path) -> None:
    await handed_over(workspace)
    model = ScriptedModel([[call_of("session_history", session_id='"s1"')], "It is blue-fox."])
    async with agent_with(workspace, model) as agent:
        await agent.call("What was the code?", NEXT)
    assert "The code is blue-fox." in model.requests[1].messages[-1].tool_results[0].text


async def test_the_offline_model_takes_nothing_of_the_handoff_for_a_question(workspace: Path) -> None:
    await handed_over(workspace)
    async with HarnessAgent.builder().name("notes").model("offline").workspace(workspace).build() as agent:
        assert (await agent.call("Where were we?", NEXT)).text == "I do not find that in this conversation."


async def test_the_header_names_the_old_session_and_the_line(workspace: Path) -> None:
    assert await handed_over(workspace) == "next"
    source, new = ledger(workspace), ledger(workspace, "next")
    assert new[0]["parent"] == {"session": "s1", "entry": source[-1]["id"]}
    assert [entry["value"] for entry in of_kind(new, "state")] == [
        {"session": "s1", "entry": source[-1]["id"], "previousModel": {"provider": "scripted", "model": "old"}}
    ]


async def test_it_is_said_once_in_new_processes_and_after_a_compaction_too(workspace: Path) -> None:
    await handed_over(workspace)
    config = CompactionConfig(keep_messages=0, model=ScriptedModel(["SUMMARY"]))
    async with agent_with(workspace, ScriptedModel(["one", "two"]), compaction=config) as agent:
        await agent.call("first", NEXT)
        await agent.call("second", NEXT)
        assert await agent.sessions("alice").compact("next")
    async with agent_with(workspace, ScriptedModel(["three"])) as agent:
        await agent.call("third", NEXT)
        assert (await agent.sessions("alice").verify("next")).ok
    asked = [text for via, _, text in logged(workspace, "next") if via == "user"]
    assert [text.endswith(word) for text, word in zip(asked, ("first", "second", "third"), strict=True)] == [True] * 3
    assert ["[handoff_from]" in text for text in asked] == [True, False, False]


async def test_the_title_is_what_the_person_said(workspace: Path) -> None:
    await handed_over(workspace)
    async with agent_with(workspace, ScriptedModel(["one"])) as agent:
        await agent.call("Let us go on.", NEXT)
        titles = {info.id: info.title for info in await agent.sessions("alice").list()}
    assert titles["next"] == "Let us go on."
    (sessions_folder(workspace) / "sessions.json").unlink()
    async with agent_with(workspace, ScriptedModel()) as agent:
        assert {info.id: info.title for info in await agent.sessions("alice").list()} == titles


async def test_without_an_id_a_new_one_is_made(workspace: Path) -> None:
    made = await handed_over(workspace, None)
    assert made.startswith("session-")
    assert ledger(workspace, made)[0]["session"] == made


async def test_neither_another_users_session_nor_an_existing_one_is_touched(workspace: Path) -> None:
    await handed_over(workspace)
    async with agent_with(workspace, ScriptedModel(["one"])) as agent:
        with pytest.raises(SessionNotFound):
            await agent.sessions("bob").handoff("s1", "next")
        with pytest.raises(SessionExists):
            await agent.sessions("alice").handoff("s1", "next")
        with pytest.raises(SessionExists):
            await agent.sessions("alice").handoff("next", "s1")
    assert not sessions_folder(workspace, "bob").exists() or list(sessions_folder(workspace, "bob").iterdir()) == []


@pytest.mark.parametrize("store", [InMemorySession, None], ids=["own", "workspace"])
async def test_a_session_that_lives_in_a_store_alone_is_not_taken_for_a_new_one(workspace: Path, store: Any) -> None:
    model = ScriptedModel(["one", "mine", "on"])
    async with agent_of(workspace, model, **({"session": store()} if store else {})) as agent:
        await agent.call("old", ALICE)
        await agent.call("secret", NEXT)
        for name in ("next.log.jsonl", "next.head.json"):
            (sessions_folder(workspace) / name).unlink()
        open_session._cache._open.clear()
        with pytest.raises(SessionExists, match="in the store of its state"):
            await agent.sessions("alice").handoff("s1", "next")
        assert not (sessions_folder(workspace) / "next.log.jsonl").exists()
        await agent.call("go on", NEXT)
    assert [text for _, text in shown(model.requests[2])] == ["secret", "mine", "go on"]


async def test_an_ordinary_session_has_nothing_of_it(workspace: Path) -> None:
    async with agent_with(workspace, ScriptedModel(["one"])) as agent:
        await agent.call("hi", ALICE)
    assert shown_first(workspace) == "hi"
    assert not (context_folder(workspace) / "handoff.json").exists()


def shown_first(workspace: Path) -> str:
    first = json_lines(context_folder(workspace) / "memory_messages.jsonl")[0]
    return first["content"][0]["text"]


async def test_without_session_tools_no_tool_is_named(workspace: Path) -> None:
    await handed_over(workspace)
    model = ScriptedModel(["one"])
    builder = HarnessAgent.builder().name("notes").model(model).workspace(workspace)
    async with builder.without("workspace_context", "session_tools").build() as agent:
        await agent.call("hi", NEXT)
    assert "session_history" not in shown(model.requests[0])[0][1]
