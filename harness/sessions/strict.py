"""Reading a whole ledger and believing nothing: for what must not build on damage."""

from __future__ import annotations

from functools import partial

from harness.errors import FileMissing, SessionDamaged, SessionNotFound
from harness.filesystem import disk
from harness.sessions.blobs import read_blob, try_expand
from harness.sessions.entries import Entry, EntryDict, Position, digest, parse_line
from harness.sessions.layout import Owner, SessionFiles

__all__ = ["read_strictly", "whole_data"]


def read_strictly(files: SessionFiles, owner: Owner) -> list[Entry]:
    """Every line of a ledger, the header first, as they stand; in a worker.

    An unfinished line that a crash left and the next line is linked to is stepped over, and so is
    one at the end. Raises `SessionDamaged` for anything else that is not as it was written, and
    `SessionNotFound`.
    """
    try:
        data = disk.read(files.ledger)
    except FileMissing:
        data = b""
    if not data:
        raise SessionNotFound(f"there is no session {owner.session!r} of this user; list() shows those there are")
    entries = _entries(data, files)
    if not entries or entries[0].kind != "header" or entries[0].seq != 1:
        raise SessionDamaged(f"{files.ledger} does not begin with a header; run verify and restore it from a backup")
    owner.check(entries[0].data, files.ledger)
    return entries


def whole_data(entry: Entry, files: SessionFiles) -> EntryDict:
    """What a line says with its files put back in. Raises `SessionDamaged` if one is missing or was changed."""
    data = dict(entry.data)
    if entry.refers and not try_expand(data, partial(read_blob, files.blobs)):
        raise _damaged(files, entry.seq, "names a file that is missing or was changed")
    return data


def _entries(data: bytes, files: SessionFiles) -> list[Entry]:
    lines = data.split(b"\n")
    ended = lines[-1] == b""
    if ended:
        lines.pop()
    entries: list[Entry] = []
    offset, before = 0, None
    for seq, raw in enumerate(lines, 1):
        entry = parse_line(raw)
        if entry is None:
            if seq == len(lines) and ended and raw.strip():
                raise _damaged(files, seq, "cannot be read")
        elif entry.get("seq") != seq or entry.get("prevHash") != before:
            raise _damaged(files, seq, "is not linked to the line before it")
        else:
            entries.append(Entry(entry, *Position(seq, offset), len(raw), b'"stored":{"sha256":"' in raw))
        offset, before = offset + len(raw) + 1, digest(raw)
    return entries


def _damaged(files: SessionFiles, line: int, what: str) -> SessionDamaged:
    return SessionDamaged(f"line {line} of {files.ledger} {what}; nothing was changed: run verify to see all of it")
