"""A ledger of any length in little memory: line by line, or all its lines with what is long in them cut.

Who branches, lists or counts needs to know of every line who it is and what it follows, and of few what
they say. A line that is longer than any of ours may be is stepped over without being held.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from harness.errors import SessionDamaged
from harness.filesystem import disk
from harness.sessions.lines.entries import (
    REFERENCE,
    START,
    Damage,
    Entry,
    EntryDict,
    Position,
    Tail,
    digest,
    parse_line,
)
from harness.sessions.lines.second_header import OwnLines

__all__ = ["LONGEST", "RawLine", "cut_short", "entry_in", "read_entries", "read_lines", "skim", "uncut"]

LONGEST = 16 * 1024 * 1024
"""Bytes of a line that are held in memory; a longer one counts as unreadable."""

_SHORT = 8 * 1024
_TEXT = 2000
_BLOCK = 1024 * 1024
_NAMES = frozenset({"id", "parentId", "turnId", "requestId"})
_MARKS = frozenset({"meta", "stored", "handoff", "prevBoundary"})
"""Objects whose being there means something."""


class RawLine(NamedTuple):
    """A line of `size` bytes without its end, which only the last one may lack.

    `raw` is None for one longer than `LONGEST`; then `long_hash` is its SHA-256.
    """

    seq: int
    offset: int
    raw: bytes | None
    size: int
    ended: bool = True
    long_hash: str = ""

    @property
    def blank(self) -> bool:
        """Whether there is nothing in it, as an editor may leave it."""
        return self.raw is not None and not self.raw.strip()


def read_lines(path: Path, start: Position = START) -> Iterator[RawLine]:
    """The lines of a ledger from the one at `start` on, read in blocks. Raises `FileMissing`."""
    rest = _Rest(start)
    for block in _blocks(path, start.offset):
        *lines, last = block.split(b"\n")
        for part in lines:
            rest.add(part)
            yield rest.take(ended=True)
        rest.add(last)
    if rest.size:
        yield rest.take(ended=False)


def _blocks(path: Path, offset: int) -> Iterator[bytes]:
    while block := disk.read(path, offset, _BLOCK):
        yield block
        offset += len(block)


class _Rest:
    """The part of a line that has been read, and where the line is."""

    def __init__(self, start: Position) -> None:
        self.size = 0
        self._seq, self._offset = start
        self._data = b""
        self._sum: hashlib._Hash | None = None

    def add(self, part: bytes) -> None:
        self.size += len(part)
        if self._sum is not None:
            self._sum.update(part)
            return
        self._data = self._data + part if self._data else part
        if self.size > LONGEST:
            self._sum, self._data = hashlib.sha256(self._data), b""

    def take(self, ended: bool) -> RawLine:
        raw = None if self._sum else self._data
        line = RawLine(self._seq, self._offset, raw, self.size, ended, self._sum.hexdigest() if self._sum else "")
        self._seq, self._offset = self._seq + 1, self._offset + self.size + 1
        self.size, self._data, self._sum = 0, b"", None
        return line


def read_entries(path: Path) -> Iterator[Entry]:
    """The readable lines of the conversation, each held no longer than the caller does. Raises `FileMissing`."""
    own = OwnLines()
    for line in read_lines(path):
        if (entry := entry_in(line)) and own.has(entry):
            yield entry


def skim(path: Path, start: Position = START) -> tuple[list[Entry], list[Damage], Tail]:
    """What `scan` gives of the lines from `start` on, with long texts cut; `uncut` reads them again. Lines of another
    ledger are left out; the damage names where they begin.

    Raises `FileMissing`.
    """
    entries: list[Entry] = []
    damage: list[Damage] = []
    line, own = None, OwnLines()
    for line in read_lines(path, start):
        if entry := entry_in(line):
            if own.has(entry):
                entries.append(cut_short(entry))
        elif not line.blank:
            damage.append(Damage("bad" if line.ended else "torn", line.seq, line.offset))
    return entries, damage + own.damage, _tail(line) if line else Tail(start.seq - 1, start.offset)


def uncut(entry: Entry, path: Path) -> EntryDict:
    """All that a line says, read again where it was cut. Raises `SessionDamaged` if it is not there any more."""
    if not entry.cut:
        return entry.data
    data = parse_line(disk.read(path, entry.offset, entry.size))
    if data is None or data["id"] != entry.id:
        raise SessionDamaged(f"line {entry.seq} of {path} was changed while it was read; run verify to see all of it")
    return data


def entry_in(line: RawLine) -> Entry | None:
    """The entry in a line, whole; None where there is none that can be read."""
    data = parse_line(line.raw) if line.raw else None
    if line.raw is None or data is None:
        return None
    return Entry(data, line.seq, line.offset, line.size, REFERENCE in line.raw)


def _tail(line: RawLine) -> Tail:
    line_hash = line.long_hash if line.raw is None else digest(line.raw)
    return Tail(line.seq, line.offset + line.size + line.ended, line_hash, line.ended)


def cut_short(entry: Entry) -> Entry:
    """A long line as far as it says who it is, what it follows, and what kind of thing was said."""
    if entry.size <= _SHORT:
        return entry
    data = entry.data
    small = _scalars(data)
    if isinstance(message := data.get("message"), dict):
        small["message"] = _scalars(message)
        if isinstance(content := message.get("content"), list):
            small["message"]["content"] = [_block(block) for block in content]
    for name in ("system", "tools"):
        if isinstance(items := data.get(name), list):
            small[name] = [_scalars(item) for item in items if isinstance(item, dict)]
    return Entry(small, entry.seq, entry.offset, entry.size, entry.refers, cut=True)


def _block(block: Any) -> Any:
    if not isinstance(block, dict):
        return None
    small = _scalars(block)
    if isinstance(content := block.get("content"), list):
        small["content"] = [_scalars(item) for item in content if isinstance(item, dict)]
    return small


def _scalars(value: Mapping[str, Any]) -> dict[str, Any]:
    """The short values of an object, the beginning of its texts, and of marks in it the same."""
    small: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, str):
            small[key] = item if key in _NAMES else item[:_TEXT]
        elif item is None or isinstance(item, bool | int | float):
            small[key] = item
        elif key in _MARKS and isinstance(item, dict):
            small[key] = {name: part for name, part in item.items() if isinstance(part, str | int)}
    return small
