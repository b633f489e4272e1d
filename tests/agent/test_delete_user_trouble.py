"""Removing a user where a store, a disk or a place of files does not do its part."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, agent_of, context_folder, sessions_folder
from removalkit import CANARY, bytes_of, settled, talkative, talked, traces

from harness import RuntimeContext
from harness.errors import PersistenceError, RemovalUnfinished, SessionBusy
from harness.filesystem.treefs import TreeFilesystem
from harness.memory import MemoryFiles, maintenance
from harness.sessions import InMemorySession, JsonSession, SessionKey, WorkspaceSession
from harness.testing import ScriptedModel


async def test_sessions_without_a_snapshot_where_it_was_looked_for_are_named(workspace: Path) -> None:
    store = InMemorySession()
    async with talkative(workspace) as agent:
        await agent.call(CANARY, ALICE.with_changes(session=store))
        await agent.call(CANARY, ALICE.with_changes(session_id="s2"))
        [sentence] = (await agent.delete_user("alice")).unreached
        assert sentence.startswith("1 session had no snapshot in the stores that were asked (s1): ")
        removal = await agent.delete_user(RuntimeContext(user_id="alice", session=store))
        assert (removal.snapshot_keys, removal.unreached) == (1, ())
        assert not await store.list_keys(("alice",), "notes")


async def test_a_ledger_that_cannot_be_read_is_removed_and_named_like_one_with_calls(workspace: Path) -> None:
    async with talkative(workspace) as agent:
        await agent.call(CANARY, ALICE)
        (sessions_folder(workspace) / "gone.log.jsonl").symlink_to("nowhere")
        _, sentence = (await agent.delete_user("alice")).unreached
    assert sentence.startswith("1 session had no snapshot in the stores that were asked (gone): ")
    assert not sessions_folder(workspace).exists()


@pytest.mark.parametrize("is_called", [False, True])
async def test_a_copy_is_not_said_to_lack_a_snapshot_until_a_call_has_ended_in_it(
    workspace: Path, tmp_path: Path, is_called: bool
) -> None:
    async with talkative(workspace) as agent:
        await agent.call(CANARY, ALICE)
        sessions = agent.sessions("alice")
        await sessions.fork("s1", to="forked")
        await sessions.handoff("s1", to="handed")
        await sessions.export("s1", tmp_path / "s1.zip")
        await sessions.import_session(tmp_path / "s1.zip", session_id="taken", take_over=True)
        for name in ("forked", "handed", "taken") if is_called else ():
            await agent.call("On.", ALICE.with_changes(session_id=name, session=InMemorySession()))
        unreached = (await agent.delete_user("alice")).unreached
    assert [sentence.partition(": ")[0] for sentence in unreached] == (
        ["3 sessions had no snapshot in the stores that were asked (forked, handed, taken)"] if is_called else []
    )


class _Store(InMemorySession):
    """A store that does wrong in one way."""

    def __init__(self, wrong: str) -> None:
        super().__init__()
        self.wrong = wrong

    async def list_keys(self, namespace: tuple[str, ...], agent: str) -> list[SessionKey]:
        if self.wrong == "down":
            raise ConnectionError("no route")
        found = await super().list_keys(namespace, agent)
        return [*found, SessionKey(("bob",), agent, "s1")] if self.wrong == "gives what is another's" else found

    async def delete(self, key: SessionKey, name: str | None = None) -> None:
        if self.wrong == "cannot delete":
            raise ConnectionError("no route")
        if self.wrong != "keeps all":
            await super().delete(key, name)


async def test_a_store_that_is_down_leaves_the_user_whole(workspace: Path) -> None:
    store = _Store("down")
    async with talkative(workspace, session=store) as agent:
        await agent.call("hello", ALICE)
        before = await settled(agent, workspace)
        with pytest.raises(PersistenceError, match="no route"):
            await agent.delete_user("alice")
        assert bytes_of(workspace) == before
        await agent.call("goes on", ALICE)


@pytest.mark.parametrize("wrong", ["cannot delete", "keeps all"])
async def test_a_store_that_fails_in_the_midst_lets_no_call_in_until_the_removal_is_finished(
    workspace: Path, wrong: str
) -> None:
    store = _Store(wrong)
    async with talkative(workspace, session=store) as agent:
        await agent.call(CANARY, ALICE)
        with pytest.raises(PersistenceError, match="was begun and is not finished"):
            await agent.delete_user("alice")
        for session in ("s1", "another"):
            with pytest.raises(RemovalUnfinished, match="was begun and cut off; delete the user once more"):
                await agent.call("hello", ALICE.with_changes(session_id=session))
        await agent.call("hello", RuntimeContext(session_id="s1", user_id="bob"))
        store.wrong = ""
        assert (await agent.delete_user("alice")).snapshot_keys == 1
        await agent.call("hello", ALICE)
        assert traces(CANARY, workspace) == []


async def test_keys_of_others_that_a_store_gives_are_left_alone(workspace: Path) -> None:
    store = _Store("gives what is another's")
    async with talkative(workspace, session=store) as agent:
        for user in ("alice", "bob"):
            await agent.call("hello", RuntimeContext(session_id="s1", user_id=user))
        await agent.delete_user("alice")
        assert await store.exists(SessionKey(("bob",), "notes", "s1"))


@pytest.mark.parametrize("session", ["s1", "S" * 200])
async def test_what_a_store_set_aside_goes_with_the_user(workspace: Path, session: str) -> None:
    store = JsonSession(workspace.parent / "store")
    async with talkative(workspace, session=store) as agent:
        await agent.call(CANARY, ALICE.with_changes(session_id=session))
        await store.set_aside(SessionKey(("alice",), "notes", session))
        await agent.call(CANARY, ALICE.with_changes(session_id="s2"))
        [folder] = (workspace.parent / "store").glob("*/*/s2")
        for path in [*folder.glob("*.json"), *folder.glob("*.jsonl")]:
            path.rename(path.with_name(f"{path.name}.damaged-20260101T000000Z-0001"))
        await agent.delete_user("alice")
    assert [*(workspace.parent / "store").iterdir()] == []


async def test_damaged_files_that_a_store_set_aside_go_with_the_user(workspace: Path) -> None:
    store = JsonSession(workspace.parent / "store")
    async with talkative(workspace, session=store) as agent:
        await agent.call(CANARY, ALICE)
        [folder] = (workspace.parent / "store").glob("*/*/*")
        for path in [*folder.glob("*.json"), *folder.glob("*.jsonl")]:
            path.rename(path.with_name(f"{path.name}.damaged-20260101T000000Z-0001"))
        await agent.delete_user("alice")
    assert [*(workspace.parent / "store").iterdir()] == []


async def test_a_store_in_the_workspace_itself_costs_nobody_elses_files(workspace: Path) -> None:
    store = JsonSession(workspace)
    async with talkative(workspace, session=store) as agent:
        for user in ("tenants", "alice"):
            await agent.call("hello", RuntimeContext(session_id="s1", user_id=user))
        await agent.delete_user("tenants")
        assert len(await agent.sessions("alice").list()) == 1
        assert (await agent.sessions("alice").verify("s1")).ok


async def test_another_workspaces_sessions_of_the_user_are_kept(workspace: Path) -> None:
    other = workspace.parent / "other"
    async with talkative(other) as agent:
        await agent.call("kept", ALICE)
    async with talkative(workspace, session=WorkspaceSession(other, "notes")) as agent:
        await agent.call("hello", ALICE.with_changes(session_id="s2"))
        await agent.delete_user("alice")
    assert not context_folder(other, "s2").exists()
    assert (sessions_folder(other) / "s1.log.jsonl").exists()


class _Failing:
    """Makes an operation of the system fail below a folder."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str, below: Path) -> None:
        real = getattr(os, name)

        def fail(*arguments: Any, **options: Any) -> Any:
            if any(isinstance(each, str | Path) and str(each).startswith(str(below)) for each in arguments):
                raise PermissionError(13, "Permission denied")
            return real(*arguments, **options)

        monkeypatch.setattr(os, name, fail)


