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
from harness.transcripts.wal import merged

__all__ = ["MAGIC", "Row", "columns", "database_marks", "query", "read_database"]

T = TypeVar("T")

MAGIC = b"SQLite format 3\0"
_BUSY_SECONDS = 2.0
_TRIES = 3

Row: TypeAlias = dict[str, Any]
"""A row by the names of its columns."""


def database_marks(path: Path) -> tuple[object, ...]:
    """What tells whether a database changed: size and time of the file and of its log."""
    return disk.mark(path), disk.mark(_beside(path, "-wal"))


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
        raise TranscriptRefused(
            "unreadable", f"{path} cannot be read as a database: {error}; copy it, or repair it"
        ) from None
    return found


def query(connection: sqlite3.Connection, sql: str, *values: object) -> list[Row]:
    """The rows of a query. Bytes that are no UTF-8 become replacement characters."""
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    cursor = connection.execute(sql, values)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def columns(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    """The columns of a table; none where there is no such table."""
    return frozenset(str(row["name"]) for row in query(connection, "SELECT name FROM pragma_table_info(?)", table))


@contextmanager
def _opened(path: Path) -> Iterator[tuple[sqlite3.Connection, bool]]:
    """A connection, and whether it takes the database for fixed."""
    log = disk.mark(_beside(path, "-wal"))
    has_log = log is not None and log.size > 0
    if has_log and disk.mark(_beside(path, "-shm")) is None:
        connection = sqlite3.connect(":memory:")
        connection.deserialize(merged(disk.read(path), disk.read(_beside(path, "-wal"))))
    else:
        mode = "mode=ro" if has_log else "mode=ro&immutable=1"
        connection = sqlite3.connect(f"file:{quote(str(path.absolute()))}?{mode}", uri=True, timeout=_BUSY_SECONDS)
    try:
        connection.execute("PRAGMA query_only=1")
        yield connection, not has_log
    finally:
        connection.close()


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
