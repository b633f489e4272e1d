"""Looking into a database that another program may be writing: read-only, with its write-ahead log.

Nothing is written into it or beside it. Beside a log SQLite wants its shared-memory file: where the
running program has made one, it is used. Where a crash left the log alone, database and log are put
together in memory, so that no such file appears. A database without a log is read as a fixed file,
and once more if it changed meanwhile.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote

from harness.errors import TranscriptRefused
from harness.filesystem import disk
from harness.transcripts.memo import Memo
from harness.transcripts.wal import merged

__all__ = ["MAGIC", "MAX_MERGED", "Row", "columns", "database_marks", "first_column", "query", "read_database"]

T = TypeVar("T")

MAGIC = b"SQLite format 3\0"
MAX_MERGED = 256 * 1024 * 1024
"""Bytes of the largest database that is put together with the log that a crash left beside it."""
# What a file can hold: text takes at most half as much again as in UTF-16. A damaged or forged one claims more.
_TIMES = 2
_SPARE = 1024 * 1024
_LONGEST = 2**31 - 1
"""SQLite counts the bytes of a value in a C int."""
# Steps of SQLite: a row takes about ten, and some bytes of the file.
_STEPS = 10_000
_FEW_STEPS = 10_000_000
_STEPS_A_BYTE = 4
_BUSY_SECONDS = 2.0
_TRIES = 3
_merged = Memo(1)

Row: TypeAlias = dict[str, Any]
"""A row by the names of its columns."""


def database_marks(path: Path) -> tuple[object, ...]:
    """What tells whether a database changed: size and time of the file and of its log.

    Not when anything about the file changed: SQLite gives a log its database's owner whenever root opens it.
    """
    found = (disk.mark(path), disk.mark(_beside(path, "-wal")))
    return tuple((mark.size, mark.inode, mark.mtime_ns) if mark is not None else None for mark in found)


def read_database(path: Path, read: Callable[[sqlite3.Connection], T]) -> T:
    """What `read` finds in a database. Raises `TranscriptRefused` where it cannot be read."""
    try:
        for _ in range(_TRIES):
            before = database_marks(path)
            with _opened(path) as (connection, is_fixed):
                found = read(connection)
            if not is_fixed or database_marks(path) == before:
                break
    except (sqlite3.Error, UnicodeDecodeError) as error:
        help_ = "copy it, or repair it"
        if disk.mark(_beside(path, "-journal")) is not None:
            help_ = "it was left in the middle of a change, with a journal beside it: open it with its program once"
        raise TranscriptRefused("unreadable", f"{path} cannot be read as a database: {error}; {help_}") from None
    return found


def first_column(connection: sqlite3.Connection, sql: str, *values: object) -> list[Any]:
    """The one value of each row of a query: a tenth of the memory that `query` takes."""
    return [value for (value,) in _rows(connection, connection.execute(sql, values))]


def query(connection: sqlite3.Connection, sql: str, *values: object) -> list[Row]:
    """The rows of a query. Bytes that are no UTF-8 become replacement characters."""
    cursor = connection.execute(sql, values)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in _rows(connection, cursor)]


def columns(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    """The columns of a table; none where there is no such table. A view is none: what it computes may have no end."""
    sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND lower(name) = lower(?)"
    if not first_column(connection, sql, table):
        return frozenset()
    return frozenset(str(row["name"]) for row in query(connection, "SELECT name FROM pragma_table_info(?)", table))


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


class _Bounded(sqlite3.Connection):
    """A connection to a file that anybody may have made: it gives no more than the file can hold."""

    room = 0

    def bound(self, size: int) -> None:
        """Let it give so many bytes of a file of `size` bytes, and work so long."""
        self.room = size * _TIMES + _SPARE
        self.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(self.room, _LONGEST))
        steps = iter(range((size * _STEPS_A_BYTE + _FEW_STEPS) // _STEPS))
        self.set_progress_handler(lambda: next(steps, None) is None, _STEPS)
        self.text_factory = _text


def _rows(connection: sqlite3.Connection, cursor: sqlite3.Cursor) -> Iterator[tuple[Any, ...]]:
    """The rows of a query, as long as the file can hold what they say."""
    room = connection.room if isinstance(connection, _Bounded) else MAX_MERGED
    for row in cursor:
        for value in row:
            if type(value) is str or type(value) is bytes:
                room -= len(value)
        if room < 0:
            raise sqlite3.DataError("its rows say more than the file has bytes")
        yield row


@contextmanager
def _opened(path: Path) -> Iterator[tuple[sqlite3.Connection, bool]]:
    """A connection, and whether it takes the database for fixed."""
    for beside in (_beside(path, "-wal"), _beside(path, "-shm")):
        if not disk.is_file_or_nothing(beside):
            raise TranscriptRefused("unreadable", f"{path} is not read: {beside} is no file; move it away")
    log = disk.mark(_beside(path, "-wal"))
    has_log = log is not None and log.size > 0
    if has_log and disk.mark(_beside(path, "-shm")) is None:
        connection = sqlite3.connect(":memory:", factory=_Bounded)
        connection.deserialize(_merged.get(str(path), database_marks(path), lambda: _put_together(path)))
    else:
        mode = "mode=ro" if has_log else "mode=ro&immutable=1"
        name = f"file:{quote(bytes(path.absolute()))}?{mode}"
        disk.read(
            path, 0, 0
        )  # SQLite opens it by its name: whether that leads out of where we may read is asked around it
        connection = sqlite3.connect(name, uri=True, timeout=_BUSY_SECONDS, factory=_Bounded)
    try:
        disk.read(path, 0, 0)
        connection.bound(sum(found.size for found in (disk.mark(path), log) if found is not None))
        connection.execute("PRAGMA query_only=1")
        yield connection, not has_log
    finally:
        connection.close()


def _put_together(path: Path) -> bytes:
    size = sum(found.size for found in (disk.mark(path), disk.mark(_beside(path, "-wal"))) if found is not None)
    if size > MAX_MERGED:
        text = f"a crash left a log beside it, and the two have {size:,} bytes, more than the {MAX_MERGED:,}"
        raise TranscriptRefused(
            "unreadable", f"{path}: {text} that are put together in memory; open it with its program"
        )
    return merged(disk.read(path), disk.read(_beside(path, "-wal")), MAX_MERGED)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
