"""Reading a ledger: tolerant, without a lock, and no more of it than the view needs.

The anchor says where to begin. Without a usable one the whole file is read, once: the next writer
writes a new one. Damage is stepped over and named, never repaired here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import dropwhile
from pathlib import Path
from typing import Any, TypeAlias

from harness.filesystem import disk
from harness.filesystem.disk import FileMark
from harness.sessions.lines import blobs
from harness.sessions.lines.anchor import Anchor, read_anchor
from harness.sessions.lines.digest import items_of
from harness.sessions.lines.entries import REFERENCE, START, Damage, Entry, EntryDict, Position, Tail, digest
from harness.sessions.lines.headers import ORIGINS, checked_header, nameless_id, read_first_line
from harness.sessions.lines.layout import Owner, SessionFiles
from harness.sessions.lines.parsing import lines_in, values_of
from harness.sessions.lines.second_header import own_lines
from harness.sessions.lines.shapes import may_refer
from harness.sessions.lines.skimming import LONGEST, skim, uncut
from harness.sessions.lines.traces import Trace, find_traces, furthest
from harness.sessions.view.turns import SAYING, boundary_of, closes_commit, is_boundary, newest_boundary, opens_view

__all__ = [
    "Loaded",
    "Tail",
    "active_path",
    "damage_to_note",
    "left_damaged",
    "read_identity",
    "read_session",
    "scan",
    "texts_written",
    "unanswered",
]

_log = logging.getLogger("harness.sessions")
_Lines: TypeAlias = tuple[list[Entry], list[Damage], Tail]


@dataclass(slots=True)
class Loaded:
    """What reading a session gave. `path` holds the active lines from `boundary` on, root first."""

    header: EntryDict | None = None
    ledger_id: str | None = None
    tail: Tail = field(default_factory=Tail)
    leaf: str | None = None
    path: list[Entry] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    boundary: Position = START
    damage: list[Damage] = field(default_factory=list)
    deleted: tuple[str, ...] = ()
    mark: FileMark | None = None
    anchor: Anchor | None = None


def read_session(files: SessionFiles, owner: Owner, *, anchored: bool = True) -> Loaded:
    """The session as its ledger has it; empty if there is none. Raises `SessionDamaged`, `NewerFormat`.

    anchored   False for a ledger that gets its anchor next: that it has none is no damage, and where the view begins
               is told by all of its lines
    """
    there = read_anchor(files.anchor)
    anchor = there if there and there.believed_by(owner.anchor_key) else None
    if anchor and not anchored:
        anchor = replace(anchor, boundary=START)
    found = disk.mark(files.ledger)
    if found is None or found.size == 0:
        return _nothing(files, there, found)
    traces = [] if not anchored or (there and there.count) else find_traces(files)
    first = read_first_line(files.ledger)
    deleted = there.deleted if there else ()
    header = checked_header(files.ledger, first, owner, anchor)
    ledger_id = _identity(header, first, anchor)
    lines = _from_boundary(files, anchor, found, ledger_id)
    loaded = _load(lines, anchor.boundary, found) if anchor and lines is not None else None
    if loaded is None:
        loaded = _load(skim(files.ledger), START, found) or Loaded()
        if there and not anchor:
            loaded.damage.append(Damage("mac", loaded.tail.count, loaded.tail.size))
        elif header and _ends_early(loaded, furthest(traces, ledger_id)):
            loaded.damage.append(Damage("truncated", loaded.tail.count, loaded.tail.size))
        elif anchor or (anchored and _anchor_was_due(files, owner, there, unanswered(header, loaded))):
            loaded.damage.append(_reason(loaded.tail, anchor, found, ledger_id, fits=lines is not None))
    loaded.header, loaded.ledger_id, loaded.deleted, loaded.anchor = header, ledger_id, deleted, there
    if header is None:
        loaded.damage.append(Damage("header", 1, 0))
    _put_back(loaded, files)
    if anchored:  # else nobody can look where it says
        _report(loaded, files.ledger)
    if owner.anchor_key and anchor and loaded.tail.count > anchor.count and anchor.count:
        # No damage to a reader: a writer may be at work. The next writer knows that none is.
        loaded.damage.append(Damage("unsigned", anchor.count + 1, anchor.bytes))
    return loaded


def _anchor_was_due(files: SessionFiles, owner: Owner, there: Anchor | None, nothing_said: bool) -> bool:
    """Whether a ledger without an anchor lost it; a key vouches for nothing that it has not signed."""
    return left_damaged(files, there) or owner.anchor_key is not None or not nothing_said


def _ends_early(loaded: Loaded, trace: Trace | None) -> bool:
    """Whether, with no anchor that would tell, what was made from the ledger knows of lines behind its end."""
    numbers = (entry.data.get("seq") for entry in loaded.path)
    newest = max((seq for seq in numbers if type(seq) is int), default=0)
    return trace is not None and trace.lines > max(newest, loaded.tail.count)


def left_damaged(files: SessionFiles, anchor: Anchor | None) -> bool:
    """Whether a file is there that is no anchor any more; an empty one never was: its writer was stopped."""
    found = disk.mark(files.anchor) if anchor is None else None
    return found is not None and found.size > 0


def unanswered(header: EntryDict | None, loaded: Loaded) -> bool:
    """Whether nothing could be missing: nothing was said behind its first commit that has an anchor.

    The anchor is written behind the lines of that commit, so a writer may have been stopped between the two.
    """
    begun = header is not None and not any(origin in header for origin in ORIGINS)
    if not begun or loaded.boundary != START:
        return False
    behind = dropwhile(lambda entry: not closes_commit(entry.data), loaded.path)
    return not any(entry.kind in SAYING for entry in behind)


def read_identity(files: SessionFiles, owner: Owner) -> str:
    """The id of a ledger, without reading more than its beginning. Raises `FileMissing`, and as `read_session`."""
    anchor, first = read_anchor(files.anchor), read_first_line(files.ledger)
    return _identity(checked_header(files.ledger, first, owner, anchor), first, anchor)


def damage_to_note(loaded: Loaded) -> list[dict[str, Any]]:
    """What was found about the end of a ledger, as the next writer notes it: afterwards nothing else would tell."""
    anchor, tail = loaded.anchor, loaded.tail
    known = f"the anchor named {anchor.count} lines, {anchor.bytes} bytes" if anchor else "there was no usable anchor"
    text = f"{known}; {tail.count} lines, {tail.size} bytes were found{_difference(loaded)}"
    beyond = anchor.count + 1 if anchor else 1
    told = {
        "truncated": ("truncated", text),
        "anchor": ("unanchored", text),
        "mac": ("unanchored", "the anchor was not signed with the key of this writer"),
        "unsigned": (
            "unanchored",
            f"lines {beyond} to {tail.count} were behind the signed end: a writer was stopped, or had no key",
        ),
    }
    return [
        {"kind": told[kind][0], "line": line, "byte": byte, "text": told[kind][1]}
        for kind, line, byte in loaded.damage
        if kind in told
    ]


def _difference(loaded: Loaded) -> str:
    """What is wrong with an end that has the length it should have."""
    anchor, tail = loaded.anchor, loaded.tail
    if anchor is None or not anchor.count:
        return ""
    if anchor.ledger_id != loaded.ledger_id:
        return "; the anchor was that of another ledger"
    if (anchor.count, anchor.hash) == (tail.count, tail.hash) or anchor.count != tail.count:
        return ""
    return f"; line {tail.count} has the SHA-256 {tail.hash}, where the anchor named {anchor.hash}"


def scan(data: bytes, start: Position) -> _Lines:
    """The entries in bytes that begin at a line's start, what was unreadable, and where they end."""
    entries: list[Entry] = []
    damage: list[Damage] = []
    doubtful: list[bytes] = []
    (seq, offset), line = start, b"\n"
    for lines in lines_in(data):
        for line, value in zip(lines, values_of(lines), strict=True):
            refers = may_refer(value)
            if refers is not None:
                entries.append(Entry(value, seq, offset, len(line) - 1))
                if refers:
                    doubtful.append(line)
            elif line.strip():
                damage.append(Damage("bad", seq, offset))
            seq += 1
            offset += len(line)
    # Asked once: most ledgers have no such line. From the end, since the other way takes twice as long.
    if b"".join(doubtful).rfind(REFERENCE) >= 0:
        _find_references(entries, data, start.offset)
    ended = line.endswith(b"\n")
    if not ended:
        _mend_end(entries, damage, seq - 1)
    return entries, damage, Tail(seq - 1, offset, digest(line.removesuffix(b"\n")) if data else None, ended)


