"""An operation that the disk refuses has not happened, or its error says what has."""

import asyncio
import errno
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, agent_of, ledger, logged, of_kind, sessions_folder

from harness.agent import moving
from harness.errors import PersistenceError, SessionExists, SessionNotFound
from harness.filesystem import disk
from harness.hooks import CompactionConfig
from harness.sessions import InMemorySession, JsonSession
from harness.testing import ScriptedModel

Operation = Callable[[Any, str], Awaitable[Any]]
NO_ROOM = "No space left on device"


class Refusal:
    """Lets the first sync of a file, or of a folder, whose path ends so fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._endings: list[str] = []
        for name in ("fdatasync", "fsync"):
            monkeypatch.setattr(os, name, self._refusing(getattr(os, name)))

    def next(self, *endings: str) -> None:
        self._endings = list(endings)

    def _refusing(self, real: Callable[[int], None]) -> Callable[[int], None]:
        def sync(descriptor: int) -> None:
            path = os.readlink(f"/proc/self/fd/{descriptor}")
            if self._endings and path.endswith(self._endings[0]):
                del self._endings[0]
                raise OSError(errno.ENOSPC, NO_ROOM)
            real(descriptor)

        return sync


@pytest.fixture
def refusal(monkeypatch: pytest.MonkeyPatch) -> Refusal:
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("needs /proc to name descriptors")
    return Refusal(monkeypatch)


def texts(workspace: Path, session: str = "s1") -> list[str]:
    return [text for _, _, text in logged(workspace, session)]


async def state_of(sessions: Any, workspace: Path) -> Any:
    said = [
        len(of_kind(ledger(workspace), kind)) for kind in ("title", "model_switch", "label", "branch", "compaction")
    ]
    branches = [(branch.turns, branch.active) for branch in await sessions.branches("s1")]
    titles = {info.id: info.title for info in await sessions.list()}
    return said, titles, await sessions.labels("s1"), branches, (await sessions.tree("s1")).boundary


CHANGES: dict[str, Operation] = {
    "branch": lambda sessions, entry: sessions.branch("s1", entry),
    "label": lambda sessions, entry: sessions.label("s1", entry, "good"),
    "rename": lambda sessions, entry: sessions.rename("s1", "Payments"),
    "compact": lambda sessions, entry: sessions.compact("s1"),
    "switch_model": lambda sessions, entry: sessions.switch_model("s1", "offline", compact=False),
    "fork": lambda sessions, entry: sessions.fork("s1", to="s2"),
    "handoff": lambda sessions, entry: sessions.handoff("s1", to="s2"),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_a_change_that_was_refused_is_not_made_and_can_be_made_again(tmp_path, refusal, name):
    model = ScriptedModel(["one", "two", "three", "in short", "in short"])
    async with agent_of(tmp_path, model, compaction=CompactionConfig(keep_messages=2)) as agent:
        sessions, first = agent.sessions("alice"), agent.call("1", ALICE)
        await first
        await agent.call("2", ALICE)
        await agent.call("3", ALICE)
        before = await state_of(sessions, tmp_path)
        refusal.next("s2.head.json" if name == "fork" else ".log.jsonl")
        with pytest.raises(PersistenceError, match=NO_ROOM):
            await CHANGES[name](sessions, first.entry_id)
        assert await state_of(sessions, tmp_path) == before
        await CHANGES[name](sessions, first.entry_id)
        assert await state_of(sessions, tmp_path) != before
        for info in await sessions.list():
            assert (await sessions.verify(info.id)).findings == ()


@pytest.mark.parametrize("key", [None, "k"])
async def test_a_call_whose_turn_was_stored_after_all_says_so_and_how_to_repeat_it(tmp_path, refusal, key):
    async with agent_of(tmp_path, ScriptedModel(["ok", "paid", "paid twice"])) as agent:
        await agent.call("hello", ALICE)
        refusal.next("s1.log.jsonl")
        with pytest.raises(PersistenceError, match="stored the turn: repeat it only under its idempotency key") as told:
            await agent.call("pay 10", ALICE, idempotency_key=key)
        assert told.value.reply.text == "paid"
        assert texts(tmp_path) == ["hello", "ok", "pay 10", "paid"]
        if key:
            assert (await agent.call("pay 10", ALICE, idempotency_key=key)).text == "paid"
            assert texts(tmp_path) == ["hello", "ok", "pay 10", "paid"]


async def test_a_call_that_was_refused_twice_stores_nothing_behind_the_callers_back(tmp_path, refusal):
    async with agent_of(tmp_path, ScriptedModel(["ok", "paid", "paid once"])) as agent:
        await agent.call("hello", ALICE)
        refusal.next("s1.log.jsonl", "s1.log.jsonl")
        with pytest.raises(PersistenceError) as told:
            await agent.call("pay 10", ALICE)
        assert str(told.value).endswith(f"{NO_ROOM}; free space on the disk and repeat the call")
        assert "paid" not in texts(tmp_path)
        await agent.call("pay 10", ALICE)
        assert texts(tmp_path).count("paid once") == 1
        assert (await agent.sessions("alice").verify("s1")).findings == ()


@pytest.mark.parametrize("what", ["call", "handoff"])
async def test_a_first_commit_whose_folder_cannot_be_synced_is_written_once(tmp_path, refusal, what):
    async with agent_of(tmp_path, ScriptedModel(["ok"] * 3)) as agent:
        sessions = agent.sessions("alice")
        if what == "handoff":
            await agent.call("hello", ALICE.with_changes(session_id="s0"))
        refusal.next("/sessions")
        with pytest.raises(PersistenceError, match="cannot sync the folder"):
            await (agent.call("hello", ALICE) if what == "call" else sessions.handoff("s0", to="s1"))
        await agent.call("again", ALICE)
        assert (await sessions.verify("s1")).findings == ()
        assert texts(tmp_path).count("again") == 1
        assert (await sessions.repair("s1")).ok


async def test_a_branch_whose_snapshot_cannot_be_written_is_made(tmp_path, monkeypatch):
    store = InMemorySession()
    async with agent_of(tmp_path, ScriptedModel(["one", "two", "three"]), session=store) as agent:
        first = agent.call("1", ALICE)
        await first
        await agent.call("2", ALICE)

        async def away(*_: Any, **__: Any) -> None:
            raise PersistenceError("the store is away; try later")

        for name in ("save", "append", "replace"):
            monkeypatch.setattr(store, name, away)
        line = await agent.sessions("alice").branch("s1", first.entry_id)
        monkeypatch.undo()
        assert (await agent.sessions("alice").tree("s1")).leaf == line
        await agent.call("3", ALICE)
        assert [message.text for message in await agent.sessions("alice").history("s1")] == ["1", "one", "3", "three"]


async def test_a_title_that_the_list_cannot_show_yet_is_given(tmp_path, monkeypatch):
    async with agent_of(tmp_path, ScriptedModel(["one"])) as agent:
        await agent.call("1", ALICE)
        sessions, real = agent.sessions("alice"), disk.replace

        def refuse(path: Path, data: bytes, *, sync: bool) -> None:
            if path.name == "sessions.json":
                raise PersistenceError("no room; free some")
            real(path, data, sync=sync)

        with monkeypatch.context() as patched:
            patched.setattr(disk, "replace", refuse)
            await sessions.rename("s1", "Payments")
        assert [info.title for info in await sessions.list()] == ["Payments"]


async def test_a_deletion_that_got_half_way_says_so(tmp_path, monkeypatch):
    async with agent_of(tmp_path, ScriptedModel(["one"])) as agent:
        await agent.call("1", ALICE)
        sessions = agent.sessions("alice")

        def refuse(path: Path) -> bool:
            raise PersistenceError(f"cannot remove {path}; look at the disk")

        with monkeypatch.context() as patched:
            patched.setattr(disk, "remove_tree", refuse)
            with pytest.raises(PersistenceError, match="'s1' is deleted, and some of its files are there still"):
                await sessions.delete("s1")
        assert await sessions.list() == []
        await sessions.delete("s1")
        assert sorted(path.name for path in sessions_folder(tmp_path).glob("s1*")) == ["s1.head.json"]


async def test_a_deletion_whose_snapshot_stays_says_so(tmp_path, monkeypatch):
    store = JsonSession(tmp_path / "store")
    async with agent_of(tmp_path / "w", ScriptedModel(["one"]), session=store) as agent:
        await agent.call("1", ALICE)

        async def away(*_: Any) -> None:
            raise PersistenceError("the store is away; try later")

        with monkeypatch.context() as patched:
            patched.setattr(store, "delete", away)
            with pytest.raises(
                PersistenceError, match="'s1' is deleted, its snapshot may be there still: the store is"
            ):
                await agent.sessions("alice").delete("s1")
        assert await agent.sessions("alice").delete("s1")


async def test_an_import_that_fails_in_the_end_leaves_no_session_and_forgets_no_deletion(tmp_path, refusal):
    async with agent_of(tmp_path, ScriptedModel(["one", "two"])) as agent:
        await agent.call("1", ALICE)
        sessions = agent.sessions("alice")
        await sessions.export("s1", tmp_path / "bundle")
        await sessions.delete("s1")
        anchor = sessions_folder(tmp_path) / "s1.head.json"
        before = anchor.read_bytes()
        refusal.next("agents/notes/sessions")
        with pytest.raises(PersistenceError, match="cannot sync the folder"):
            await sessions.import_session(tmp_path / "bundle")
        with pytest.raises(SessionNotFound):
            await sessions.verify("s1")
        assert anchor.read_bytes() == before
        assert not list(sessions_folder(tmp_path).glob(".tmp-*"))
        await sessions.import_session(tmp_path / "bundle")
        assert (await sessions.verify("s1")).findings == ()


async def test_a_fork_onto_a_session_that_is_there_leaves_that_one_alone(tmp_path):
    async with agent_of(tmp_path, ScriptedModel(["one", "two"])) as agent:
        await agent.call("1", ALICE)
        await agent.call("2", ALICE.with_changes(session_id="s2"))
        with pytest.raises(SessionExists):
            await agent.sessions("alice").fork("s1", to="s2")
        assert texts(tmp_path, "s2") == ["2", "two"]
        assert (await agent.sessions("alice").verify("s2")).findings == ()


async def test_a_cancelled_import_leaves_nothing_that_was_unpacked(tmp_path, monkeypatch):
    async with agent_of(tmp_path, ScriptedModel(["one"])) as agent:
        await agent.call("1", ALICE)
        sessions, loop, real = agent.sessions("alice"), asyncio.get_running_loop(), moving.unpack
        await sessions.export("s1", tmp_path / "bundle")

        def and_cancel(*args: Any, **options: Any) -> None:
            real(*args, **options)
            loop.call_soon_threadsafe(task.cancel)

        monkeypatch.setattr(moving, "unpack", and_cancel)
        task = asyncio.create_task(sessions.import_session(tmp_path / "bundle", session_id="s2", take_over=True))
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [path.name for path in sessions_folder(tmp_path).glob(".tmp-*")] == []
        assert [info.id for info in await sessions.list()] == ["s1"]
