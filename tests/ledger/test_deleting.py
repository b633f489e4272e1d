"""A deleted conversation does not come back: not after a crash or a power cut, not from a store that nobody told."""

import errno
import os
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, agent_of, context_folder, sessions_folder, shown

from harness import ids
from harness.errors import PersistenceError, SessionNotFound
from harness.filesystem import disk
from harness.sessions import InMemorySession, JsonSession
from harness.sessions.lines.anchor import encode_anchor, is_deleted, new_ledger_id, read_anchor
from harness.testing import DiskRecorder, Loss, ScriptedModel

SECRET = "my SECRET"
LONG = "a contract " * 30_000


class Remembering:
    """A state module that keeps a word."""

    name = "remembering"

    def __init__(self) -> None:
        self.word = ""

    def save(self) -> dict[str, Any] | None:
        return {"word": self.word} if self.word else None

    def load(self, value: dict[str, Any]) -> None:
        self.word = value["word"]


async def said(workspace: Path, *prompts: str, **options: Any) -> None:
    async with agent_of(workspace, ScriptedModel(["ok"] * len(prompts)), **options) as agent:
        for prompt in prompts:
            await agent.call(prompt, ALICE)


async def seen(workspace: Path, new_process, **options: Any) -> list[tuple[str, str]]:
    """What the model sees when the next process says `new`."""
    new_process()
    model = ScriptedModel(["hello"])
    async with agent_of(workspace, model, **options) as agent:
        await agent.call("new", ALICE)
    return shown(model.requests[0])


async def test_a_store_that_the_deleting_agent_does_not_know_brings_nothing_back(tmp_path, new_process):
    store = JsonSession(tmp_path / "store")
    await said(tmp_path / "w", SECRET, session=store)
    new_process()
    async with agent_of(tmp_path / "w", ScriptedModel()) as other:
        assert await other.sessions("alice").delete("s1") is True
    assert await seen(tmp_path / "w", new_process, session=store) == [("user", "new")]
    assert not [path for path in (tmp_path / "store").rglob("*") if path.is_file() and SECRET in path.read_text()]


class _Away(InMemorySession):
    away = False

    async def delete(self, key: Any, name: str | None = None) -> None:
        if self.away:
            raise PersistenceError("the store is away; try later")
        await super().delete(key, name)


async def test_a_store_that_fails_while_a_session_is_deleted_brings_nothing_back(tmp_path, new_process):
    store = _Away()
    await said(tmp_path / "w", SECRET, session=store)
    store.away = True
    async with agent_of(tmp_path / "w", ScriptedModel(), session=store) as agent:
        with pytest.raises(PersistenceError, match="away"):
            await agent.sessions("alice").delete("s1")
        assert await agent.sessions("alice").list() == []
    with pytest.raises(PersistenceError, match="away"):
        await seen(tmp_path / "w", new_process, session=store)
    store.away = False
    assert await seen(tmp_path / "w", new_process, session=store) == [("user", "new")]


@pytest.mark.parametrize("lost", ["nothing", "the position"])
async def test_a_snapshot_that_was_restored_after_the_deletion_is_ignored(tmp_path, new_process, lost):
    await said(tmp_path, SECRET)
    shutil.copytree(context_folder(tmp_path), tmp_path / "copy")
    async with agent_of(tmp_path, ScriptedModel()) as agent:
        await agent.sessions("alice").delete("s1")
    shutil.copytree(tmp_path / "copy", context_folder(tmp_path))
    if lost != "nothing":
        (context_folder(tmp_path) / "memory.json").write_bytes(b"\0" * 512)
    assert await seen(tmp_path, new_process) == [("user", "new")]


async def test_a_conversation_that_was_deleted_many_times_does_not_come_back(tmp_path, new_process):
    for number in range(9):
        await said(tmp_path, f"{SECRET} {number}")
        shutil.copytree(context_folder(tmp_path), tmp_path / f"copy-{number}")
        async with agent_of(tmp_path, ScriptedModel()) as agent:
            await agent.sessions("alice").delete("s1")
    shutil.copytree(tmp_path / "copy-0", context_folder(tmp_path))
    assert await seen(tmp_path, new_process) == [("user", "new")]


async def test_an_older_ledger_that_was_imported_again_is_not_taken_for_a_deleted_one(tmp_path, new_process):
    await said(tmp_path, "first")
    async with agent_of(tmp_path, ScriptedModel()) as agent:
        await agent.sessions("alice").export("s1", tmp_path / "bundle")
        await agent.sessions("alice").delete("s1")
    for number in range(9):
        await said(tmp_path, f"{SECRET} {number}")
        async with agent_of(tmp_path, ScriptedModel()) as agent:
            await agent.sessions("alice").delete("s1")
    async with agent_of(tmp_path, ScriptedModel(["yes"])) as agent:
        await agent.sessions("alice").import_session(tmp_path / "bundle")
        await agent.call("second", ALICE)
    assert await seen(tmp_path, new_process) == [("user", text) if n % 2 == 0 else ("assistant", text) for n, text in
        enumerate(["first", "ok", "second", "yes", "new"])]  # fmt: skip


