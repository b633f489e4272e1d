"""A snapshot says whose it is: another's is not taken, in whatever store it lies, and is not lost either."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, BOB, agent_of, context_folder, exists, sessions_folder, shown

from harness.agent import open_session
from harness.sessions import InMemorySession, JsonSession
from harness.state import SessionKey
from harness.testing import ScriptedModel

SECRET = "CANARY-diagnosis"
ALICE_KEY, BOB_KEY = (SessionKey((user,), "notes", "s1") for user in ("alice", "bob"))


class Diary:
    """A state module that remembers what it was last given."""

    name = "diary"

    def __init__(self) -> None:
        self.text = ""

    def save(self) -> dict[str, Any]:
        return {"text": self.text}

    def load(self, value: dict[str, Any]) -> None:
        self.text = value["text"]


async def _two_users(workspace: Path, **options: Any) -> None:
    async with agent_of(workspace, ScriptedModel(["Yes."] * 2), **options) as agent:
        await agent.call(SECRET, BOB)
        await agent.call("hello", ALICE)
    open_session._cache._open.clear()


async def _next(workspace: Path, **options: Any) -> tuple[list[tuple[str, str]], list[str]]:
    model = ScriptedModel(["Well."])
    async with agent_of(workspace, model, **options) as agent:
        call = agent.call("next", ALICE)
        await call
        report = await agent.sessions("alice").verify("s1")
        assert report.ok, report.findings
    assert SECRET.encode() not in (sessions_folder(workspace) / "s1.log.jsonl").read_bytes()
    return shown(model.requests[0]), call.warnings


def _copied(workspace: Path) -> None:
    shutil.rmtree(context_folder(workspace))
    shutil.copytree(context_folder(workspace, user="bob"), context_folder(workspace))


def _linked(workspace: Path) -> None:
    shutil.rmtree(context_folder(workspace))
    os.symlink(context_folder(workspace, user="bob"), context_folder(workspace))


def _without_ledger(workspace: Path) -> None:
    for path in sessions_folder(workspace).glob("s1.*"):
        path.unlink()


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("swap", [_copied, _linked])
async def test_anothers_snapshot_in_the_workspace_is_set_aside_and_said(tmp_path: Path, swap: Any, lost: bool) -> None:
    await _two_users(tmp_path)
    swap(tmp_path)
    if lost:
        _without_ledger(tmp_path)
    theirs = {path.name: path.read_bytes() for path in context_folder(tmp_path, user="bob").iterdir()}
    seen, warnings = await _next(tmp_path)
    assert seen == ([] if lost else [("user", "hello"), ("assistant", "Yes.")]) + [("user", "next")]
    assert [("snapshot" in text, "not taken" in text) for text in warnings] == [(True, True)]
    assert {path.name: path.read_bytes() for path in context_folder(tmp_path, user="bob").iterdir()} == theirs
    [aside] = context_folder(tmp_path).parent.glob("s1.damaged-*")
    assert SECRET in (aside / "memory_messages.jsonl").read_text()
    open_session._cache._open.clear()
    assert await _again(tmp_path) == []


async def _again(workspace: Path) -> list[str]:
    async with agent_of(workspace, ScriptedModel(["Well."])) as agent:
        call = agent.call("and on", ALICE)
        await call
    return call.warnings


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("kind", ["memory", "files"])
async def test_anothers_snapshot_in_a_store_elsewhere_is_not_taken(tmp_path: Path, kind: str, lost: bool) -> None:
    store: Any = InMemorySession() if kind == "memory" else JsonSession(tmp_path / "store")
    options = {"session": store, "state_module": Diary}
    await _two_users(tmp_path / "w", **options)
    await store.delete(ALICE_KEY)
    for name in ("memory", "diary"):
        await store.save(ALICE_KEY, name, await store.get(BOB_KEY, name) or {"text": SECRET})
    await store.replace(ALICE_KEY, "memory_messages", await store.get_list(BOB_KEY, "memory_messages"))
    if lost:
        _without_ledger(tmp_path / "w")
    seen, warnings = await _next(tmp_path / "w", **options)
    assert SECRET not in str(seen)
    assert len(warnings) == 1
    assert SECRET not in str([await store.get(ALICE_KEY, "diary"), await store.get_list(ALICE_KEY, "memory_messages")])


async def test_a_snapshot_that_does_not_say_whose_it_is_is_taken_where_it_names_this_ledger(tmp_path: Path) -> None:
    store = InMemorySession()
    await _two_users(tmp_path, session=store)
    for key in (ALICE_KEY, BOB_KEY):
        position = await store.get(key, "memory") or {}
        assert position.pop("owner")
        await store.save(key, "memory", position)
    assert (await _next(tmp_path, session=store))[1] == []
    open_session._cache._open.clear()
    await store.save(ALICE_KEY, "memory", await store.get(BOB_KEY, "memory") or {})
    await store.replace(ALICE_KEY, "memory_messages", await store.get_list(BOB_KEY, "memory_messages"))
    seen, warnings = await _next(tmp_path, session=store)
    assert [text for _, text in seen] == ["hello", "Yes.", "next", "Well.", "next"]
    assert len(warnings) == 1


@pytest.mark.parametrize("ledger", ["lost", "there"])
async def test_deleting_a_session_leaves_anothers_snapshot_where_it_is(tmp_path: Path, ledger: str) -> None:
    await _two_users(tmp_path)
    _linked(tmp_path)
    if ledger == "lost":
        _without_ledger(tmp_path)
    async with agent_of(tmp_path, ScriptedModel([])) as agent:
        assert await agent.sessions("alice").delete("s1") is (ledger == "there")
    assert SECRET in (context_folder(tmp_path, user="bob") / "memory_messages.jsonl").read_text()


async def test_a_snapshot_that_cannot_be_read_is_deleted_with_its_session(tmp_path: Path) -> None:
    await _two_users(tmp_path)
    (context_folder(tmp_path) / "memory.json").unlink()
    (context_folder(tmp_path) / "memory.json").mkdir()
    async with agent_of(tmp_path, ScriptedModel([])) as agent:
        assert await agent.sessions("alice").delete("s1")
    assert not exists(context_folder(tmp_path))


async def test_the_owner_in_a_snapshot_is_the_digest_that_the_page_on_formats_says(tmp_path: Path) -> None:
    await _two_users(tmp_path)
    position = json.loads((context_folder(tmp_path) / "memory.json").read_bytes())
    # printf '%s' '{"session":"s1","agent":"notes","tenant":["alice"]}' | sha256sum
    assert position["owner"] == "440cb30e3407f57f6e719db969b88fded2198216ee77383c561cd6e93e6ba3fa"
