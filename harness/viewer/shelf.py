"""The sessions that one visitor may open, each under a key that says nothing of its place.

A page names a session by its key only, and a key is looked up among the sessions that were found
in the opened places. So no address can lead to a file that is not on the shelf.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import FileMissing, SessionNotFound
from harness.filesystem import pool
from harness.transcripts import Candidate, discover, in_worker
from harness.transcripts.listing import Listing, listing
from harness.transcripts.refusing import path_text

__all__ = ["Item", "Shelf", "found_in", "found_usual", "key_of", "listed_in", "listed_usual"]

_FRESH = 5.0
"""Seconds for which a listing is not made anew."""
_MISSED = 1.0
"""Seconds after which a key that is not known makes it look again."""


@dataclass(frozen=True, slots=True)
class Item:
    """A session on the shelf."""

    key: str
    candidate: Candidate

    @property
    def source(self) -> Path:
        """The file or database it is in."""
        return Path(self.candidate.path)

    @property
    def session_id(self) -> str:
        """Its id among those of the same source."""
        return str(self.candidate.session_id)

    @property
    def title(self) -> str:
        """What a list calls it: its name, else what was asked first, else its id."""
        return str(self.candidate.title or self.candidate.prompt or self.candidate.session_id)

    def is_child_of(self, other: Item) -> bool:
        """Whether it names the other session as the one that started it."""
        return self.candidate.subagent_of == other.session_id and self.candidate.format == other.candidate.format

    @property
    def is_ours(self) -> bool:
        """Whether it is a ledger of this library."""
        return self.candidate.format == "harness"


class Shelf:
    """Lists sessions and finds them by key.

    look   gives the sessions there are; runs in a worker, so it must be a function that can be sent
           there. What it may look at is decided by whoever makes the shelf.
    """

    def __init__(self, look: Callable[[], Listing]) -> None:
        self._look = look
        self._real: dict[str, Path] = {}
        self.note: str | None = None
        """What a list has to say about files that were not looked at."""
        self._items: dict[str, Item] = {}
        self._looked = float("-inf")
        self._lock = asyncio.Lock()

    async def items(self) -> list[Item]:
        """All sessions, newest first, as they were at most a few seconds ago."""
        await self._refresh(_FRESH)
        return list(self._items.values())

    async def find(self, key: str) -> Item:
        """The session of that key. Raises `SessionNotFound`; the key is not in the message."""
        if key not in self._items:
            await self._refresh(_MISSED)
        if key not in self._items:
            raise SessionNotFound("there is no session under this address; open the list to see those there are")
        item = self._items[key]
        # What was listed may have been replaced by a link since, which may lead anywhere.
        if await pool.run(item.source.resolve) != self._real[key]:
            raise SessionNotFound("another file took the place of this session; open the list to see those there are")
        return item

    async def _refresh(self, age: float) -> None:
        async with self._lock:
            if time.monotonic() - self._looked <= age:
                return
            found = await in_worker(self._look)
            items = {item.key: item for item in (Item(key_of(each), each) for each in found.sessions)}
            self._real = await pool.run(_real_paths, items)
            self._items, self.note = items, found.note
            self._looked = time.monotonic()


def key_of(candidate: Candidate) -> str:
    """The key of a session: the same as long as it stays where it is."""
    return hashlib.sha256(f"{path_text(candidate.path)}\0{candidate.session_id}".encode()).hexdigest()[:16]


def found_in(roots: Sequence[Path]) -> list[Candidate]:
    """The sessions in these files, databases and folders, newest first; nothing a link leads out to.

    A place that is not there holds none. Raises `TranscriptRefused` for a file that is no session.
    """
    return listed_in(roots).sessions


def listed_in(roots: Sequence[Path]) -> Listing:
    """The same, with how many files were not looked at."""
    looked = [(root, _listed(root)) for root in roots]
    found = [each for root, there in looked for each in there.sessions if _is_within(Path(each.path), root)]
    newest = sorted(found, key=lambda each: str(each.modified), reverse=True)
    return Listing(newest, sum(there.left_out for _, there in looked))


def found_usual() -> list[Candidate]:
    """The sessions in the places where the harnesses of this machine keep theirs, newest first."""
    return discover(subagents=True)


def listed_usual() -> Listing:
    """The same, as a shelf wants it."""
    return Listing(found_usual())


def _real_paths(items: Mapping[str, Item]) -> dict[str, Path]:
    return {key: item.source.resolve() for key, item in items.items()}


def _listed(root: Path) -> Listing:
    try:
        return listing(root)
    except FileMissing:
        return Listing([])  # a user who has not spoken yet has no folder yet


def _is_within(path: Path, root: Path) -> bool:
    return path.resolve().is_relative_to(root.resolve())
