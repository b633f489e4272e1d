"""Files of another tenant in a tenant's place: no way in shows, counts, copies or removes them."""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import agent_of, call_of, sessions_folder
from removalkit import bytes_of

from harness import HarnessAgent, RuntimeContext
from harness.errors import SessionDamaged
from harness.testing import ScriptedModel

SECRET = "CANARY-diagnosis"
ALICE, BOB = (RuntimeContext(session_id="x", user_id=user) for user in ("alice", "bob"))


async def _two_users(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["Yes."] * 3)) as agent:
        await agent.call(SECRET, BOB)
        await agent.call("hello", ALICE)
        await agent.call("hello", ALICE.with_changes(session_id="y"))


def _files(workspace: Path) -> None:
    for ending in (".log.jsonl", ".jsonl", ".head.json"):
        shutil.copy(sessions_folder(workspace, "bob") / f"x{ending}", sessions_folder(workspace) / f"x{ending}")
    (sessions_folder(workspace) / "sessions.json").unlink()


def _moved_tenant(workspace: Path) -> None:
    shutil.rmtree(workspace / "tenants" / "alice")
    os.rename(workspace / "tenants" / "bob", workspace / "tenants" / "alice")


def _linked_tenant(workspace: Path) -> None:
    shutil.rmtree(workspace / "tenants" / "alice")
    os.symlink(workspace / "tenants" / "bob", workspace / "tenants" / "alice")


def _linked_sessions(workspace: Path) -> None:
    shutil.rmtree(sessions_folder(workspace))
    os.symlink(sessions_folder(workspace, "bob"), sessions_folder(workspace))


WAYS: dict[str, Any] = {
    "list": lambda sessions, out: sessions.list(),
    "newest": lambda sessions, out: sessions.list(5, newest_first=True),
    "lost": lambda sessions, out: sessions.lost(),
    "history": lambda sessions, out: sessions.history("x", None),
    "search": lambda sessions, out: sessions.search("CANARY"),
    "search one": lambda sessions, out: sessions.search("CANARY", 5, "x"),
    "tree": lambda sessions, out: sessions.tree("x"),
    "branches": lambda sessions, out: sessions.branches("x"),
    "labels": lambda sessions, out: sessions.labels("x"),
    "usage": lambda sessions, out: sessions.usage(),
    "usage of one": lambda sessions, out: sessions.usage("x"),
    "export": lambda sessions, out: sessions.export("x", out),
    "fork": lambda sessions, out: sessions.fork("x"),
    "handoff": lambda sessions, out: sessions.handoff("x"),
    "rename": lambda sessions, out: sessions.rename("x", "mine"),
    "compact": lambda sessions, out: sessions.compact("x"),
    "repair": lambda sessions, out: sessions.repair("x"),
    "delete": lambda sessions, out: sessions.delete("x"),
}
SWAPS = [_files, _moved_tenant, _linked_tenant, _linked_sessions]


@pytest.mark.parametrize("swap", SWAPS)
async def test_no_way_in_shows_or_changes_what_is_anothers(tmp_path: Path, swap: Any) -> None:
    workspace, out = tmp_path / "w", tmp_path / "x.zip"
    await _two_users(workspace)
    swap(workspace)
    before = _ledgers(workspace)
    async with agent_of(workspace, ScriptedModel(["Yes."])) as agent:
        for way, ask in WAYS.items():
            shown = await _shown(ask(agent.sessions("alice"), out))
            assert SECRET not in repr(shown), way
            assert not any(row.session == "x" for row in getattr(shown, "rows", ())), way
            assert not out.exists(), way
            assert _ledgers(workspace) == before, way


async def _shown(asked: Any) -> Any:
    try:
        return await asked
    except SessionDamaged as error:
        return _required("bob", str(error))


def _required(word: str, text: str) -> None:
    assert word in text


def _ledgers(workspace: Path) -> dict[str, bytes]:
    kept = ("x.log.jsonl", "x.jsonl", "x.head.json")
    return {name: raw for name, raw in bytes_of(workspace).items() if name.endswith(kept)}


@pytest.mark.parametrize("swap", SWAPS)
async def test_deleting_what_is_anothers_is_refused_and_says_whose_it_is(tmp_path: Path, swap: Any) -> None:
    await _two_users(tmp_path)
    swap(tmp_path)
    before = bytes_of(tmp_path / "tenants")
    async with agent_of(tmp_path, ScriptedModel([])) as agent:
        with pytest.raises(SessionDamaged, match="nothing was changed"):
            await agent.sessions("alice").delete("x")
    assert {name for name in before if not name.endswith(".lock")} <= set(bytes_of(tmp_path / "tenants"))


async def test_a_ledger_of_another_tenant_stands_in_the_list_without_its_title_and_the_log_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await _two_users(tmp_path)
    _files(tmp_path)
    async with agent_of(tmp_path, ScriptedModel([])) as agent:
        found = await agent.sessions("alice").list()
    assert [(info.id, info.title, info.turns) for info in found] == [("x", "", 0), ("y", "hello", 1)]
    assert "tenant 'bob'" in caplog.text


async def test_the_model_is_not_told_the_title_of_anothers_session(tmp_path: Path) -> None:
    await _two_users(tmp_path)
    _files(tmp_path)
    model = ScriptedModel([[call_of("session_list")], "Done."])
    async with HarnessAgent.builder().name("notes").model(model).workspace(tmp_path).build() as agent:
        await agent.call("what did we talk about?", ALICE.with_changes(session_id="y"))
    assert SECRET not in str(model.requests[-1].messages)


async def test_the_list_that_belongs_to_another_tenant_is_neither_believed_nor_written_over(tmp_path: Path) -> None:
    await _two_users(tmp_path)
    _linked_sessions(tmp_path)
    before = (sessions_folder(tmp_path, "bob") / "sessions.json").read_bytes()
    async with agent_of(tmp_path, ScriptedModel([])) as agent:
        assert [info.title for info in await agent.sessions("alice").list()] == [""]
        assert [info.title for info in await agent.sessions("bob").list()] == [SECRET]
    assert (sessions_folder(tmp_path, "bob") / "sessions.json").read_bytes() == before


async def test_a_session_of_a_newer_format_can_be_removed_by_its_owner_alone(tmp_path: Path) -> None:
    await _two_users(tmp_path)
    _files(tmp_path)
    for user in ("alice", "bob"):
        ledger = sessions_folder(tmp_path, user) / "x.log.jsonl"
        ledger.write_bytes(ledger.read_bytes().replace(b'"format":1', b'"format":2', 1))
    async with agent_of(tmp_path, ScriptedModel([])) as agent:
        with pytest.raises(SessionDamaged, match="bob"):
            await agent.sessions("alice").delete("x")
        assert await agent.sessions("bob").delete("x")
