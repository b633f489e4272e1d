"""The snapshot that a commit takes along: what `save` would write, in the same hop, and never instead of the lines."""

from pathlib import Path
from typing import Any

import pytest

from harness.errors import PersistenceError
from harness.filesystem import locks
from harness.sessions import JsonSession, SessionTree, SnapshotWriter, load_snapshot
from harness.sessions.snapshot import Snapshot
from harness.state import SessionKey

KEY = SessionKey((), "a", "s")


class Talk:
    """A ledger, a store beside it, and the one writer of its snapshots."""

    def __init__(self, folder: Path) -> None:
        self.tree = SessionTree(folder / "sessions", "s", agent="a", namespace=())
        self.store = JsonSession(folder / "store")
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
        return {"ledgerId": tree.ledger_id, "seq": tree.count, "hash": tree.last_hash, "count": count}


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
        with locks.FileLock(folder / ".hold").hold(0):
            talk.plan()
            await talk.tree.commit()
        assert texts(await talk.stored()) == ["one"]
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


def full_disk(descriptor: int, data: bytes) -> None:
    raise OSError(28, "No space left on device")