async def test_on_a_full_disk_a_session_can_be_deleted_to_make_room(tmp_path, monkeypatch):
    await said(tmp_path, SECRET, LONG)
    real = os.open

    def full(path: Any, flags: int, *rest: Any, **options: Any) -> int:
        if flags & os.O_CREAT and not os.path.exists(path):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, flags, *rest, **options)

    async with agent_of(tmp_path, ScriptedModel()) as agent:
        with monkeypatch.context() as patched:
            patched.setattr(os, "open", full)
            assert await agent.sessions("alice").delete("s1")
        assert sorted(path.name for path in sessions_folder(tmp_path).glob("s1*")) == ["s1.head.json"]
        assert list(sessions_folder(tmp_path).glob("files/*/*")) == []
        with pytest.raises(SessionNotFound):
            await agent.sessions("alice").verify("s1")


async def test_what_a_module_kept_of_a_deleted_session_does_not_come_back(tmp_path, new_process):
    store, first, second = JsonSession(tmp_path / "store"), Remembering(), Remembering()
    first.word = SECRET
    await said(tmp_path / "w", "hello", session=store, state_module=lambda: first)
    new_process()
    async with agent_of(tmp_path / "w", ScriptedModel()) as other:
        await other.sessions("alice").delete("s1")
    await seen(tmp_path / "w", new_process, session=store, state_module=lambda: second)
    assert second.word == ""


async def test_a_session_is_whole_or_gone_wherever_its_deletion_was_cut_off(tmp_path, new_process):
    workspace = tmp_path / "w"
    recorder = DiskRecorder(workspace)
    async with agent_of(workspace, ScriptedModel(["ok"] * 2)) as agent:
        with recorder.recording():
            await agent.call(SECRET, ALICE)
            await agent.call(LONG, ALICE)
            recorder.promise("said")
            await agent.sessions("alice").delete("s1")
            recorder.promise("deleted")
    points = [point for point in range(recorder.points + 1) if "said" in recorder.promised(point)]
    states = set()
    for point in points:
        for loss in (Loss(), Loss(seed=point), Loss(seed=1000 + point)):
            left = tmp_path / f"left-{point}-{loss.seed}"
            recorder.leave(point, loss, left)
            states.add(await _state_after(left, new_process, deleted="deleted" in recorder.promised(point)))
    assert states == {"whole", "gone"}


async def _state_after(left: Path, new_process, *, deleted: bool) -> str:
    new_process()
    model = ScriptedModel(["hello"])
    async with agent_of(left, model) as agent:
        sessions = agent.sessions("alice")
        listed = [info.id for info in await sessions.list()]
        await agent.call("new", ALICE)
        saw = shown(model.requests[0])
        assert (await sessions.verify("s1")).findings == () or listed
        await sessions.delete("s1")
        assert await sessions.list() == []
    texts = [text for _, text in saw]
    assert list(sessions_folder(left).glob("files/*/*")) == []
    if listed:
        assert not deleted
        assert texts == [SECRET, "ok", LONG, "ok", "new"]
        return "whole"
    assert texts == ["new"]
    return "gone"


async def test_the_next_call_finishes_a_deletion_that_was_cut_off(tmp_path, new_process):
    await said(tmp_path, SECRET, LONG)
    folder = sessions_folder(tmp_path)
    (folder / "s1.log.jsonl").rename(folder / "s1.log.jsonl.deleted")
    new_process()
    async with agent_of(tmp_path, ScriptedModel()) as agent:
        assert await agent.sessions("alice").list() == []
        with pytest.raises(SessionNotFound):
            await agent.sessions("alice").verify("s1")
    assert await seen(tmp_path, new_process) == [("user", "new")]
    assert not (folder / "s1.log.jsonl.deleted").exists()
    assert [*folder.glob("files/??/*")] == []
    async with agent_of(tmp_path, ScriptedModel()) as agent:
        assert (await agent.sessions("alice").verify("s1")).findings == ()


async def test_a_session_whose_ledger_cannot_be_read_can_be_deleted(tmp_path, caplog):
    await said(tmp_path, SECRET, LONG)
    ledger = sessions_folder(tmp_path) / "s1.log.jsonl"
    ledger.rename(tmp_path / "lost")
    (ledger / "within").mkdir(parents=True)
    async with agent_of(tmp_path, ScriptedModel()) as agent:
        assert await agent.sessions("alice").delete("s1")
        assert "contents of a deleted session may stay" in caplog.text
        assert [path.name for path in sessions_folder(tmp_path).glob("s1*")] == ["s1.head.json"]


