"""The snapshot that a commit takes along: what `save` would write, in the same hop, and never instead of the lines."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from harness.errors import PersistenceError
from harness.filesystem import disk, locks
from harness.sessions import JsonSession, SessionTree, SnapshotWriter, WorkspaceSession, load_snapshot
from harness.sessions.snapshots.snapshot import Snapshot
from harness.sessions.tree.reconcile import LedgerWins, reconcile
from harness.state import SessionKey

KEY = SessionKey((), "a", "s")
OWNER = "14eb59573e4da437fd5530bcbafa1b84de74aa020e96ab7b6ace112f37e14474"


class Talk:
    """A ledger, a store beside it, and the one writer of its snapshots."""

    def __init__(self, folder: Path) -> None:
        self.tree = SessionTree(folder / "sessions", "s", agent="a", namespace=())
        self.store: JsonSession | WorkspaceSession = JsonSession(folder / "store")
        self.writer = SnapshotWriter()

    def say(self, text: str) -> None:
        self.tree.add_message({"role": "user", "content": [{"type": "text", "text": text}]}, via="user")

    async def began(self) -> None:
        """A first message, whose snapshot is written the usual way."""
        self.say("one")
        await self.tree.commit()
        await self.save()

    def plan(self, **values: Any) -> None:
        self.writer.save_with_commit(self.store, KEY, self.tree, values)

    async def save(self, **values: Any) -> None:
        await self.writer.save(self.store, KEY, self.tree, values)

    async def stored(self) -> Snapshot:
        snapshot = await load_snapshot(self.store, KEY)
        assert snapshot is not None
        return snapshot

    def position(self, count: int) -> dict[str, Any]:
        tree = self.tree
        place = {"ledgerId": tree.ledger_id, "seq": tree.count, "hash": tree.last_hash, "count": count}
        return {**place, "owner": OWNER}


def texts(snapshot: Snapshot) -> list[str]:
    return [message["content"][0]["text"] for message in snapshot.messages]


async def test_a_commit_takes_along_what_save_would_write(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    async with talk.tree.writing():
        await talk.began()
        talk.say("two")
        talk.plan(plan={"step": 2})
        await talk.tree.commit()
        snapshot = await talk.stored()
        assert (texts(snapshot), snapshot.position) == (["one", "two"], talk.position(2))
        assert await talk.store.get(KEY, "plan") == {"step": 2}


async def test_save_writes_nothing_after_a_commit_that_took_the_snapshot_along(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    memory = tmp_path / "store"
    async with talk.tree.writing():
        await talk.began()
        talk.say("two")
        talk.plan()
        await talk.tree.commit()
        before = {path: path.stat().st_ino for path in memory.rglob("memory*")}
        await talk.save()
        assert {path: path.stat().st_ino for path in memory.rglob("memory*")} == before
        assert len(before) == 2


async def test_a_commit_that_fails_leaves_the_snapshot_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = Talk(tmp_path)
    async with talk.tree.writing():
        await talk.began()
        old = talk.position(1)
        talk.say("two")
        talk.plan()
        with monkeypatch.context() as patch:
            patch.setattr("harness.filesystem.appending.write_all", full_disk)
            with pytest.raises(PersistenceError):
                await talk.tree.commit()
        assert (await talk.stored()).position == old
        await talk.tree.commit()
        assert (await talk.stored()).position == old, "it went along with a later commit, which it does not describe"
        await talk.save()
        snapshot = await talk.stored()
        assert (texts(snapshot), snapshot.position) == (["one", "two"], talk.position(2))


async def test_a_busy_store_does_not_hold_up_the_commit_and_save_makes_up_for_it(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    async with talk.tree.writing():
        await talk.began()
        talk.say("two")
        [folder] = {path.parent for path in (tmp_path / "store").rglob("memory.json")}
        async with locks.FileLock(folder / ".hold").held_for(0):
            talk.plan()
            await talk.tree.commit()
        assert texts(await talk.stored()) == ["one"]
        await talk.save()
        snapshot = await talk.stored()
        assert (texts(snapshot), snapshot.position) == (["one", "two"], talk.position(2))


async def test_beside_the_ledger_its_lock_is_enough_and_no_other_is_waited_for(tmp_path: Path) -> None:
    talk = Talk(tmp_path / "tenants" / "_" / "agents" / "a")
    talk.store = WorkspaceSession(tmp_path, "a")
    async with talk.tree.writing():
        await talk.began()
        talk.say("two")
        async with locks.FileLock(tmp_path / "tenants/_/agents/a/context/s/.hold").held_for(0):
            talk.plan()
            await talk.tree.commit()
        snapshot = await talk.stored()
        assert (texts(snapshot), snapshot.position) == (["one", "two"], talk.position(2))


async def test_a_store_of_another_session_is_not_beside_the_ledger(tmp_path: Path) -> None:
    files = Talk(tmp_path / "tenants" / "_" / "agents" / "a").tree.files
    store = WorkspaceSession(tmp_path, "a")
    assert store.is_beside(KEY, files)
    assert not store.is_beside(SessionKey((), "a", "t"), files)
    assert not store.is_beside(SessionKey((), "b", "s"), files)
    assert not store.is_beside(SessionKey(("alice",), "a", "s"), files)
    assert not WorkspaceSession(tmp_path / "elsewhere", "a").is_beside(KEY, files)


async def test_a_folder_of_states_that_was_removed_comes_back(tmp_path: Path) -> None:
    talk = Talk(tmp_path / "tenants" / "_" / "agents" / "a")
    talk.store = WorkspaceSession(tmp_path, "a")
    async with talk.tree.writing():
        await talk.began()
        disk.remove_tree(tmp_path / "tenants" / "_" / "agents" / "a" / "context" / "s")
        talk.say("two")
        talk.plan()
        await talk.tree.commit()
        await talk.save()
        snapshot = await talk.stored()
        assert (texts(snapshot), snapshot.position) == (["one", "two"], talk.position(2))


async def test_a_list_that_somebody_else_changed_is_put_right_by_save(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    async with talk.tree.writing():
        await talk.began()
        await JsonSession(tmp_path / "store").replace(KEY, "memory_messages", [])
        talk.say("two")
        talk.plan()
        await talk.tree.commit()
        await talk.save()
        assert texts(await talk.stored()) == ["one", "two"]


async def test_a_writer_that_has_forgotten_looks_at_what_somebody_else_wrote(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    async with talk.tree.writing():
        await talk.began()
        other = {"id": "m-9", "role": "user", "content": [{"type": "text", "text": "by another, as many as before"}]}
        await JsonSession(tmp_path / "store").replace(KEY, "memory_messages", [other])
        talk.writer.forget()
        talk.say("two")
        talk.plan()
        await talk.tree.commit()
        await talk.save()
        snapshot = await talk.stored()
        assert (texts(snapshot), snapshot.position) == (["one", "two"], talk.position(2))


async def test_the_position_is_overwritten_in_place(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    async with talk.tree.writing():
        await talk.began()
        [memory] = (tmp_path / "store").rglob("memory.json")
        inode = memory.stat().st_ino
        talk.say("two")
        talk.plan()
        await talk.tree.commit()
        assert (memory.stat().st_ino, memory.stat().st_size) == (inode, 512)
        assert (await talk.stored()).position == talk.position(2)


async def test_a_position_written_without_a_sum_is_read_and_then_replaced_by_one_with_it(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    async with talk.tree.writing():
        await talk.began()
        [memory] = (tmp_path / "store").rglob("memory.json")
        memory.write_bytes(orjson.dumps(talk.position(1)))
        assert (await talk.stored()).position == talk.position(1)
        talk.say("two")
        talk.plan()
        await talk.tree.commit()
        assert (await talk.stored()).position == talk.position(2)
        assert memory.stat().st_size == 512


@pytest.mark.parametrize("damage", [b"", b"{", b"[", b'{"ledgerId":"', b"\0" * 100])
async def test_a_damaged_position_is_absent_and_costs_no_message(
    tmp_path: Path, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    talk = Talk(tmp_path)
    async with talk.tree.writing():
        await talk.began()
        [memory] = (tmp_path / "store").rglob("memory.json")
        block = memory.read_bytes()
        memory.write_bytes(damage + b"#" + block[len(damage) + 1 :])
        snapshot = await talk.stored()
        assert (texts(snapshot), snapshot.position) == (["one"], None)
        assert "memory.json is damaged" in caplog.text
        assert reconcile(talk.tree, snapshot.position, snapshot.messages) == LedgerWins()
        talk.say("two")
        talk.plan()
        await talk.tree.commit()
        assert (await talk.stored()).position == talk.position(2)


async def test_a_position_is_looked_at_again_while_a_writer_is_at_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = Talk(tmp_path)
    async with talk.tree.writing():
        await talk.began()
        read, looks = disk.read, []

        def half_written_at_first(path: Path, *where: int) -> bytes:
            looks.append(path.name)
            raw = read(path, *where)
            return b"#" + raw[1:] if looks == ["memory.json"] else raw

        monkeypatch.setattr(disk, "read", half_written_at_first)
        assert await talk.store.get(KEY, "memory") == talk.position(1)
        assert looks == ["memory.json", "memory.json"]


async def test_what_does_not_fit_into_a_block_is_stored_as_a_plain_value(tmp_path: Path) -> None:
    store, long = JsonSession(tmp_path), {"ledgerId": "l" * 512, "seq": 1}
    await store.save_together(KEY, {}, "memory_messages", [], None, {"memory": long})
    assert await store.get(KEY, "memory") == long


async def test_a_store_that_syncs_every_write_replaces_the_position(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.store = JsonSession(tmp_path / "store", sync=True)
    async with talk.tree.writing():
        await talk.began()
        [memory] = (tmp_path / "store").rglob("memory.json")
        inode = memory.stat().st_ino
        talk.say("two")
        talk.plan()
        await talk.tree.commit()
        assert memory.stat().st_ino != inode
        assert (await talk.stored()).position == talk.position(2)


def full_disk(descriptor: int, data: bytes) -> None:
    raise OSError(28, "No space left on device")