def _find_references(entries: Iterable[Entry], data: bytes, offset: int) -> None:
    """Say of each line whether a part of it may stand in a file; `data` begins at `offset`."""
    for entry in entries:
        start = entry.offset - offset
        entry.refers = data.find(REFERENCE, start, start + entry.size) >= 0


def _mend_end(entries: list[Entry], damage: list[Damage], seq: int) -> None:
    """Say of the last line, which lacks its end, what it is."""
    if entries and entries[-1].seq == seq:
        entries[-1].size += 1
    elif damage and damage[-1].line == seq:
        damage[-1] = damage[-1]._replace(kind="torn")


def active_path(entries: Sequence[Entry], damaged: bool) -> list[Entry] | None:
    """The lines from the first of `entries` to the last one along `parentId`, root first.

    A parent that is not there was lost if lines are `damaged`: the line before stands in for it.
    None if it is missing without that excuse, so that more must be read.
    """
    if _are_in_line(entries):
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


def _are_in_line(entries: Sequence[Entry]) -> bool:
    return [entry.data.get("parentId") for entry in entries[1:]] == [entry.id for entry in entries[:-1]]


def texts_written(entries: Iterable[Entry], boundary: Entry | None) -> set[str]:
    """The SHA-256 of every system and tool text that stands in a binding of these lines after the boundary."""
    after = boundary.seq if boundary else 0
    return {
        str(item.get("sha256"))
        for entry in entries
        if entry.kind == "binding" and entry.seq > after
        for item in [*items_of(entry.data, "system"), *items_of(entry.data, "tools")]
    }