@pytest.mark.parametrize("how", ["fork", "import"])
async def test_a_copy_finishes_a_deletion_that_was_cut_off(tmp_path, how):
    await said(tmp_path, SECRET)
    async with agent_of(tmp_path, ScriptedModel()) as agent:
        sessions, folder = agent.sessions("alice"), sessions_folder(tmp_path)
        await sessions.fork("s1", to="s2")
        await sessions.export("s1", tmp_path / "bundle")
        (folder / "s2.log.jsonl").rename(folder / "s2.log.jsonl.deleted")
        if how == "fork":
            await sessions.fork("s1", to="s2")
        else:
            await sessions.import_session(tmp_path / "bundle", session_id="s2", take_over=True)
        assert not (folder / "s2.log.jsonl.deleted").exists()
        assert len((await sessions.tree("s2")).deleted) == 1
        assert (await sessions.verify("s2")).findings == ()


@pytest.mark.parametrize("name", ["s1.jsonl", "s1.head.json"])
@pytest.mark.parametrize("kind", ["folder", "link"])
async def test_what_is_no_file_is_mended_by_repair_and_removed_by_delete(tmp_path, new_process, name, kind):
    await said(tmp_path, "one")
    path, other = sessions_folder(tmp_path) / name, tmp_path / "other"
    other.write_bytes(b"not ours")
    path.unlink()
    if kind == "folder":
        (path / "within").mkdir(parents=True)
    else:
        path.symlink_to(other)
    new_process()
    async with agent_of(tmp_path, ScriptedModel()) as agent:
        sessions = agent.sessions("alice")
        assert (await sessions.repair("s1")).ok
        assert path.is_file()
        assert not path.is_symlink()
        path.unlink()
        path.symlink_to(other)
        assert await sessions.delete("s1")
        assert [item.name for item in sessions_folder(tmp_path).glob("s1*")] == ["s1.head.json"]
    assert other.read_bytes() == b"not ours"
    assert await seen(tmp_path, new_process) == [("user", "new")]


@pytest.mark.parametrize("deletions", [1, 12])
async def test_what_was_begun_under_a_clock_set_back_after_deletions_is_not_taken_for_deleted(
    tmp_path: Path, new_process, monkeypatch: pytest.MonkeyPatch, deletions: int
) -> None:
    now, ahead = time.time_ns, 30 * 86400 * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: now() + ahead)
    for _ in range(deletions):
        await said(tmp_path, "old")
        async with agent_of(tmp_path, ScriptedModel()) as agent:
            await agent.sessions("alice").delete("s1")
    monkeypatch.setattr(time, "time_ns", now)
    monkeypatch.setattr(ids._source, "last", 0)  # as in a process that never saw the other time
    new_process()
    await said(tmp_path, "My name is Bob.")
    (sessions_folder(tmp_path) / "s1.log.jsonl").unlink()
    assert ("user", "My name is Bob.") in await seen(tmp_path, new_process)


@pytest.mark.parametrize("newest", ["019caa11-0000-7000", "ffffffff-ffff-7ffe", "019caa11-0000-7fff"])
def test_a_new_ledger_sorts_behind_all_that_were_deleted(newest: str) -> None:
    for deleted in ((f"<={newest}",), (f"<={newest}*",), (f"{newest}-8000-000000000000",), ("<=*", "lost")):
        assert not is_deleted(new_ledger_id(deleted), deleted)
        assert new_ledger_id(deleted) != new_ledger_id(deleted)
    assert is_deleted(new_ledger_id(()), ("<=ffffffff-ffff-7fff",))


async def test_the_anchors_own_ledger_is_not_taken_for_deleted_whatever_its_id(tmp_path: Path, new_process) -> None:
    await said(tmp_path, "My name is Bob.")
    place = sessions_folder(tmp_path) / "s1.head.json"
    anchor = read_anchor(place)
    assert anchor
    place.write_bytes(encode_anchor(replace(anchor, deleted=("<=ffffffff-ffff-7fff",))))
    (sessions_folder(tmp_path) / "s1.log.jsonl").unlink()
    assert ("user", "My name is Bob.") in await seen(tmp_path, new_process)


async def test_a_lock_whose_file_cannot_be_removed_keeps_nothing_of_a_deleted_session(tmp_path, monkeypatch, caplog):
    remove = disk.remove

    def failing(path: Path) -> bool:
        if path.name == "s1.lock":
            raise PersistenceError(f"cannot remove {path}: Input/output error; check the disk and repeat the call")
        return remove(path)

    async with agent_of(tmp_path, ScriptedModel(["a"])) as agent:
        await agent.call("hi", ALICE)
        monkeypatch.setattr(disk, "remove", failing)
        assert await agent.sessions("alice").delete("s1")
        assert await agent.sessions("alice").list() == []
    assert "is deleted" in caplog.text
    assert not (tmp_path / "tenants" / "alice" / "agents" / "notes" / "context" / "s1").exists()
