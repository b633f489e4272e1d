"""Each of the two tracks is enough to go on, and writing them costs what is new (B25)."""

import shutil
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import (
    ALICE,
    agent_of,
    context_folder,
    json_lines,
    ledger,
    logged,
    of_kind,
    sessions_folder,
    shown,
    strict,
)

from harness import RuntimeContext
from harness.agent import open_session
from harness.hooks import CompactionConfig
from harness.sessions import InMemorySession, JsonSession, verify_chain
from harness.testing import ScriptedModel
from harness.tools import tool

TWO_TURNS = [("user", "first"), ("assistant", "one"), ("user", "second"), ("assistant", "two")]


class Counting:
    """A state module that counts how often it was asked to."""

    name = "counting"

    def __init__(self) -> None:
        self.count = 0

    def save(self) -> dict[str, Any] | None:
        return {"count": self.count} if self.count else None

    def load(self, value: dict[str, Any]) -> None:
        self.count = value["count"]


@tool
def count(counting: Counting) -> str:
    """Count one more."""
    counting.count += 1
    return f"that makes {counting.count}"


def all_bytes(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def new_process() -> None:
    open_session._cache._open.clear()


async def two_turns(workspace: Path, **options: Any) -> None:
    async with agent_of(workspace, ScriptedModel(["one", "two"]), **options) as agent:
        await agent.call("first", ALICE)
        await agent.call("second", ALICE)
    new_process()


async def third_turn(workspace: Path, **options: Any) -> tuple[list[tuple[str, str]], list[str]]:
    """What the model sees in a third turn, and what the caller is warned of."""
    model = ScriptedModel(["three"])
    async with agent_of(workspace, model, **options) as agent:
        call = agent.call("third", ALICE)
        await call
    return shown(model.requests[0]), call.warnings


async def test_both_tracks_hold_the_conversation(workspace: Path) -> None:
    await two_turns(workspace)
    messages = json_lines(context_folder(workspace) / "memory_messages.jsonl")
    assert [(message["role"], message["content"][0]["text"]) for message in messages] == TWO_TURNS
    assert [(role, text) for _, role, text in logged(workspace)] == TWO_TURNS
    position = strict((context_folder(workspace) / "memory.json").read_bytes())
    lines = ledger(workspace)
    assert position["ledgerId"] == lines[0]["ledgerId"]
    assert (position["seq"], position["count"]) == (len(lines), 4)


async def test_without_track_1_the_conversation_goes_on(workspace: Path) -> None:
    await two_turns(workspace)
    shutil.rmtree(context_folder(workspace).parent)
    assert await third_turn(workspace) == ([*TWO_TURNS, ("user", "third")], [])
    assert len(json_lines(context_folder(workspace) / "memory_messages.jsonl")) == 6


async def test_without_track_2_the_conversation_goes_on_and_the_ledger_gets_it_back(workspace: Path) -> None:
    await two_turns(workspace)
    shutil.rmtree(sessions_folder(workspace))
    seen, warnings = await third_turn(workspace)
    assert seen == [*TWO_TURNS, ("user", "third")]
    assert len(warnings) == 1
    assert [(via, text) for via, _, text in logged(workspace)] == [
        ("repair", "first"), ("repair", "one"), ("repair", "second"), ("repair", "two"),
        ("user", "third"), ("model", "three"),
    ]  # fmt: skip
    assert verify_chain((sessions_folder(workspace) / "s1.log.jsonl").read_bytes()) == []


@pytest.mark.parametrize("gone", ["s1.jsonl", "s1.head.json", "s1.lock", "sessions.json"])
async def test_what_can_be_made_again_may_go(workspace: Path, gone: str) -> None:
    await two_turns(workspace)
    (sessions_folder(workspace) / gone).unlink()
    seen, _ = await third_turn(workspace)
    assert seen == [*TWO_TURNS, ("user", "third")]
    assert (sessions_folder(workspace) / gone).is_file()


async def test_a_store_elsewhere_alone_is_enough(workspace: Path, tmp_path: Path) -> None:
    await two_turns(workspace, session=JsonSession(tmp_path / "store"))
    shutil.rmtree(workspace)
    seen, _ = await third_turn(workspace, session=JsonSession(tmp_path / "store"))
    assert seen == [*TWO_TURNS, ("user", "third")]


async def test_an_empty_store_is_filled_from_the_ledger(workspace: Path) -> None:
    await two_turns(workspace)
    store = InMemorySession()
    seen, warnings = await third_turn(workspace, session=store)
    assert (seen, warnings) == ([*TWO_TURNS, ("user", "third")], [])
    [key] = await store.list_keys(("alice",), "notes")
    assert len(await store.get_list(key, "memory_messages")) == 6


@pytest.mark.parametrize("gone", ["context", "sessions", "nothing"])
async def test_state_modules_come_back_from_either_track(workspace: Path, gone: str) -> None:
    calls = [ScriptedModel.tool_call("count") for _ in range(3)]
    model = ScriptedModel([calls[0], "a", calls[1], "b"])
    async with agent_of(workspace, model, count, state_module=Counting) as agent:
        await agent.call("count", ALICE)
        await agent.call("count", ALICE)
    new_process()
    shutil.rmtree(workspace / "tenants/alice/agents/notes" / gone, ignore_errors=True)
    last = ScriptedModel([calls[2], "c"])
    async with agent_of(workspace, last, count, state_module=Counting) as agent:
        await agent.call("count", ALICE)
    assert last.requests[1].messages[-1].tool_results[0].text == "that makes 3"
    assert strict((context_folder(workspace) / "counting.json").read_bytes()) == {"count": 3}


async def test_state_is_logged_only_when_it_has_changed(workspace: Path) -> None:
    model = ScriptedModel([ScriptedModel.tool_call("count"), "a", "b", "c"])
    async with agent_of(workspace, model, count, state_module=Counting) as agent:
        for prompt in ("count", "and?", "and?"):
            await agent.call(prompt, ALICE)
    states = [entry for entry in of_kind(ledger(workspace), "state") if entry["module"] == "counting"]
    assert [entry["value"] for entry in states] == [{"count": 1}]


async def test_state_of_one_session_is_not_anothers(workspace: Path) -> None:
    model = ScriptedModel([ScriptedModel.tool_call("count"), "a", ScriptedModel.tool_call("count"), "b"])
    async with agent_of(workspace, model, count, state_module=Counting) as agent:
        await agent.call("count", ALICE)
        await agent.call("count", RuntimeContext(session_id="s2", user_id="alice"))
    assert model.requests[3].messages[-1].tool_results[0].text == "that makes 1"


async def test_state_of_a_call_that_failed_is_kept(workspace: Path) -> None:
    from harness.errors import ModelRejected

    model = ScriptedModel([ScriptedModel.tool_call("count"), ModelRejected("no")])
    async with agent_of(workspace, model, count, state_module=Counting) as agent:
        with pytest.raises(ModelRejected):
            await agent.call("count", ALICE)
    assert strict((context_folder(workspace) / "counting.json").read_bytes()) == {"count": 1}


async def test_growing_snapshots_are_appended_and_not_written_anew(workspace: Path) -> None:
    path = context_folder(workspace) / "memory_messages.jsonl"
    seen = []
    async with agent_of(workspace, ScriptedModel(["x"] * 5)) as agent:
        for n in range(5):
            await agent.call(f"prompt {n}", ALICE)
            seen.append((path.stat().st_ino, path.read_bytes()))
    assert len({inode for inode, _ in seen}) == 1
    assert all(after[1].startswith(before[1]) for before, after in pairwise(seen))


async def test_a_snapshot_is_written_anew_after_a_compaction_and_then_appended_again(workspace: Path) -> None:
    path = context_folder(workspace) / "memory_messages.jsonl"
    model = ScriptedModel(["a", "b", "SUMMARY", "c", "d"])
    inodes = []
    async with agent_of(workspace, model, compaction=CompactionConfig(trigger_messages=5, keep_messages=2)) as agent:
        for n in range(4):
            await agent.call(f"prompt {n}", ALICE)
            inodes.append(path.stat().st_ino)
    assert [a == b for a, b in pairwise(inodes)] == [True, False, True]
    texts = [message["content"][0]["text"] for message in json_lines(path)]
    assert texts == [
        "<context_summary>\nSUMMARY\n</context_summary>", "prompt 2", "c", "prompt 3", "d",
    ]  # fmt: skip


# ---- B25: each message once, and the cost of a call does not grow


def sizes(workspace: Path) -> dict[str, int]:
    files = [*sessions_folder(workspace).glob("s1*"), *context_folder(workspace).glob("memory_messages.jsonl")]
    return {path.name: path.stat().st_size for path in files}


async def hundred_calls(workspace: Path, **options: Any) -> list[dict[str, int]]:
    grown = []
    async with agent_of(workspace, ScriptedModel(["an answer"] * 150), **options) as agent:
        before: dict[str, int] = {}
        for n in range(100):
            await agent.call(f"prompt {n:03}", ALICE)
            after = sizes(workspace)
            grown.append({name: size - before.get(name, 0) for name, size in after.items()})
            before = after
    return grown


async def test_of_a_hundred_calls_each_message_stands_once_in_every_file(workspace: Path) -> None:
    await hundred_calls(workspace)
    for entries in (ledger(workspace), json_lines(sessions_folder(workspace) / "s1.jsonl")):
        ids = Counter(entry["message"]["id"] for entry in entries if entry["type"] == "message")
        assert (len(ids), max(ids.values())) == (200, 1)
    ids = Counter(message["id"] for message in json_lines(context_folder(workspace) / "memory_messages.jsonl"))
    assert (len(ids), max(ids.values())) == (200, 1)


async def test_bytes_of_a_call_do_not_depend_on_the_length_of_the_history(workspace: Path) -> None:
    grown = await hundred_calls(workspace)
    early, late = grown[10:40], grown[-30:]
    for name in ("s1.log.jsonl", "s1.jsonl", "memory_messages.jsonl"):
        assert max(call[name] for call in late) <= max(call[name] for call in early) + 8
    assert {call["s1.head.json"] for call in late} == {0}


async def test_coming_back_without_a_new_message_writes_nothing(workspace: Path) -> None:
    await two_turns(workspace)
    before = all_bytes(workspace)
    for _ in range(3):
        new_process()
        async with agent_of(workspace, ScriptedModel()) as agent:
            await agent.sessions("alice").history("s1")
            await agent.sessions("alice").tree("s1")
    assert all_bytes(workspace) == before


async def test_a_new_process_for_every_call_writes_each_message_once(workspace: Path) -> None:
    for n in range(10):
        new_process()
        async with agent_of(workspace, ScriptedModel(["x"])) as agent:
            await agent.call(f"prompt {n}", ALICE)
    assert Counter(via for via, _, _ in logged(workspace)) == {"user": 10, "model": 10}
    assert len(json_lines(context_folder(workspace) / "memory_messages.jsonl")) == 20
