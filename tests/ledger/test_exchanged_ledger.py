"""A ledger that was exchanged under somebody who knew it: a cached writer, and a reader that follows."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import SessionDamaged
from harness.sessions import SessionTree


def tree_of(folder: Path) -> SessionTree:
    return SessionTree(folder, "s", agent="a", namespace=())


async def say(tree: SessionTree, *texts: str) -> None:
    async with tree.writing():
        for text in texts:
            tree.add_message({"role": "user", "content": [{"type": "text", "text": text}]}, via="user")
        await tree.commit(sync=True)


def put_in_place(ledger: Path, data: bytes) -> None:
    """Other bytes in the same file, as a file that was removed and made anew may be: inodes are given again."""
    before = ledger.stat()
    while ledger.stat().st_ctime_ns == before.st_ctime_ns:  # a clock of the system may tick slowly
        ledger.write_bytes(data)
    assert ledger.stat().st_ino == before.st_ino


@pytest.mark.parametrize("stamp", ["new", "as it was"])
async def test_a_cached_session_is_read_again_when_another_one_of_its_length_is_there(tmp_path, stamp):
    cached = tree_of(tmp_path / "one")
    await say(cached, "my SECRET")
    await say(tree_of(tmp_path / "two"), "something"[: len("my SECRET")])
    ledger, times = cached.files.ledger, cached.files.ledger.stat()
    other = (tmp_path / "two" / "s.log.jsonl").read_bytes()
    assert len(other) == ledger.stat().st_size
    put_in_place(ledger, other)
    cached.files.anchor.write_bytes((tmp_path / "two" / "s.head.json").read_bytes())
    if stamp != "new":
        os.utime(ledger, ns=(times.st_atime_ns, times.st_mtime_ns))
    async with cached.writing():
        assert [block["text"] for message in cached.messages() for block in message["content"]] == ["something"]
        cached.add("custom", {"kind": "n"})
    cold = tree_of(tmp_path / "one")
    await cold.load()
    assert cold.damage == []


async def followed(tree: SessionTree, change: Callable[[], None]) -> list[int]:
    """The lines seen before and after a change that is made when all lines were seen."""
    seen: list[int] = []
    async for entry in tree.follow(poll=0.005):
        seen.append(entry.seq)
        if len(seen) == 3:
            change()
        if len(seen) == 6:
            return seen
    return seen


async def test_a_follower_is_told_of_a_file_that_was_cut_and_has_grown_past_its_place(tmp_path):
    tree = tree_of(tmp_path / "one")
    await say(tree, "one", "two")
    await say(tree_of(tmp_path / "two"), "other " * 100, "others", "more", "still more")
    other = (tmp_path / "two" / "s.log.jsonl").read_bytes()
    with pytest.raises(SessionDamaged, match="was cut or replaced while it was followed"):
        await asyncio.wait_for(followed(tree, lambda: put_in_place(tree.files.ledger, other)), 10)


async def test_a_follower_goes_on_where_the_file_has_only_grown(tmp_path):
    tree = tree_of(tmp_path / "one")
    await say(tree, "one", "two", "three", "four", "five")
    lines = tree.files.ledger.read_bytes().splitlines(keepends=True)
    tree.files.ledger.write_bytes(b"".join(lines[:3]))

    def grow() -> None:
        with tree.files.ledger.open("ab") as file:
            file.write(b"".join(lines[3:]))

    assert await asyncio.wait_for(followed(tree_of(tmp_path / "one"), grow), 10) == [1, 2, 3, 4, 5, 6]
