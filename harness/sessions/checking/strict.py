"""Reading a whole ledger and believing nothing: for what must not build on damage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from harness.errors import FileMissing, SessionDamaged, SessionNotFound
from harness.filesystem import disk
from harness.sessions.checking.misplaced import misplaced
from harness.sessions.lines.blobs import read_blob, try_expand
from harness.sessions.lines.entries import Entry, EntryDict, digest, object_in, parse_line
from harness.sessions.lines.formats import check_format
from harness.sessions.lines.headers import read_first_line
from harness.sessions.lines.layout import Owner, SessionFiles
from harness.sessions.lines.shapes import wrong_part
from harness.sessions.lines.skimming import RawLine, cut_short, entry_in, read_lines, uncut

__all__ = ["gone_is_not_found", "not_found", "read_strictly", "require_same", "whole_data"]


def read_strictly(files: SessionFiles, owner: Owner) -> list[Entry]:
    """Every line of a ledger, the header first, as they stand, long texts cut (see `whole_data`); in a worker.

    An unfinished line that a crash left and the next line is linked to is stepped over, and so is
    one at the end. Raises `SessionDamaged` for anything else that is not as it was written, `NewerFormat`,
    and `SessionNotFound`.
    """
    found = disk.mark(files.ledger)
    if found is None or not found.size:
        raise not_found(owner.session)
    with gone_is_not_found(files, owner.session):
        entries = _entries(files)
    if not entries or entries[0].kind != "header" or entries[0].seq != 1:
        raise SessionDamaged(f"{files.ledger} does not begin with a header; run verify and restore it from a backup")
    check_format(entries[0].data, files.ledger)
    owner.check(entries[0].data, files.ledger)
    return entries


def whole_data(entry: Entry, files: SessionFiles) -> EntryDict:
    """All that a line says, its files put back in. Raises `SessionDamaged` if one is missing or was changed."""
    data = dict(uncut(entry, files.ledger))
    if entry.refers and not try_expand(data, partial(read_blob, files.blobs)):
        raise _damaged(files, entry.seq, "names a file that is missing or was changed")
    return data


@contextmanager
def gone_is_not_found(files: SessionFiles, session_id: str) -> Iterator[None]:
    """Within it, in a worker, `FileMissing` of a session that was deleted meanwhile is `SessionNotFound`."""
    try:
        yield
    except FileMissing:
        if disk.has_file(files.ledger):
            raise
        raise not_found(session_id) from None


def require_same(files: SessionFiles, header: Entry, session_id: str) -> None:
    """Raise `SessionNotFound` where the ledger that begins with this header was deleted meanwhile; in a worker."""
    with gone_is_not_found(files, session_id):
        first = parse_line(read_first_line(files.ledger))
    if first is None or first["id"] != header.id:
        raise not_found(session_id)


def not_found(session_id: str) -> SessionNotFound:
    """The error for a session that is not there."""
    return SessionNotFound(f"there is no session {session_id!r} of this user; list the sessions to see which there are")


def _entries(files: SessionFiles) -> list[Entry]:
    entries: list[Entry] = []
    before: str | None = None
    unread: RawLine | None = None
    for line in read_lines(files.ledger):
        entry = entry_in(line)
        unread = line if entry is None else None
        if unread and (wrong := _what_is_wrong(unread)):
            raise _damaged(files, line.seq, f"holds what it cannot hold ({wrong})")
        if entry and (entry.data.get("seq") != line.seq or entry.data.get("prevHash") != before):
            raise _damaged(files, line.seq, "is not linked to the line before it")
        if entry and (wrong := misplaced(entry.kind, line.seq)):
            raise _damaged(files, line.seq, wrong)
        if entry:
            entries.append(cut_short(entry))
        before = line.long_hash or digest(line.raw or b"")
    if unread and unread.ended and not unread.blank:
        raise _damaged(files, unread.seq, "cannot be read")
    return entries


def _what_is_wrong(line: RawLine) -> str:
    """What keeps a line from being an entry that is whole all the same, so that no crash cut it short."""
    data = object_in(line.raw or b"")
    return wrong_part(data) if data else ""


def _damaged(files: SessionFiles, line: int, what: str) -> SessionDamaged:
    return SessionDamaged(f"line {line} of {files.ledger} {what}; nothing was changed: run verify to see all of it")
