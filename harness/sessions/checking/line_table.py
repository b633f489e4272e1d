"""A ledger read once from front to back for checking, in blocks: some 50 bytes are kept of each line."""

from __future__ import annotations

import hashlib
import re
from array import array
from collections.abc import Iterable, Iterator

from harness.sessions.checking.misplaced import misplaced
from harness.sessions.lines.entries import EntryDict, object_in
from harness.sessions.lines.headers import ORIGINS
from harness.sessions.lines.listed import names_in
from harness.sessions.lines.references import LOOK
from harness.sessions.lines.shapes import wrong_part
from harness.sessions.view.turns import SAYING, closes_commit, opens_turn

__all__ = ["LineTable", "short_sum"]

_LONGEST = 16 * 1024 * 1024
"""Bytes of a line that are held in memory; a longer one is hashed as it comes, and counts as unreadable."""

_LINK = re.compile(rb'"prevHash":"([0-9a-f]{64})"')
_DIGEST = re.compile("[0-9a-f]{64}")
_ENVELOPE = 1000


class LineTable:
    """Numbers, places and digests of all lines. Lists are by line, from 0.

    sums    the first 8 bytes of each line's SHA-256, and `links` those of the one it names as before it
    linked  1 where a line names exactly the bytes before it (all 32 bytes were compared)
    breaks  the lines that do not simply follow the one before: unreadable, out of place, not linked
    ids     for each line a number that stands for its id; 0 for an unreadable one
    """

    def __init__(self, anchor_hash: str = "", wanted: Iterable[int] = ()) -> None:
        self.seqs = array("Q")
        self.starts = array("Q")
        self.sums = array("Q")
        self.links = array("Q")
        self.linked = bytearray()
        self.blank = bytearray()
        self.breaks: list[int] = []
        self.size = 0
        self.ended = True
        self.header: EntryDict | None = None
        self.damages: list[tuple[int, EntryDict]] = []
        """Events that tell of damage found before, by line."""
        self.named: dict[str, int] = {}
        """The files that lines name, and the first line that does."""
        self.anchored_at = -1
        """The last line that has the hash of the anchor."""
        self.wanted = set(wanted)
        """Sums of lines that should be here and have not been met."""
        self.ids = array("Q")
        self.grown = True
        """Whether each id is greater than all before it, as those minted here are: then none is there twice."""
        self.parents: dict[int, int] = {}
        """What a line names as its parent, where that is not the line before it: branches, and what is wrong."""
        self._newest_id = ""
        self._id_before = ""
        self.wrong: list[tuple[int, str]] = []
        """The lines that say what no line can say, and the part of each that does."""
        self.misplaced: list[tuple[int, str]] = []
        """The lines that no writer leaves where they stand, and what each of them does there."""
        self.directives: list[int] = []
        """The lines that open a turn."""
        self.boundaries: dict[int, int] = {}
        """The lines of boundaries, and what the last turn that each of them hides is called, as in `ids`."""
        self._committed = self._went_on = False
        self._anchor_hash = anchor_hash
        self._before = ""
        self._expected = 1
        self._start = 0

    def __len__(self) -> int:
        return len(self.seqs)

    def read(self, blocks: Iterable[bytes]) -> LineTable:
        """Take in a whole ledger; itself."""
        for raw, hexdigest, length in self._lines(blocks):
            self._take(raw, hexdigest, length)
        return self

    @property
    def unanswered(self) -> bool:
        """Whether nothing was said behind its first commit that has an anchor, as the function of that name has it."""
        begun = self.header is not None and not any(origin in self.header for origin in ORIGINS)
        return begun and not self._went_on and not self.boundaries

    def readable(self, line: int) -> bool:
        """Whether a line could be an entry."""
        return self.seqs[line] > 0

    def places_of_parents(self) -> dict[int, int]:
        """Where the lines are that `parents` names; of those with one id the first."""
        wanted = set(self.parents.values())
        backwards = range(len(self.ids) - 1, -1, -1) if wanted else ()
        return {self.ids[line]: line for line in backwards if self.ids[line] in wanted}

    def place_is_right(self, line: int) -> bool:
        """Whether nothing is missing before a line: it has its own number, or the next after the line before."""
        seq = self.seqs[line]
        back = line - 1
        while back >= 0 and not self.readable(back):
            back -= 1
        return seq == line + 1 or (back >= 0 and seq == self.seqs[back] + line - back)

    def _lines(self, blocks: Iterable[bytes]) -> Iterator[tuple[bytes | None, str, int]]:
        """Each line without its end, or None for one that is too long; its SHA-256; its length."""
        rest = _Rest()
        for block in blocks:
            self.size += len(block)
            first, *others = block.split(b"\n")
            rest.add(first)
            if others:
                yield rest.take()
                *whole, last = others
                for raw in whole:
                    yield raw, hashlib.sha256(raw).hexdigest(), len(raw)
                rest.add(last)
        self.ended = not rest.length
        if rest.length:
            yield rest.take()

    def _take(self, raw: bytes | None, hexdigest: str, length: int) -> None:
        line = len(self.seqs)
        entry = None if raw is None else object_in(raw)
        seq = _number(entry)
        link = _link(entry, raw) if seq or entry is None else ""
        linked = link == self._before
        self.starts.append(self._start)
        self._start += length + 1
        self.seqs.append(seq)
        self.sums.append(short_sum(hexdigest))
        if linked and line:
            self.links.append(self.sums[line - 1])
        else:
            self.links.append(short_sum(link) if _DIGEST.fullmatch(link) else 0)
        self.linked.append(linked)
        self.blank.append(raw is not None and not raw.strip())
        if not (seq and linked and seq in (self._expected, line + 1)):
            self.breaks.append(line)
        self._expected = (seq or self._expected) + 1
        self._before = hexdigest
        if hexdigest == self._anchor_hash:
            self.anchored_at = line
        self.wanted.discard(self.sums[line])
        if entry is not None and (wrong := wrong_part(entry)):
            self.wrong.append((line, wrong))
            entry = None
        self.ids.append(_short_id(entry["id"]) if entry is not None else 0)
        if entry is not None and raw is not None:
            self._place_in_tree(entry, line)
            self._look_into(entry, raw, line)

    def _place_in_tree(self, entry: EntryDict, line: int) -> None:
        entry_id, parent = entry["id"], entry.get("parentId")
        if entry_id > self._newest_id:
            self._newest_id = entry_id
        else:
            self.grown = False
        if parent != self._id_before and isinstance(parent, str):
            self.parents[line] = _short_id(parent)
        self._id_before = entry_id

    def _look_into(self, entry: EntryDict, raw: bytes, line: int) -> None:
        kind = entry["type"]
        if kind == "message" and opens_turn(entry):
            self.directives.append(line)
        elif kind == "compaction" and entry.get("boundary") is True:
            self.boundaries[line] = _short_id(entry.get("lastTurn"))
        if self._committed:
            self._went_on = self._went_on or kind in SAYING
        else:
            self._committed = closes_commit(entry)
        if kind == "header" and self.header is None:
            self.header = entry
        elif text := misplaced(kind, line + 1):
            self.misplaced.append((line, text))
        elif kind == "event" and entry.get("kind") == "damage":
            self.damages.append((line, entry))
        if LOOK in raw:
            for name in names_in(entry):
                self.named.setdefault(name, line)