@pytest.mark.parametrize(("name", "place"), [("mkdir", "tenants"), ("open", "tenants/alice/agents/removal.lock")])
async def test_where_the_folder_is_read_only_nothing_is_removed(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, name: str, place: str
) -> None:
    store = InMemorySession()
    async with talkative(workspace, session=store) as agent:
        await agent.call("hello", ALICE)
        before = await settled(agent, workspace)
        with monkeypatch.context() as patched:
            _Failing(patched, name, workspace / place)
            with pytest.raises(PersistenceError, match="Permission denied"):
                await agent.delete_user("alice")
        assert bytes_of(workspace) == before
        assert await store.exists(SessionKey(("alice",), "notes", "s1"))
        await agent.call("goes on", ALICE)


async def test_where_the_rename_fails_the_removal_can_be_finished(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with talkative(workspace) as agent:
        await agent.call(CANARY, ALICE)
        with monkeypatch.context() as patched:
            _Failing(patched, "replace", workspace / "tenants/alice")
            with pytest.raises(PersistenceError, match="begun and is not finished"):
                await agent.delete_user("alice")
        assert [info.id for info in await agent.sessions("alice").list()] == ["s1"]
        assert (await agent.delete_user("alice")).sessions == 1
    assert traces(CANARY, workspace) == []


async def test_files_that_cannot_be_removed_are_told_and_removed_by_the_next(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with talkative(workspace) as agent:
        await talked(agent, "alice", CANARY)
        with monkeypatch.context() as patched:
            _Failing(patched, "unlink", workspace / "tenants/.removed")
            with pytest.raises(PersistenceError, match="the user is gone, and some files are there still"):
                await agent.delete_user("alice")
        assert await agent.sessions("alice").list() == []
        await agent.call("new", ALICE)
        assert (await agent.delete_user("alice")).contents == 1
    assert [*(workspace / "tenants").iterdir()] == []


REMEMBERING = {"a note": (MemoryFiles, "_present"), "MEMORY.md": (maintenance, "_replace")}


@pytest.mark.parametrize("anew", [False, True], ids=["nobody came since", "a new user came since"])
@pytest.mark.parametrize("what", REMEMBERING)
async def test_memory_that_is_about_to_be_written_when_its_user_is_removed_is_not(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, what: str, anew: bool
) -> None:
    place, name = REMEMBERING[what]
    real, removed = getattr(place, name), []

    async def late(*arguments: Any) -> Any:
        removed.append(await two.delete_user("alice"))
        if anew:
            await two.call("new", ALICE)
        return await real(*arguments)

    monkeypatch.setattr(place, name, late)
    model = ScriptedModel(["ok", *[f"- {CANARY}"] * 9])
    async with talkative(workspace) as two:
        async with agent_of(workspace, model, memory_flush=(), memory_maintenance=()) as one:
            await one.call(CANARY, ALICE)
        assert removed[0]
        assert traces(CANARY, workspace) == []
        assert (workspace / "tenants/alice").exists() is anew


async def test_a_user_whose_memory_is_being_written_is_removed_after_that(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, reached, go_on = TreeFilesystem.append, asyncio.Event(), asyncio.Event()

    async def slow(*arguments: Any) -> Any:
        reached.set()
        await go_on.wait()
        return await real(*arguments)

    monkeypatch.setattr(TreeFilesystem, "append", slow)
    async with talkative(workspace) as two:
        async with agent_of(workspace, ScriptedModel(["ok", f"- {CANARY}"]), memory_flush=()) as one:
            await one.call(CANARY, ALICE)
            await reached.wait()
            with pytest.raises(SessionBusy, match=r"memory\.lock; nothing of this user was removed"):
                await two.delete_user("alice")
            go_on.set()
        assert (await two.delete_user("alice")).memory_files == 1
    assert traces(CANARY, workspace) == []