def _nothing(files: SessionFiles, anchor: Anchor | None, found: FileMark | None) -> Loaded:
    """A session without a line, which is damage if its anchor knows of some."""
    loaded = Loaded(deleted=anchor.deleted if anchor else (), mark=found, anchor=anchor)
    if anchor and anchor.count and not disk.mark(files.removed):
        loaded.damage.append(Damage("truncated", 1, 0))
        _report(loaded, files.ledger)
    return loaded


def _identity(header: EntryDict | None, first: bytes, anchor: Anchor | None) -> str:
    """The ledger's id; of one that lost its header the anchor knows it, else its first bytes decide."""
    if header and header.get("ledgerId"):
        return str(header["ledgerId"])
    if anchor and anchor.count:
        return anchor.ledger_id
    return nameless_id(first)


def _from_boundary(files: SessionFiles, anchor: Anchor | None, found: FileMark, ledger_id: str) -> _Lines | None:
    """The lines from the anchor's boundary on; None if the anchor and the file do not fit together."""
    if anchor is None or anchor.count == 0 or anchor.ledger_id != ledger_id or anchor.bytes > found.size:
        return None
    start = anchor.boundary
    if found.size - start.offset > LONGEST:
        return _skim_from(files, anchor)
    before = min(start.offset, 1)
    data = disk.read(files.ledger, start.offset - before)
    end = anchor.bytes - start.offset + before
    last = data.rfind(b"\n", 0, end - 1) + 1
    if data[:before] != b"\n"[:before] or digest(data[last : end - 1]) != anchor.hash:
        return None
    lines = scan(data[before:], start)
    # What follows the anchor is short: counting the lines there takes less than counting all of them once more.
    beyond = data.count(b"\n", end) + (not lines[2].ended)
    return lines if lines[2].count - beyond == anchor.count and _begins_a_view(lines) else None


def _skim_from(files: SessionFiles, anchor: Anchor) -> _Lines | None:
    """The same where it is too much to be held at once."""
    start = anchor.boundary
    if start.offset and disk.read(files.ledger, start.offset - 1, 1) != b"\n":
        return None
    lines = skim(files.ledger, start)
    last = next((entry for entry in reversed(lines[0]) if entry.seq == anchor.count), None)
    if last is None or last.offset + last.size + 1 != anchor.bytes:
        return None
    right = digest(disk.read(files.ledger, last.offset, last.size)) == anchor.hash
    return lines if right and _begins_a_view(lines) else None


def _begins_a_view(lines: _Lines) -> bool:
    """Whether a view can begin with the first of these lines; where some are damaged there is no telling.

    It is that of a boundary, or the directive of the first turn that a later one keeps.
    """
    entries, damage, _ = lines
    if damage or (entries and entries[0].seq == START.seq):
        return True
    return bool(entries) and opens_view(entries[0].data) and any(map(is_boundary, reversed(entries)))


def _reason(tail: Tail, anchor: Anchor | None, found: FileMark, ledger_id: str, *, fits: bool) -> Damage:
    """Why the whole file had to be read."""
    is_shorter = anchor is not None and anchor.ledger_id == ledger_id and anchor.bytes > found.size
    # With as many whole lines as there were it was edited, not cut.
    is_cut = is_shorter and (tail.count < anchor.count or not tail.ended) if anchor else False
    kind = "parent" if fits else "truncated" if is_cut else "anchor"
    return Damage(kind, tail.count, tail.size)


def _load(lines: _Lines, start: Position, found: FileMark) -> Loaded | None:
    entries, damage, tail = lines
    if not _are_in_line(entries):  # else no second header is among them, which would follow no line
        entries, foreign = own_lines(entries)
        damage += foreign
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
        written=texts_written(path, newest),  # not what only another branch wrote: a copy of this one would lack it
        boundary=boundary,
        damage=damage,
        mark=found._replace(size=tail.size),
    )


def _put_back(loaded: Loaded, files: SessionFiles) -> None:
    read, ledger = partial(blobs.read_blob, files.blobs), files.ledger
    for entry in loaded.path:
        if entry.cut:
            entry.data, entry.cut = uncut(entry, ledger), False
        if entry.refers and not blobs.try_expand(entry.data, read):
            loaded.damage.append(Damage("file", entry.seq, entry.offset))


def _report(loaded: Loaded, path: Path) -> None:
    if loaded.damage:
        listed = ", ".join(f"{kind} at line {line} (byte {byte})" for kind, line, byte in loaded.damage[:5])
        places = "a damaged place" if len(loaded.damage) == 1 else f"{len(loaded.damage)} damaged places"
        _log.warning("%s has %s: %s; everything else was read", path, places, listed)
