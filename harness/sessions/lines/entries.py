"""Lines of a ledger: the envelope, and what a parsed line is called.

A line is one JSON object. Its first keys are always, in this order,
`type id parentId? seq prevHash? timestamp turnId? requestId?`; the fields of the type follow flat.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from harness.ids import timestamp
from harness.sessions.lines.shapes import is_entry
from harness.text import loads

__all__ = [
    "MAX_LINE",
    "REFERENCE",
    "Damage",
    "Entry",
    "EntryDict",
    "Position",
    "Tail",
    "digest",
    "make_line",
    "object_in",
    "own_copy",
    "parse_line",
]

EntryDict: TypeAlias = dict[str, Any]
"""A parsed line: envelope and fields in one object."""

MAX_LINE = 1024 * 1024
"""Bytes a line may have; what is larger goes to a file that the line names."""
# Within a string the quotes would be escaped, so text can hold no such bytes.
REFERENCE = b'"stored":'
"""The bytes in a line a part of which may stand in a file."""


_FEW = 16
"""Objects and lists up to which copying them is less work than parsing."""
_UNCHANGING = frozenset({str, int, bool})
_HELD = _UNCHANGING | {dict}


class Position(NamedTuple):
    """Where a line begins: its number from 1, and the bytes before it."""

    seq: int
    offset: int


START = Position(1, 0)


@dataclass(slots=True)  # one is made with every line, and a frozen one takes three times as long to make
class Tail:
    """The end of a ledger: lines, bytes, the hash of the last line, and whether that line is ended. Never changed."""

    count: int = 0
    size: int = 0
    hash: str | None = None
    ended: bool = True


class Damage(NamedTuple):
    """Something a reader had to step over: what, in which line (from 1), at which byte.

    Kinds: `torn` an unfinished last line; `bad` an unreadable line, or one that says what no line can say; `header`
    the first line is no header; `anchor` the anchor is missing or wrong; `mac` it is not signed with the writer's
    key; `foreign` from here on the lines are those of another ledger; `unsigned` this line and those behind it came
    after the signed end; `truncated` the file is shorter than its anchor says; `parent` a line names one before it
    that is not there; `file` a file that a line names is missing, changed or cannot be read.
    """

    kind: str
    line: int
    byte: int


class Entry:
    """A line in memory: its object, and where its bytes are (`size` without the line end).

    `id` and `kind` are those of the line; `refers` says that a part of it may stand in a file, `cut` that long texts
    were left out of `data`; `opens` remembers whether it opens a turn.
    """

    __slots__ = ("cut", "data", "id", "kind", "offset", "opens", "refers", "seq", "size")

    def __init__(
        self, data: EntryDict, seq: int, offset: int, size: int, refers: bool = False, cut: bool = False
    ) -> None:
        self.data = data
        self.id: str = data["id"]
        self.kind: str = data["type"]
        self.seq = seq
        self.offset = offset
        self.size = size
        self.refers = refers
        self.cut = cut
        self.opens: bool | None = None

    @property
    def position(self) -> Position:
        """Where the line begins."""
        return Position(self.seq, self.offset)


def digest(raw: bytes) -> str:
    """SHA-256 as 64 lower-case hex digits."""
    return hashlib.sha256(raw).hexdigest()


def make_line(
    kind: str,
    entry_id: str,
    fields: Mapping[str, Any],
    *,
    parent: str | None,
    seq: int,
    prev_hash: str | None,
    turn: str | None,
    request: str | None,
) -> EntryDict:
    """The object of a line, with the fields as they are given; keys without a value are left out."""
    line: EntryDict = {"type": kind, "id": entry_id}
    if parent is not None:
        line["parentId"] = parent
    line["seq"] = seq
    if prev_hash is not None:
        line["prevHash"] = prev_hash
    line["timestamp"] = timestamp()
    if turn is not None:
        line["turnId"] = turn
    if request is not None:
        line["requestId"] = request
    line.update(fields)
    if None in line.values():
        line = {key: value for key, value in line.items() if value is not None}
    return line


def own_copy(value: EntryDict, raw: bytes) -> EntryDict:
    """What `loads` makes of the JSON of an object, so that nobody else holds a part of it."""
    copy = _copied(value) if raw.count(b"{") + raw.count(b"[") <= _FEW else None
    return loads(raw) if copy is None else copy


def _copied(value: EntryDict) -> EntryDict | None:
    """A copy; None where some value is none that JSON gives back as it is."""
    copy: EntryDict = {}
    for key, member in value.items():
        kind = type(member)
        if kind in _UNCHANGING:
            copy[key] = member
        elif kind is dict:
            copy[key] = inner = _copied(member)
            if inner is None:
                return None
        elif kind is list:
            copy[key] = members = []
            for each in member:
                own = _copied(each) if type(each) is dict else each
                if type(own) not in _HELD:
                    return None
                members.append(own)
        else:
            return None
    return copy


def parse_line(raw: bytes) -> EntryDict | None:
    """The entry in a line, or None where there is none: see `shapes.is_entry`."""
    data = object_in(raw)
    return data if is_entry(data) else None


def object_in(raw: bytes) -> EntryDict | None:
    """The object in a line, or None; it may say what no entry says."""
    try:
        data = loads(raw)
    except ValueError:
        return None
    return data if type(data) is dict else None
