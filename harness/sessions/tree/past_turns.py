"""The closed turns of a conversation, as a choice among them needs to know them.

Also turns that lie behind a boundary: those since the last few boundaries are read once, when the
choice is first made, and only what is asked of them all the time is kept. The messages of those
that are shown are read back from their place in the ledger.

A past turn is made from its own lines, from its directive to the next one, whatever boundaries
have hidden of it: so it is the same in every process, and can be worked out again afterwards.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from harness.filesystem import disk, pool
from harness.messages import MessageDict
from harness.models.tokens import estimate_tokens
from harness.sessions.ledger.numbering import count_turns, turns_before
from harness.sessions.ledger.reading import active_path, scan
from harness.sessions.lines.blobs import read_blob, try_expand
from harness.sessions.lines.entries import START, Entry, Position
from harness.sessions.lines.layout import SessionFiles
from harness.sessions.selection.mentions import files_in, one_line
from harness.sessions.selection.packets import Packet, packet_of
from harness.sessions.selection.sections import Section, card_of, closed_turn, numbered_sections
from harness.sessions.tree.reader import SessionReader
from harness.sessions.view.cards import card_words, numbered_line
from harness.sessions.view.full_record import full_record, full_tokens
from harness.sessions.view.turns import blocks_of, is_directive, newest_boundary

__all__ = ["PastTurn", "PastTurns", "past_turn"]


@dataclass(frozen=True, slots=True)
class PastTurn:
    """What is kept of a closed turn.

    full    what its Full record costs, in estimated tokens     line   its card as a line
    card    what that line costs                                words  by which it is found
    growth  what it grew by behind its directive while it was open
    tools   of each call, in order                              files  that the calls name
    start, end, leaf  its first line, the byte behind its last one, and the id of that
    """

    id: str
    number: int
    full: int
    card: int
    growth: int
    line: str
    words: tuple[str, ...]
    tools: tuple[str, ...]
    files: tuple[str, ...]
    start: Position
    end: int
    leaf: str


class PastTurns:
    """The closed turns of one session and its packets, brought up to date with `refresh`.

    It belongs to whoever holds the session; between calls it costs no file anything.
    """

    def __init__(self) -> None:
        self.turns: list[PastTurn] = []
        """Oldest first."""
        self.packets: list[Packet] = []
        """Oldest line first."""
        self._path: Sequence[Entry] = ()
        self._ranges: dict[str, tuple[int, int]] = {}
        self._links: list[Position] = []
        self._open = self._seen = 0
        self._number = 1
        self._records: dict[str, tuple[MessageDict, ...]] = {}

    async def refresh(self, tree: SessionReader, most: int) -> None:
        """Take in what was logged since the last time; `most` is how many boundaries to look behind.

        The last turn of the session counts as the open one. Reads the ledger only where the
        conversation is not the one known before: in a new process, after a branch, after another writer.
        """
        path = tree.path()
        if path is not self._path and not self._go_on(path, tree.boundary, most):
            await self._reload(tree, path, most)
        self._path = path
        self._grow(path)

    async def records(self, tree: SessionReader, wanted: Iterable[str]) -> dict[str, tuple[MessageDict, ...]]:
        """The Full records of these turns, by id; one whose lines are not there any more is left out.

        They are remembered until the next question.
        """
        ids = {*wanted}
        asked = [turn for turn in self.turns if turn.id in ids]
        found = {turn.id: self._records[turn.id] for turn in asked if turn.id in self._records}
        for turn in asked:
            if turn.id not in found and turn.id in self._ranges:
                found[turn.id] = _record(turn, self._path[slice(*self._ranges[turn.id])])
        if missing := [turn for turn in asked if turn.id not in found]:
            found.update(await pool.run(_read_records, tree.files, missing))
        self._records = found
        return found

    # ---- keeping up

    def _go_on(self, path: Sequence[Entry], boundary: Position, most: int) -> bool:
        """Follow a boundary that was added to the path known so far; whether it was that."""
        kept = next((index for index, entry in enumerate(self._path) if path and entry is path[0]), None)
        if kept is None or kept > self._open:
            return False
        seen = self._seen - kept
        if sum(entry.kind == "compaction" for entry in path[seen:]) != 1:
            return False  # somebody who does not ask for past turns has added more than one
        shifted = {turn_id: (start - kept, end - kept) for turn_id, (start, end) in self._ranges.items()}
        self._ranges = {turn_id: at for turn_id, at in shifted.items() if at[0] >= 0}
        self._open, self._seen = self._open - kept, seen
        self._links.insert(0, boundary)
        if len(self._links) > most + 1:
            del self._links[most + 1 :]
            self._forget_before(self._links[-1])
        return True

    def _forget_before(self, oldest: Position) -> None:
        self.turns = [turn for turn in self.turns if turn.start >= oldest]
        self.packets = [packet for packet in self.packets if packet.seq >= oldest.seq]

    def _grow(self, path: Sequence[Entry]) -> None:
        for index in range(self._seen, len(path)):
            if packet := packet_of(path[index]):
                self.packets.append(packet)
            if is_directive(path[index]) and index > self._open:
                self._close(path, index)
        self._seen = len(path)

    def _close(self, path: Sequence[Entry], end: int) -> None:
        section = path[self._open : end]
        is_turn = is_directive(section[0]) or section[0].data.get("parentId") is None
        turn = past_turn(section, self._number) if is_turn else None
        if turn:
            self.turns.append(turn)
            self._ranges[turn.id] = (self._open, end)
            self._number += 1
        self._open = end

    async def _reload(self, tree: SessionReader, path: Sequence[Entry], most: int) -> None:
        found = await pool.run(_read_past, tree.files, list(path), tree.boundary, most)
        at = {entry.id: index for index, entry in enumerate(path)}
        self.turns, self.packets, self._links, self._number = found.turns, found.packets, found.links, found.number
        self._open, self._seen, self._records = at.get(found.opener, 0), len(path), {}
        within = [turn for turn in found.turns if turn.leaf in at]
        self._ranges = {turn.id: (_begin(path, at[turn.leaf], turn), at[turn.leaf] + 1) for turn in within}


def past_turn(section: Section, number: int) -> PastTurn | None:
    """What is kept of the turn in these lines; None where nothing was said.

    A service holds many of these: words, which turns share, are kept once.
    """
    turn = closed_turn(section)
    if turn is None:
        return None
    card = card_of(turn, section)
    line = numbered_line(number, card)
    calls = [call for message in turn.messages for call in blocks_of(message, "toolUse")]
    return PastTurn(
        id=turn.id,
        number=number,
        full=full_tokens(full_record(turn, number)),
        card=estimate_tokens(f"{line}\n"),
        growth=full_tokens(turn.messages[1:]),
        line=line,
        words=tuple(sys.intern(word) for word in sorted(card_words(card))),
        tools=tuple(one_line(str(call.get("name"))) for call in calls),
        files=tuple(dict.fromkeys(name for call in calls for name in files_in(call.get("input")))),
        start=section[0].position,
        end=section[-1].offset + section[-1].size + 1,
        leaf=section[-1].id,
    )


def _record(known: PastTurn, section: Section) -> tuple[MessageDict, ...]:
    turn = closed_turn(section)
    return full_record(turn, known.number) if turn and turn.id == known.id else ()


def _begin(path: Sequence[Entry], leaf: int, turn: PastTurn) -> int:
    return next(index for index in range(leaf, -1, -1) if path[index].seq == turn.start.seq)


# ---- in a worker


@dataclass(slots=True)
class _Past:
    """What reading gave. `opener` is the first line of the open turn, `number` its number."""

    links: list[Position]
    turns: list[PastTurn] = field(default_factory=list)
    packets: list[Packet] = field(default_factory=list)
    opener: str = ""
    number: int = 1


def _read_past(files: SessionFiles, path: list[Entry], boundary: Position, most: int) -> _Past:
    found = _Past([boundary])
    whole = _with_older(files, path, found.links, most)
    newest = newest_boundary(path)
    before = turns_before(newest)
    if before is None and newest is not None:
        before = count_turns(files, newest.id)
    *closed, last = numbered_sections(whole, boundary.seq, before or 0) or [(1, path)]
    found.turns = [turn for number, section in closed if (turn := past_turn(section, number))]
    found.packets = [packet for entry in whole if (packet := packet_of(entry))]
    found.number = last[0]
    found.opener = last[1][0].id if last[1] else ""
    return found


def _with_older(files: SessionFiles, path: list[Entry], links: list[Position], most: int) -> list[Entry]:
    """The path with what lies behind its boundaries, at most so many; `links` gets the place each led to."""
    whole = path
    newest = newest_boundary(whole)
    while newest is not None and len(links) <= most and links[-1] != START:
        start, end = _earlier(newest), links[-1]
        links.append(start)
        whole = [*_lines(files, start, end, str(whole[0].data.get("parentId"))), *whole]
        newest = newest_boundary([entry for entry in whole if entry.seq < newest.seq])
    return whole


def _earlier(boundary: Entry) -> Position:
    """Where a reader had to begin before this boundary was there."""
    named = boundary.data.get("prevBoundary")
    if not isinstance(named, dict) or not all(type(named.get(key)) is int for key in ("seq", "offset")):
        return START
    before = START.seq <= named["seq"] < boundary.seq and START.offset <= named["offset"] < boundary.offset
    return Position(named["seq"], named["offset"]) if before else START


def _lines(files: SessionFiles, start: Position, end: Position, leaf: str) -> list[Entry]:
    """The lines of the active path between two places; `leaf` is the last of them."""
    data = disk.read(files.ledger, start.offset, max(end.offset - start.offset, 0))
    entries, _, _ = scan(data, start)
    at = next((index for index, entry in enumerate(entries) if entry.id == leaf), len(entries) - 1)
    path = active_path(entries[: at + 1], damaged=True) or []
    for entry in path:
        if entry.refers:
            try_expand(entry.data, partial(read_blob, files.blobs))
    return path


def _read_records(files: SessionFiles, turns: Iterable[PastTurn]) -> dict[str, tuple[MessageDict, ...]]:
    return dict(_records(files, turns))


def _records(files: SessionFiles, turns: Iterable[PastTurn]) -> Iterator[tuple[str, tuple[MessageDict, ...]]]:
    for turn in turns:
        section = _lines(files, turn.start, Position(0, turn.end), turn.leaf)
        if section and section[0].position == turn.start and (made := _record(turn, section)):
            yield turn.id, made
