"""Looking into a database that another program may be writing: read-only, and as it is at one moment.

Nothing is written into it or beside it. Beside a log SQLite wants its shared-memory file: where the
running program has made one, it is used. A database without a log is read as a fixed file, and again if
it changed meanwhile. Where a crash left a log alone, where a change is not finished, or where the file does
not keep still, it is read from a copy in memory, so that no file appears and no lock is held.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from enum import Enum
from pathlib import Path
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote

from harness.errors import TranscriptRefused
from harness.filesystem import disk
from harness.transcripts.memo import Memo
from harness.transcripts.standing import MAX_MERGED, DatabaseMarks, beside, busy, copied, database_marks

__all__ = ["MAGIC", "Row", "columns", "first_column", "pairs", "query", "read_database"]

T = TypeVar("T")

MAGIC = b"SQLite format 3\0"
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
# How often a database that changes is read in its place; then a copy is, as that takes less time than most queries.
_TRIES = 3
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_PRIMARY = 0xFF
_copies = Memo(1)


class _Way(Enum):
    """How a database is read: SQLite watches over one with a log, and a copy keeps still; the third is watched here."""

    FIXED = "mode=ro&immutable=1"
    WITH_ITS_LOG = "mode=ro"
    COPIED = ""


Row: TypeAlias = dict[str, Any]
"""A row by the names of its columns."""


def read_database(path: Path, read: Callable[[sqlite3.Connection], T]) -> T:
    """What `read` finds in a database at one moment; it may be called several times.

    Raises `TranscriptRefused` where it cannot be read.
    """
    for _ in range(_TRIES):
        marks = database_marks(path)
        way = _way_of(path, marks)
        found, failure = _tried(path, marks, way, read)
        if way is not _Way.FIXED or database_marks(path) == marks:
            break
    else:
        found, failure = _tried(path, database_marks(path), _Way.COPIED, read)
    if failure is not None:
        raise _refusal(path, failure) from None
    return found[0]


def _way_of(path: Path, marks: DatabaseMarks) -> _Way:
    has_log = marks.log is not None and marks.log[0] > 0
    if marks.change or (has_log and disk.mark(beside(path, "-shm")) is None):
        return _Way.COPIED
    return _Way.WITH_ITS_LOG if has_log else _Way.FIXED


def _tried(
    path: Path, marks: DatabaseMarks, way: _Way, read: Callable[[sqlite3.Connection], T]
) -> tuple[list[T], sqlite3.Error | UnicodeDecodeError | None]:
    """What was found, or what went wrong."""
    try:
        with _opened(path, marks, way) as connection:
            return [read(connection)], None
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return [], error


def _refusal(path: Path, error: sqlite3.Error | UnicodeDecodeError) -> TranscriptRefused:
    code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY
    if code in _BUSY:
        return busy(path)
    help_ = "copy it, or repair it"
    if database_marks(path).change:
        help_ = "it was left in the middle of a change, with a journal beside it: open it with its program once"
    text = f"{path} cannot be read as a database: {error}; {help_}"
    return TranscriptRefused("unknown_format" if code == sqlite3.SQLITE_NOTADB else "unreadable", text)


def first_column(connection: sqlite3.Connection, sql: str, *values: object) -> list[Any]:
    """The one value of each row of a query: a tenth of the memory that `query` takes."""
    return [value for (value,) in _rows(connection, connection.execute(sql, values))]


def pairs(connection: sqlite3.Connection, sql: str, *values: object) -> tuple[list[Any], list[Any]]:
    """The two values of each row of a query, in two lists: as little memory."""
    firsts, seconds = [], []
    for first, second in _rows(connection, connection.execute(sql, values)):
        firsts.append(first)
        seconds.append(second)
    return firsts, seconds


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
def _opened(path: Path, marks: DatabaseMarks, way: _Way) -> Iterator[sqlite3.Connection]:
    for suffix in ("-wal", "-shm", "-journal"):
        if not disk.is_file_or_nothing(beside(path, suffix)):
            raise TranscriptRefused(
                "unreadable", f"{path} is not read: {beside(path, suffix)} is no file; move it away"
            )
    image = _copies.get(str(path), marks, lambda: copied(path)) if way is _Way.COPIED else b""
    # SQLite opens a file by its name: whether that leads out of where we may read is asked around it.
    disk.read(path, 0, 0)
    name = ":memory:" if way is _Way.COPIED else f"file:{quote(bytes(path.absolute()))}?{way.value}"
    with closing(sqlite3.connect(name, uri=True, timeout=_BUSY_SECONDS, factory=_Bounded)) as connection:
        disk.read(path, 0, 0)
        if way is _Way.COPIED:
            connection.deserialize(image)
        connection.bound(len(image) or sum(mark[0] for mark in (marks.file, marks.log) if mark is not None))
        connection.execute("PRAGMA query_only=1")
        if way is _Way.WITH_ITS_LOG:
            connection.execute("BEGIN")  # else each query would see a moment of its own
        yield connection
