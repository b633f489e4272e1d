"""The first line of a ledger: whose it is, and whether that can be believed."""

from __future__ import annotations

import uuid
from pathlib import Path

from harness.errors import FileMissing, SessionDamaged
from harness.filesystem import disk
from harness.sessions.lines.anchor import Anchor, read_anchor
from harness.sessions.lines.entries import EntryDict, digest, parse_line
from harness.sessions.lines.formats import check_format
from harness.sessions.lines.layout import Owner, SessionFiles

__all__ = ["ORIGINS", "checked_header", "nameless_id", "read_first_line", "require_owner"]

ORIGINS = ("importedFrom", "forkedFrom", "parent")
"""The fields of a header that say that a session did not begin with a prompt of its own."""
_FIRST = 4096


def read_first_line(path: Path, start: int = 0) -> bytes:
    """The bytes of the first line, or of the one that begins at `start`, without its end."""
    length = _FIRST
    while True:
        data = disk.read(path, start, length)
        line, ended, _ = data.partition(b"\n")
        if ended or len(data) < length:
            return line
        length *= 4


def nameless_id(first: bytes) -> str:
    """The id of a ledger whose first line has none, by the bytes of that line."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, digest(first)))


def checked_header(path: Path, first: bytes, owner: Owner, anchor: Anchor | None) -> EntryDict | None:
    """The header in the first line of a ledger; None where the line is damaged.

    A line that names another owner, a format that there never was, or another ledger than the anchor does, is damaged
    if the line behind it was written behind other bytes. Else the file is another's: `SessionDamaged`. Raises
    `NewerFormat` too, also where the number of the format may be the damage: what may be newer is not written to.
    """
    header = parse_line(first)
    if header is None or header["type"] != "header":
        _refuse_anothers(path, first, owner)
        return None
    try:
        check_format(header, path)
        if anchor and anchor.count and anchor.ledger_id != header.get("ledgerId") and _was_edited(path, first):
            return None
        owner.check(header, path)
    except SessionDamaged:
        if _was_edited(path, first):
            return None
        raise
    return header


def require_owner(files: SessionFiles, owner: Owner) -> bool:
    """Raise `SessionDamaged` or `NewerFormat` where the ledger is another's, before anything of it is shown or removed.

    Whether there is one that has a line. Blocking.
    """
    found = disk.mark(files.ledger)
    try:
        first = read_first_line(files.ledger) if found and found.size else None
    except FileMissing:  # deleted meanwhile
        first = None
    if first is not None:
        checked_header(files.ledger, first, owner, read_anchor(files.anchor))
    return first is not None


def _refuse_anothers(path: Path, first: bytes, owner: Owner) -> None:
    """Behind lines that nobody can read, a header still says whose the file is."""
    mark = disk.mark(path)
    line, start, end = first, 0, mark.size if mark else 0
    while parse_line(line) is None and start + len(line) < end:
        start += len(line) + 1
        line = read_first_line(path, start)
    if (found := parse_line(line)) and found["type"] == "header":
        owner.check(found, path)


def _was_edited(path: Path, first: bytes) -> bool:
    """Whether the second line shows that the first one had other bytes when it was followed."""
    second = parse_line(read_first_line(path, len(first) + 1))
    link = second.get("prevHash") if second and second.get("seq") == 2 else None
    return isinstance(link, str) and link != digest(first)
