"""Reading a ledger: tolerant, without a lock, and no more of it than the view needs.

The anchor says where to begin. Without a usable one the whole file is read, once: the next writer
writes a new one. Damage is stepped over and named, never repaired here.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from harness.filesystem import disk
from harness.filesystem.disk import FileMark
from harness.sessions import blobs
from harness.sessions.anchor import Anchor, read_anchor
from harness.sessions.entries import START, Damage, Entry, EntryDict, Position, digest, is_entry, parse_line
from harness.sessions.formats import check_format
from harness.sessions.layout import Owner, SessionFiles
from harness.sessions.turns import boundary_of, newest_boundary
from harness.text import loads

__all__ = [
    "Loaded",
    "Tail",
    "active_path",
    "damage_to_note",
    "read_first_line",
    "read_session",
    "scan",
    "texts_written",
]

_log = logging.getLogger("harness.sessions")
_FIRST = 4096
# Within a string the quotes would be escaped, so text can hold no such bytes.
_REFERENCE = b'"stored":{"sha256":"'


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a ledger: lines, bytes, the hash of the last line, and whether that line is ended."""

    count: int = 0
    size: int = 0
    hash: str | None = None
    ended: bool = True


@dataclass(slots=True)
class Loaded:
    """What reading a session gave. `path` holds the active lines from `boundary` on, root first."""

    header: EntryDict | None = None
    ledger_id: str | None = None
    tail: Tail = Tail()
    leaf: str | None = None
    path: list[Entry] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    boundary: Position = START
    damage: list[Damage] = field(default_factory=list)
    deleted: tuple[str, ...] = ()
    mark: tuple[int, int] | None = None
    anchor: Anchor | None = None


def read_session(files: SessionFiles, owner: Owner, *, anchored: bool = True) -> Loaded:
    """The session as its ledger has it; empty if there is none. Raises `SessionDamaged`, `NewerFormat`.

    anchored   False for a ledger that was just made and gets its anchor next: that it has none is no damage
    """
    anchor = read_anchor(files.anchor)
    found = disk.mark(files.ledger)
    if found is None or found.size == 0:
        return _nothing(files, anchor, found)
    first = read_first_line(files.ledger)
    deleted = anchor.deleted if anchor else ()
    header = _header(first)
    if header:
        check_format(header, files.ledger)
        owner.check(header, files.ledger)
    ledger_id = _identity(header, first, anchor)
    data = _from_boundary(files, anchor, found, ledger_id)
    loaded = _load(data, anchor.boundary, found) if anchor and data is not None else None
    if loaded is None:
        loaded = _load(disk.read(files.ledger), START, found) or Loaded()
        if anchored or anchor:
            loaded.damage.append(_reason(loaded.tail, anchor, found, ledger_id, fits=data is not None))
    loaded.header, loaded.ledger_id, loaded.deleted, loaded.anchor = header, ledger_id, deleted, anchor
    if header is None:
        loaded.damage.append(Damage("header", 1, 0))
    _put_files_back(loaded, files)
    _report(loaded, files.ledger)
    return loaded


def read_first_line(path: Path) -> bytes:
    """The bytes of the first line, without its end."""
    length = _FIRST
    while True:
        data = disk.read(path, 0, length)
        line, ended, _ = data.partition(b"\n")
        if ended or len(data) < length:
            return line
        length *= 4


def damage_to_note(loaded: Loaded) -> list[dict[str, Any]]:
    """What was found about the end of a ledger, as the next writer notes it: afterwards nothing else would tell."""
    anchor, tail = loaded.anchor, loaded.tail
    known = f"the anchor named {anchor.count} lines, {anchor.bytes} bytes" if anchor else "there was no usable anchor"
    text = f"{known}; {tail.count} lines, {tail.size} bytes were found"
    kinds = {"truncated": "truncated", "anchor": "unanchored"}
    return [
        {"kind": kinds[kind], "line": line, "byte": byte, "text": text}
        for kind, line, byte in loaded.damage
        if kind in kinds
    ]


def scan(data: bytes, start: Position) -> tuple[list[Entry], list[Damage], Tail]:
    """The entries in bytes that begin at a line's start, what was unreadable, and where they end."""
    entries: list[Entry] = []
    damage: list[Damage] = []
    seq, offset = start
    lines = data.split(b"\n")
    ended = lines[-1] == b""
    if ended:
        lines.pop()
    refers = (
        _REFERENCE in data
    )  # asked once: most ledgers have no such line, and asking each costs as much as reading it
    for raw in lines:
        try:
            parsed = loads(raw)
        except ValueError:
            parsed = None
        if is_entry(parsed):
            entries.append(Entry(parsed, seq, offset, len(raw), refers and _REFERENCE in raw))
        elif raw.strip():
            damage.append(Damage("bad", seq, offset))
        seq, offset = seq + 1, offset + len(raw) + 1
    if not ended and damage and damage[-1].line == seq - 1:
        damage[-1] = Damage("torn", *damage[-1][1:])
    tail = Tail(seq - 1, start.offset + len(data), digest(lines[-1]) if lines else None, ended)
    return entries, damage, tail


