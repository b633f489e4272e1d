"""How a database stands: whether it changed, and a copy of it in memory that is of one moment.

Nothing is locked: a lock would hold up the program that owns the database. What was copied while it
changed is copied again.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, TypeAlias

from harness.errors import FileMissing, TranscriptRefused
from harness.filesystem import disk
from harness.transcripts import journal, wal

__all__ = ["MAX_MERGED", "DatabaseMarks", "beside", "busy", "copied", "database_marks", "file_marks"]

MAX_MERGED = 256 * 1024 * 1024
"""Bytes of the largest database that is put together in memory with its log, or with its journal."""
_COPIES = 4
# In the header of a database: the number of its changes, and two bytes that say whether a log is in use.
_CHANGES, _CHANGES_BYTES = 24, 4
_MODE = slice(18, 20)
_LOG_HEAD = 32

_Mark: TypeAlias = tuple[int, int, int] | None


class DatabaseMarks(NamedTuple):
    """What tells whether a database changed.

    file, log  size, inode and time of the file, and of the log beside it
    changes    how many SQLite has counted: two within one tick of the clock are two
    change     the head of the journal of a change that may have reached the file; empty where there is none
    """

    file: _Mark
    changes: bytes
    log: _Mark
    change: bytes


def database_marks(path: Path) -> DatabaseMarks:
    """How a database stands now.

    Not changed when anything about the file is: SQLite gives a log its database's owner whenever root opens it.
    """
    file = _mark(path)
    changes = _read(path, _CHANGES, _CHANGES_BYTES)
    # The journal last: where none stands then, what was seen before is no half of a change.
    return DatabaseMarks(file, changes, _mark(beside(path, "-wal")), _change(beside(path, "-journal")))


def file_marks(path: Path) -> tuple[_Mark]:
    """The same of a file that is no database."""
    return (_mark(path),)


def beside(path: Path, suffix: str) -> Path:
    """The file of SQLite's that stands beside a database under its name and a suffix."""
    return path.with_name(path.name + suffix)


def copied(path: Path) -> bytes:
    """A database with its log, or without the change that is not committed, as SQLite can open it in memory.

    Raises `TranscriptRefused` where it is too large, or changes all the time.
    """
    for _ in range(_COPIES):
        ground = _ground(path)
        _ask_size(path)
        # The database first: what is newer in it stands in what is read after it.
        database, change = disk.read(path), _read(beside(path, "-journal"))
        log = _read(beside(path, "-wal"))
        if _ground(path) == ground:
            return _put_together(path, database, change, log)
    raise busy(path)


def busy(path: Path) -> TranscriptRefused:
    """The refusal of a database that does not keep still."""
    text = f"{path} is being written all the time, and no moment of it could be read; read it again in a moment"
    return TranscriptRefused("unreadable", text)


def _ground(path: Path) -> object:
    """What must stay while a database is copied.

    Every page that a change writes stands in the journal before, and every page that is moved from the log stays in
    the log, as long as their heads are the same.
    """
    marks = database_marks(path)
    if marks.change:
        return marks.change
    return _read(beside(path, "-wal"), 0, _LOG_HEAD) if marks.log is not None and marks.log[0] else marks


def _put_together(path: Path, database: bytes, change: bytes, log: bytes) -> bytes:
    found = journal.rolled_back(database, change, MAX_MERGED) if journal.hot_head(change) else database
    if found is None:
        text = (
            f"{path} was left in the middle of a change that cannot be taken back here; open it with its program once"
        )
        raise TranscriptRefused("unreadable", text)
    if log:
        return wal.merged(found, log, MAX_MERGED)
    return found[: _MODE.start] + b"\x01\x01" + found[_MODE.stop :]


def _ask_size(path: Path) -> None:
    marks = database_marks(path)
    size = sum(mark[0] for mark in (marks.file, marks.log) if mark is not None)
    if marks.change:
        size += (_mark(beside(path, "-journal")) or (0, 0, 0))[0]
    if size <= MAX_MERGED:
        return
    if not marks.change and not (marks.log and marks.log[0]):
        raise busy(path)
    what = "a change is not finished" if marks.change else "a crash left a log beside it"
    text = f"{what}, and the two have {size:,} bytes, more than the {MAX_MERGED:,} that are put together in memory"
    raise TranscriptRefused("unreadable", f"{path}: {text}; open it with its program")


def _change(path: Path) -> bytes:
    return journal.hot_head(_read(path, 0, journal.HEAD)) if disk.mark(path) is not None else b""


def _read(path: Path, start: int = 0, length: int | None = None) -> bytes:
    """What stands in a file that its program may remove at any time."""
    try:
        return disk.read(path, start, length)
    except FileMissing:
        return b""


def _mark(path: Path) -> _Mark:
    found = disk.mark(path)
    return (found.size, found.inode, found.mtime_ns) if found is not None else None
