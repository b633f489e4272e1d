"""The active path of a whole ledger in little memory: where its lines and its turns are, not what they say.

Reads the file once, in blocks. What a line says is read again where somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from harness.errors import FileMissing
from harness.filesystem import disk
from harness.messages import MessageDict
from harness.sessions.ledger.numbering import whole_turns
from harness.sessions.ledger.reading import active_path
from harness.sessions.lines.blobs import read_blob, try_expand
from harness.sessions.lines.entries import REFERENCE, Entry, EntryDict, parse_line
from harness.sessions.lines.layout import SessionFiles
from harness.sessions.view.projection import Turn
from harness.sessions.view.turns import message_of, opens_turn

__all__ = ["Look", "Outline"]

Look = Callable[[EntryDict], None]
"""Is shown each line while it is in memory, and need not keep it."""

_KEPT = ("type", "id", "parentId", "turnId")


class Outline:
    """The turns of the active path, from 1. Blocking; damaged lines are stepped over.

    A session without a ledger has none.
    """

    def __init__(self, files: SessionFiles, *looks: Look) -> None:
        self._files = files
        path = active_path(list(_read(files, looks)), damaged=True) or []
        self.ids = {entry.id for entry in path}
        """The entry ids of the path."""
        self._slices = _slices(path)
        self._late = _late(self._slices)
        if self._slices and not self._slices[0][0].opens and not self._project(self._slices[0]).messages:
            del self._slices[0]  # what stands before the first directive is a turn only if it says something
        numbered = [*enumerate(self._slices, start=1)]
        self._numbers = {entry.id: number for number, lines in numbered for entry in lines}
        for number, lines in numbered:
            self._numbers.update((entry.id, number) for entry in self._late.get(lines[0].id, ()))

    def __len__(self) -> int:
        return len(self._slices)

    def number_of(self, entry_id: str) -> int | None:
        """The number of the turn that a line belongs to; None for a line that is not on the path."""
        return self._numbers.get(entry_id)

    def turn(self, number: int) -> Turn:
        """A turn with everything that was said in it. Raises `IndexError` where there is none of that number."""
        if number < 1:
            raise IndexError(number)
        return self._project(self._slices[number - 1])

    def directive(self, number: int) -> MessageDict | None:
        """What opened a turn, without what hooks put behind it; None where no person did. Raises as `turn` does."""
        if number < 1:
            raise IndexError(number)
        entry = self._whole(self._slices[number - 1][0])
        return message_of(entry.data) if entry is not None and opens_turn(entry.data) else None

    def _project(self, lines: Sequence[Entry]) -> Turn:
        """The turn in these lines; one without messages where they say nothing."""
        whole = [self._whole(entry) for entry in self._lines(lines)]
        turns = whole_turns([entry for entry in whole if entry])
        return turns[0] if turns else Turn(lines[0].id, (), closed=True, aborted=False, entry_ids=())

    def _lines(self, lines: Sequence[Entry]) -> list[Entry]:
        """With those that were written for the turn after the next one had begun."""
        return [*lines, *self._late.get(lines[0].id, ())]

    def _whole(self, entry: Entry) -> Entry | None:
        data = parse_line(disk.read(self._files.ledger, entry.offset, entry.size))
        if data is None or data["id"] != entry.id:
            return None
        if entry.refers:
            try_expand(data, partial(read_blob, self._files.blobs))
        return Entry(data, entry.seq, entry.offset, entry.size)


def _read(files: SessionFiles, looks: Sequence[Look]) -> Iterator[Entry]:
    """Every readable line as an entry that holds no more than who it is and what it follows."""
    for seq, (offset, raw) in enumerate(_raw_lines(files.ledger), start=1):
        data = parse_line(raw)
        if data is None:
            continue
        refers = REFERENCE in raw
        for look in looks:
            look(data)
        entry = Entry({key: data.get(key) for key in _KEPT}, seq, offset, len(raw), refers)
        entry.opens = _opens(data, refers, files)
        yield entry


def _opens(data: EntryDict, refers: bool, files: SessionFiles) -> bool:
    if refers and opens_turn(data):
        try_expand(data, partial(read_blob, files.blobs))  # a preview need not show the results it stands for
    return opens_turn(data)


def _raw_lines(ledger: Path) -> Iterator[tuple[int, bytes]]:
    """The lines with the byte each begins at; none where there is no file."""
    offset, rest = 0, b""
    try:
        for block in disk.read_blocks(ledger):
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                yield offset, line
                offset += len(line) + 1
    except FileMissing:
        return
    if rest:
        yield offset, rest


def _slices(path: Sequence[Entry]) -> list[list[Entry]]:
    """The path cut before each directive."""
    slices: list[list[Entry]] = []
    for entry in path:
        if entry.opens or not slices:
            slices.append([])
        slices[-1].append(entry)
    return slices


def _late(slices: Sequence[Sequence[Entry]]) -> dict[str, list[Entry]]:
    """The lines that name an earlier turn than the one they stand in, by that turn."""
    openers = {lines[0].id for lines in slices}
    late: dict[str, list[Entry]] = {}
    for lines in slices:
        for entry in lines:
            turn = str(entry.data.get("turnId"))
            if turn != lines[0].id and turn in openers and entry.kind in ("message", "event", "request_end"):
                late.setdefault(turn, []).append(entry)
    return late
