"""Rows by their place in their table, and sessions by the name they are listed under.

What a row calls itself may be nothing, a number, bytes, or text that is no UTF-8; so it is never looked for by that.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from harness.errors import TranscriptRefused
from harness.transcripts.database import Row, columns, first_column, pairs, query
from harness.transcripts.refusing import path_text

__all__ = [
    "Place",
    "Session",
    "among",
    "known_columns",
    "loss",
    "name_of",
    "natural",
    "no_such_session",
    "place_column",
    "plain",
    "session",
    "sessions",
]

Place: TypeAlias = int | str
"""The `rowid` of a row; of a table that has none, its id."""
_REPLACED = "\ufffd"


class Session(NamedTuple):
    """The row of a session, where it is, and whether it is the first of its table."""

    place: Place
    row: Row
    is_first: bool


def known_columns(connection: sqlite3.Connection, table: str, wanted: Sequence[str]) -> str:
    """The columns of a table that are wanted and there, for a query. Raises `sqlite3.OperationalError` for no table."""
    there = columns(connection, table)
    found = [name for name in wanted if name in there]
    if not found:
        raise sqlite3.OperationalError(f"its table {table} is gone")
    return ", ".join(found)


def place_column(connection: sqlite3.Connection, table: str) -> str:
    """The column that says where a row of a table is."""
    try:
        connection.execute(f"SELECT rowid FROM {table} LIMIT 0")  # noqa: S608 - our own names
    except sqlite3.OperationalError:
        return "id"  # a table without rowids has ids that are none but once
    return "rowid"


def among(places: Sequence[Place]) -> str:
    """A list of as many question marks."""
    return ", ".join("?" * len(places))


def plain(row: Row) -> Row:
    """A row with the text that was stored as bytes."""
    if bytes not in set(map(type, row.values())):
        return row
    return {key: _text(value) if type(value) is bytes else value for key, value in row.items()}


def loss(value: object) -> str:
    """What was lost of a value that was stored as bytes, for a sentence; nothing where nothing was."""
    if type(value) is not bytes:
        return ""
    try:
        value.decode()
    except UnicodeDecodeError:
        return "is no UTF-8, and what is none was replaced"
    return ""


def natural(value: object) -> str:
    """An id of whatever type as text; nothing for no id."""
    if value is None:
        return ""
    return _text(value) if isinstance(value, bytes) else str(value)


def name_of(place: Place, value: object) -> str:
    """What a session is called whose row has this id."""
    return natural(value) or _numbered("", place)


def sessions(connection: sqlite3.Connection, table: str, wanted: Sequence[str], order: str) -> list[tuple[str, Row]]:
    """The sessions of a table by the names they are listed under, in the order of a column."""
    names, at = known_columns(connection, table, wanted), place_column(connection, table)
    rows = query(connection, f"SELECT {at} AS place, {names} FROM {table} ORDER BY {order}, id")  # noqa: S608 - our own names
    called = _names_of((row["place"], row["id"]) for row in rows)
    return [(called[row["place"]], plain(row)) for row in rows]


def session(connection: sqlite3.Connection, table: str, wanted: Sequence[str], name: str, order: str) -> Session | None:
    """The session that is listed under a name; None where there is none."""
    names, at = known_columns(connection, table, wanted), place_column(connection, table)
    place = _place_of(connection, table, at, name)
    if place is None:
        return None
    row = query(connection, f"SELECT {names} FROM {table} WHERE {at} = ?", place)[0]  # noqa: S608 - our own names
    first = first_column(connection, f"SELECT {at} FROM {table} ORDER BY {order}, id LIMIT 1")  # noqa: S608 - our own names
    return Session(place, plain(row), first == [place])


def no_such_session(path: Path, name: str) -> TranscriptRefused:
    """The refusal of a session that is not in a database."""
    text = f"{path_text(path)} holds no session {name!r}; name one of those it holds"
    return TranscriptRefused("no_such_session", text)


def _names_of(ids: Iterable[tuple[Place, object]]) -> dict[Place, str]:
    """What each session of a table is called. Of several with one name the first has it, text before all else."""
    names: dict[Place, str] = {}
    taken: set[str] = set()
    for place, value in sorted(ids, key=lambda one: (not _is_exact(one[1]), one[0])):
        name = name_of(place, value)
        while name in taken:
            name = _numbered(name, place)
        names[place] = name
        taken.add(name)
    return names


def _place_of(connection: sqlite3.Connection, table: str, at: str, name: str) -> Place | None:
    """Where the session of a name is; by the table's index wherever that can be."""
    if _is_exact(name):
        sql = f"SELECT {at} AS place, id FROM {table} WHERE id = ? ORDER BY {at} LIMIT 1"  # noqa: S608 - our own names
        for row in query(connection, sql, name):
            if _is_exact(row["id"]) and row["id"] == name:
                place: Place = row["place"]
                return place
    ids = pairs(connection, f"SELECT {at}, id FROM {table}")  # noqa: S608 - our own names
    return next((place for place, known in _names_of(zip(*ids, strict=True)).items() if known == name), None)


def _numbered(name: str, place: Place) -> str:
    return f"{name}~row-{place}"


def _is_exact(value: object) -> bool:
    """Whether a value is text that a query finds by itself."""
    return isinstance(value, str) and value != "" and _REPLACED not in value


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