class _Rest:
    """The part of a line that has been read."""

    def __init__(self) -> None:
        self.length = 0
        self._data: bytes | None = b""
        self._sum = hashlib.sha256()

    def add(self, part: bytes) -> None:
        self.length += len(part)
        self._sum.update(part)
        self._data = None if self._data is None or self.length > _LONGEST else self._data + part

    def take(self) -> tuple[bytes | None, str, int]:
        taken = self._data, self._sum.hexdigest(), self.length
        self.length, self._data, self._sum = 0, b"", hashlib.sha256()
        return taken


def short_sum(hexdigest: str) -> int:
    """The first 8 bytes of a digest as a number; only for finding lines again, never for proving one."""
    return int(hexdigest[:16], 16)


def _short_id(entry_id: object) -> int:
    """An id as a number, to compare it with others of the same process."""
    return hash(entry_id if isinstance(entry_id, str) else "") & (2**64 - 1) or 1


def _number(entry: EntryDict | None) -> int:
    seq = entry.get("seq") if entry else 0
    # A line whose number is none counts as unreadable.
    return seq if type(seq) is int and 0 < seq < 2**63 else 0


def _link(entry: EntryDict | None, raw: bytes | None) -> str:
    """What a line says about the one before it; a fragment may say it too."""
    if entry is not None:
        return str(entry.get("prevHash", ""))
    found = _LINK.search(raw, 0, _ENVELOPE) if raw else None
    return found[1].decode() if found else ""
