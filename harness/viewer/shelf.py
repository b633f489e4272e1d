"""The sessions that one visitor may open, each under a key that says nothing of its place.

A page names a session by its key only, and a key is looked up among the sessions that were found
in the opened places. So no address can lead to a file that is not on the shelf.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from harness.errors import FileMissing, SessionNotFound, TranscriptRefused
from harness.filesystem import pool
from harness.transcripts import Candidate, discover, in_worker
from harness.transcripts.discovery import usual_listing
from harness.transcripts.formats import format_named
from harness.transcripts.listing import Listing, listing
from harness.transcripts.refusing import path_text
from harness.viewer.shares import Share

__all__ = ["Item", "Looked", "Shelf", "found_in", "found_usual", "key_of", "listed_in", "listed_usual"]

_FRESH = 5.0
"""Seconds for which a listing is not made anew."""
_MISSED = 1.0
"""Seconds after which a key that is not known makes it look again."""


class Looked(NamedTuple):
    """The sessions that were found, newest first, and a sentence about what was not looked at; None for nothing."""

    sessions: list[Candidate]
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """A session on the shelf. `real` is its file without a link on the way."""

    key: str
    candidate: Candidate
    real: Path

    @property
    def source(self) -> Path:
        """The file or database it is in."""
        return Path(self.candidate.path)

    @property
    def folder(self) -> Path:
        """What is read for it lies in this folder, wherever a link leads."""
        home = format_named(self.candidate.format).home(self.real)
        return home if home != self.real else self.real.parent

    @property
    def session_id(self) -> str:
        """Its id among those of the same source."""
        return str(self.candidate.session_id)

    @property
    def title(self) -> str:
        """What a list calls it: its name, else what was asked first, else its id."""
        return str(self.candidate.title or self.candidate.prompt or self.candidate.session_id)

    @property
    def at(self) -> str:
        """When it was last spoken in, as far as it says so; else when its file was changed."""
        return _at(self.candidate)

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
    share  what is at work for the visitor; a shelf that is kept for them keeps it
    """

    def __init__(self, look: Callable[[], Looked | Listing]) -> None:
        self.share = Share()
        self._look = look
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
        # What was listed may have been replaced by a link since, which may lead anywhere; who reads it looks again.
        if await pool.run(item.source.resolve) != item.real:
            raise SessionNotFound("another file took the place of this session; open the list to see those there are")
        return item

    async def _refresh(self, age: float) -> None:
        async with self._lock:
            if time.monotonic() - self._looked <= age:
                return
            async with self.share.pages:
                found = await in_worker(self._look)
            items = await pool.run(_items, found.sessions)
            self._items, self.note = {item.key: item for item in items}, found.note
            self._looked = time.monotonic()


def key_of(candidate: Candidate) -> str:
    """The key of a session: the same as long as it stays where it is."""
    return hashlib.sha256(f"{path_text(candidate.path)}\0{candidate.session_id}".encode()).hexdigest()[:16]


def found_in(roots: Sequence[Path]) -> list[Candidate]:
    """The sessions in these files, databases and folders, newest first; nothing a link leads out to.

    A place that is not there holds none. Raises `TranscriptRefused` for a file that is no session.
    """
    return _newest_of((root, _listed(root).sessions) for root in roots)


def listed_in(roots: Sequence[Path]) -> Looked:
    """The same, of a shelf's places: one that holds no session any more takes no other's away, and is noted."""
    looked = [(root, _looked_at(root)) for root in roots]
    notes = dict.fromkeys(there.note for _, there in looked if there.note)
    return Looked(_newest_of((root, there.sessions) for root, there in looked), "; ".join(notes) or None)


def found_usual() -> list[Candidate]:
    """The sessions in the places where the harnesses of this machine keep theirs, newest first."""
    return discover(subagents=True)


def listed_usual() -> Looked:
    """The same, as a shelf wants it."""
    found = usual_listing(subagents=True)
    return Looked(found.sessions, found.note)


def _items(found: Sequence[Candidate]) -> list[Item]:
    return [Item(key_of(each), each, Path(each.path).resolve()) for each in found]


def _listed(root: Path) -> Listing:
    try:
        return listing(root)
    except FileMissing:
        return Listing([])  # a user who has not spoken yet has no folder yet


def _looked_at(root: Path) -> Looked:
    try:
        there = _listed(root)
    except TranscriptRefused:
        return Looked([], f"{path_text(root.name)} holds no session that can be read")
    return Looked(there.sessions, there.note)


def _newest_of(found: Iterable[tuple[Path, Sequence[Candidate]]]) -> list[Candidate]:
    inside = [each for root, there in found for each in there if _is_within(Path(each.path), root)]
    return sorted(inside, key=lambda each: (_at(each), each.session_id), reverse=True)


def _at(candidate: Candidate) -> str:
    return str(candidate.last_ts or candidate.modified)


def _is_within(path: Path, root: Path) -> bool:
    return path.resolve().is_relative_to(root.resolve())
