"""A session goes on with another model or other tools: what is sealed stays with its maker, the change is recorded (B37, B62)."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import (
    ALICE,
    agent_of,
    assert_pair_complete,
    context_folder,
    inexact,
    ledger,
    messages_of_case,
    of_kind,
    sessions_folder,
    shown,
)  # fmt: skip

from harness.agent import open_session
from harness.errors import ModelRejected, SessionNotFound
from harness.hooks import CompactionConfig, Notice, PostCall
from harness.messages import Msg, Opaque, ThinkingBlock
from harness.models import ModelRequest, register_model
from harness.testing import ScriptedModel
from harness.tools import tool

A = {"provider": "maker-a", "name": "a-1"}
B = {"provider": "maker-b", "name": "b-1"}
WHOLE = CompactionConfig(keep_messages=0)
PAIR_A = {"provider": "maker-a", "model": "a-1"}
PAIR_B = {"provider": "maker-b", "model": "b-1"}


@tool
async def search(q: str) -> str:
    """Search."""
    return "found"


@tool
async def look(q: str) -> str:
    """Look."""
    return "seen"


@tool(name="look")
async def other_look(place: str) -> str:
    """Look elsewhere."""
    return "seen"


def new_process() -> None:
    open_session._cache._open.clear()


async def say(workspace: Path, model: ScriptedModel, text: str, *tools: Any, **options: Any) -> ModelRequest:
    new_process()
    async with agent_of(workspace, model, *tools, **options) as agent:
        await agent.call(text, ALICE)
        assert await inexact(agent, ALICE) == []
    assert_pair_complete(model.requests[-1])
    return model.requests[-1]


def events(workspace: Path, kind: str) -> list[dict[str, Any]]:
    return [entry["data"] for entry in of_kind(ledger(workspace), kind)]


def ids(request: ModelRequest) -> tuple[list[str], list[str]]:
    calls = [use.id for message in request.messages for use in message.tool_uses]
    results = [result.id for message in request.messages for result in message.tool_results]
    return calls, results


async def test_ids_of_calls_fit_the_other_provider_and_come_back(workspace: Path, shared: Path) -> None:
    case = json.loads((shared / "cases/B37/foreign-ids.json").read_bytes())
    said = [
        m.with_changes(provider=A["provider"], model=A["name"]) if m.role == "assistant" else m
        for m in messages_of_case(case)
    ]
    async with agent_of(workspace, ScriptedModel(["So it is."], **A), search) as agent:
        await agent.call([*said, Msg.user("And?")], ALICE)
    before = (sessions_folder(workspace) / "s1.log.jsonl").read_bytes()
    original = [call["id"] for message in case for call in message.get("calls", [])]
    to_b = await say(workspace, ScriptedModel(["Yes."], **B), "Again.", search)
    calls, results = ids(to_b)
    assert calls == results
    assert len(set(calls)) == len(original) == 5
    assert [call for call in calls if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call)] == []
    to_a = await say(workspace, ScriptedModel(["Yes."], **A), "Once more.", search)
    assert ids(to_a) == (original, original)
    assert (sessions_folder(workspace) / "s1.log.jsonl").read_bytes().startswith(before)


async def test_sealed_blocks_are_left_out_for_the_other_and_are_there_again_for_their_maker(
    workspace: Path, shared: Path
) -> None:
    case = json.loads((shared / "cases/B37/sealed-blocks.json").read_bytes())
    sealed = [ThinkingBlock(text="", opaque=Opaque(provider="maker-a", model="a-1", data=data)) for data in case]
    await say(workspace, ScriptedModel([Msg.assistant(*sealed, "Yes.")], **A), "Think.")
    to_b = await say(workspace, ScriptedModel(["No."], **B), "Again.")
    assert [block for message in to_b.messages for block in message.blocks if getattr(block, "opaque", None)] == []
    assert shown(to_b)[1] == ("assistant", "Yes.")
    to_a = await say(workspace, ScriptedModel(["Yes."], **A), "Once more.")
    back = [block.opaque.data for message in to_a.messages for block in message.blocks if block.type == "thinking"]
    assert [json.dumps(data) for data in back] == [json.dumps(data) for data in case]


async def test_a_switch_is_recorded_once_with_its_time_in_both_tracks(workspace: Path) -> None:
    for model in (A, A, B, B, A):
        await say(workspace, ScriptedModel(["ok"], **model), "hi")
    switches = of_kind(ledger(workspace), "model_switch")
    assert [entry["data"] for entry in switches] == [{"from": PAIR_A, "to": PAIR_B}, {"from": PAIR_B, "to": PAIR_A}]
    assert all(entry["timestamp"] and entry["turnId"] for entry in switches)
    meta = json.loads((context_folder(workspace) / "agent_meta.json").read_bytes())
    assert {key: meta["model"][key] for key in ("provider", "model")} == PAIR_A
    assert switches[0]["timestamp"][:10] <= meta["model"]["since"][:10] <= switches[1]["timestamp"][:10]
    assert ledger(workspace)[0]["provider"] == "maker-a"


async def test_a_switch_for_one_call_is_recorded_too_and_the_way_back(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["one", "three"], **A)) as agent:
        await agent.call("hi", ALICE)
        call = agent.call("hi", ALICE, model=ScriptedModel(["two"], **B))
        seen = [event async for event in call if event.event == "notice"]
        await agent.call("hi", ALICE)
    assert [event.data["kind"] for event in seen] == ["model_switch"]
    assert events(workspace, "model_switch") == [{"from": PAIR_A, "to": PAIR_B}, {"from": PAIR_B, "to": PAIR_A}]


async def test_a_switch_after_a_compaction_is_recorded(workspace: Path) -> None:
    config = CompactionConfig(keep_messages=0, model=ScriptedModel(["SUMMARY"]))
    async with agent_of(workspace, ScriptedModel(["one"], **A), compaction=config) as agent:
        await agent.call("hi", ALICE)
        assert await agent.sessions("alice").compact("s1")
    await say(workspace, ScriptedModel(["two"], **B), "hi")
    assert events(workspace, "model_switch") == [{"from": PAIR_A, "to": PAIR_B}]


async def test_switching_on_purpose_sums_up_on_the_old_model_and_records_it_once(workspace: Path) -> None:
    old = ScriptedModel(["one", "SUMMARY BY A"], **A)
    async with agent_of(workspace, old, fallback_models=ScriptedModel(**B), compaction=WHOLE) as agent:
        await agent.call("hi", ALICE)
        new = ScriptedModel(["two"], **B)
        assert await agent.sessions("alice").switch_model("s1", new) is True
        await agent.call("go on", ALICE, model=new)
        assert (await agent.sessions("alice").verify("s1")).ok
    assert "SUMMARY BY A" in shown(new.requests[0])[0][1]
    assert events(workspace, "model_switch") == [{"from": PAIR_A, "to": PAIR_B, "compacted": True}]
    assert [entry["model"] for entry in of_kind(ledger(workspace), "compaction")] == ["maker-a:a-1"]


async def test_switching_on_purpose_finds_the_old_model_by_its_name(workspace: Path) -> None:
    old = ScriptedModel(["one", "SUMMARY BY A"], **A)
    register_model("maker-a:a-1", lambda: old)
    async with agent_of(workspace, old) as agent:
        await agent.call("hi", ALICE)
    new_process()
    new = ScriptedModel(["two"], **B)
    async with agent_of(workspace, new, compaction=WHOLE) as agent:
        assert await agent.sessions("alice").switch_model("s1", new) is True
        await agent.call("go on", ALICE)
    old.assert_finished()
    new.assert_finished()


async def test_a_switch_whose_summary_fails_changes_nothing(workspace: Path) -> None:
    old = ScriptedModel(["one", ModelRejected("no")], **A)
    async with agent_of(workspace, old, compaction=WHOLE) as agent:
        await agent.call("hi", ALICE)
        with pytest.raises(ModelRejected):
            await agent.sessions("alice").switch_model("s1", ScriptedModel(**B))
        with pytest.raises(SessionNotFound):
            await agent.sessions("bob").switch_model("s1", ScriptedModel(**B))
    assert events(workspace, "model_switch") == []
    assert of_kind(ledger(workspace), "compaction") == []


async def test_a_switch_without_a_summary_is_only_recorded(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["one"], **A)) as agent:
        await agent.call("hi", ALICE)
        assert await agent.sessions("alice").switch_model("s1", ScriptedModel(**B), compact=False) is False
    assert events(workspace, "model_switch") == [{"from": PAIR_A, "to": PAIR_B, "compacted": False}]


async def test_a_session_whose_model_is_gone_can_be_read(workspace: Path) -> None:
    await say(workspace, ScriptedModel(["one"], provider="nowhere", name="gone"), "hi")
    async with agent_of(workspace, "offline") as agent:
        assert [message.text for message in await agent.sessions("alice").history("s1")] == ["hi", "one"]
        assert (await agent.call("hi", ALICE)).text


@pytest.mark.parametrize("compacted", [False, True])
async def test_changed_tools_are_recorded_once(workspace: Path, compacted: bool) -> None:
    await say(workspace, ScriptedModel(["ok"]), "hi", search, look)
    if compacted:
        config = CompactionConfig(keep_messages=0, model=ScriptedModel(["SUMMARY"]))
        async with agent_of(workspace, ScriptedModel(), search, look, compaction=config) as agent:
            assert await agent.sessions("alice").compact("s1")
    for _ in range(2):
        await say(workspace, ScriptedModel(["ok"]), "hi", other_look)
    assert events(workspace, "tools_changed") == [{"added": [], "removed": ["search"], "changed": ["look"]}]
    await say(workspace, ScriptedModel(["ok"]), "hi", other_look, search)
    assert events(workspace, "tools_changed")[1:] == [{"added": ["search"], "removed": [], "changed": []}]


async def test_hooks_are_told_of_a_switch(workspace: Path) -> None:
    seen = []

    class Watch:
        events = (Notice, PostCall)

        async def on_event(self, event):
            seen.append(getattr(event, "kind", "post_call"))

    await say(workspace, ScriptedModel(["ok"], **A), "hi")
    await say(workspace, ScriptedModel(["ok"], **B), "hi", hooks=(Watch(),))
    assert seen == ["model_switch", "post_call"]


async def test_the_same_agent_again_records_nothing_more(workspace: Path) -> None:
    for _ in range(3):
        await say(workspace, ScriptedModel(["ok"], **A), "hi", search)
    assert [entry["module"] for entry in of_kind(ledger(workspace), "state")] == ["agent_meta"]
    assert of_kind(ledger(workspace), "event") == []