def active_path(entries: Sequence[Entry], damaged: bool) -> list[Entry] | None:
    """The lines from the first of `entries` to the last one along `parentId`, root first.

    A parent that is not there was lost if lines are `damaged`: the line before stands in for it.
    None if it is missing without that excuse, so that more must be read.
    """
    if [entry.data.get("parentId") for entry in entries[1:]] == [entry.id for entry in entries[:-1]]:
        return list(entries)  # nobody went back, and nothing is missing
    by_id = {entry.id: index for index, entry in enumerate(entries)}
    path: list[Entry] = []
    index = len(entries) - 1
    while index >= 0:
        path.append(entries[index])
        named = entries[index].data.get("parentId")
        parent = by_id.get(named) if isinstance(named, str) else None
        if parent is None and index > 0 and not damaged:
            return None
        # Only an earlier line can be a parent: a circle must not hold a reader.
        index = parent if parent is not None and parent < index else index - 1
    return path[::-1]


def texts_written(entries: Iterable[Entry], boundary: Entry | None) -> set[str]:
    """The SHA-256 of every system and tool text that stands in a binding after the boundary."""
    after = boundary.seq if boundary else 0
    return {
        str(item.get("sha256"))
        for entry in entries
        if entry.kind == "binding" and entry.seq > after
        for item in [*entry.data.get("system", ()), *entry.data.get("tools", ())]
    }


def _nothing(files: SessionFiles, anchor: Anchor | None, found: FileMark | None) -> Loaded:
    """A session without a line, which is damage if its anchor knows of some."""
    loaded = Loaded(deleted=anchor.deleted if anchor else (), mark=(found.inode, 0) if found else None, anchor=anchor)
    if anchor and anchor.count:
        loaded.damage.append(Damage("truncated", 1, 0))
        _report(loaded, files.ledger)
    return loaded


def _header(first: bytes) -> EntryDict | None:
    parsed = parse_line(first)
    return parsed if parsed and parsed["type"] == "header" else None


def _identity(header: EntryDict | None, first: bytes, anchor: Anchor | None) -> str:
    """The ledger's id; of one that lost its header the anchor knows it, else its first bytes decide."""
    if header and header.get("ledgerId"):
        return str(header["ledgerId"])
    if anchor and anchor.count:
        return anchor.ledger_id
    return str(uuid.uuid5(uuid.NAMESPACE_OID, digest(first)))


def _from_boundary(files: SessionFiles, anchor: Anchor | None, found: FileMark, ledger_id: str) -> bytes | None:
    """The bytes from the anchor's boundary on; None if the anchor and the file do not fit together."""
    if anchor is None or anchor.count == 0 or anchor.ledger_id != ledger_id or anchor.bytes > found.size:
        return None
    start = anchor.boundary
    before = min(start.offset, 1)
    data = disk.read(files.ledger, start.offset - before)
    end = anchor.bytes - start.offset + before
    if data[:before] != b"\n"[:before] or start.seq - 1 + data.count(b"\n", before, end) != anchor.count:
        return None
    last = data.rfind(b"\n", 0, end - 1) + 1
    if digest(data[last : end - 1]) != anchor.hash:
        return None
    return data[before:]


def _reason(tail: Tail, anchor: Anchor | None, found: FileMark, ledger_id: str, *, fits: bool) -> Damage:
    """Why the whole file had to be read."""
    lost = anchor is not None and anchor.ledger_id == ledger_id and anchor.bytes > found.size
    kind = "parent" if fits else "truncated" if lost else "anchor"
    return Damage(kind, tail.count, tail.size)


def _load(data: bytes, start: Position, found: FileMark) -> Loaded | None:
    entries, damage, tail = scan(data, start)
    path = active_path(entries, damaged=bool(damage) or start == START)
    if path is None:
        return None
    # Without a boundary in sight the anchor's start stands.
    newest = newest_boundary(path)
    boundary = boundary_of(path) if newest else start
    return Loaded(
        tail=tail,
        leaf=path[-1].id if path else None,
        path=[entry for entry in path if entry.seq >= boundary.seq] if newest else path,
        written=texts_written(entries, newest),
        boundary=boundary,
        damage=damage,
        mark=(found.inode, tail.size),
    )


def _put_files_back(loaded: Loaded, files: SessionFiles) -> None:
    read = partial(blobs.read_blob, files.blobs)
    for entry in loaded.path:
        if entry.refers and not blobs.try_expand(entry.data, read):
            loaded.damage.append(Damage("file", entry.seq, entry.offset))


def _report(loaded: Loaded, path: Path) -> None:
    if loaded.damage:
        listed = ", ".join(f"{kind} at line {line} (byte {byte})" for kind, line, byte in loaded.damage[:5])
        _log.warning(
            "%s has %d damaged places: %s; they were stepped over, everything else was read",
            path,
            len(loaded.damage),
            listed,
        )
