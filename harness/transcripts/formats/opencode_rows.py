"""The messages of one opencode session in its database: a row a message, and rows of its parts."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness.transcripts import blocks, tables
from harness.transcripts.database import Row, columns, query, read_database
from harness.transcripts.lines import Record
from harness.transcripts.rows import Damaged

__all__ = ["UNREADABLE", "Messages", "message_keys"]

UNREADABLE = "unreadable"
"""The `type` of a message or part whose row says nothing that can be read."""
_TOLD = 3


def message_keys(connection: sqlite3.Connection) -> str:
    """The query for the messages of the session in a row, in order: where each is, and its id, byte for byte."""
    at, of = tables.place_column(connection, "message"), tables.place_column(connection, "session")
    return f"""SELECT {at}, CAST(id AS BLOB) FROM message
        WHERE session_id IS (SELECT id FROM session WHERE {of} = ?) ORDER BY id"""  # noqa: S608 - our own names


@dataclass(frozen=True, slots=True)
class Messages:
    """Where the messages of a session are, in order, and their ids; what they say is read when it is asked for."""

    path: Path
    session: tables.Place
    places: Sequence[tables.Place]
    ids: Sequence[bytes | None]

    def read(self, first: int, stop: int) -> list[Record | Damaged | None]:
        """The messages from one place to in front of another, each with its parts."""
        return read_database(self.path, partial(self._read, first=first, stop=stop))

    def _read(self, connection: sqlite3.Connection, first: int, stop: int) -> list[Record | Damaged | None]:
        places, at = self.places[first:stop], tables.place_column(connection, "message")
        sql = f"""SELECT {at} AS place, CAST(id AS BLOB) AS name, id, data FROM message
            WHERE {at} IN ({tables.among(places)})"""  # noqa: S608 - our own names, and question marks
        rows = {row["place"]: row for row in query(connection, sql, *places)}
        parts = self._parts(connection, first, places, at)
        found: list[Record | Damaged | None] = []
        for index, place in enumerate(places, start=first):
            row, name = rows.get(place), self.ids[index]
            # Another row may have been given its place since.
            is_there = row is not None and row["name"] == name
            # Ids that are there twice stand side by side; the parts are those of the first.
            is_first = index == 0 or self.ids[index - 1] != name
            found.append(_message(row, parts.get(name, []) if is_first else []) if row and is_there else None)
        return found

    def _parts(
        self, connection: sqlite3.Connection, first: int, places: Sequence[tables.Place], at: str
    ) -> dict[bytes | None, list[Row]]:
        part = tables.place_column(connection, "part")
        select = f"SELECT {part} AS place, CAST(message_id AS BLOB) AS name, id, data FROM part"  # noqa: S608 - our own names
        of = f"SELECT id FROM message WHERE {at} IN ({tables.among(places)})"  # noqa: S608 - our own names, and question marks
        rows = query(connection, f"{select} WHERE message_id IN ({of}) ORDER BY id", *places)
        if first == 0 and self.ids[0] is None and "session_id" in columns(connection, "part"):
            session = f"SELECT id FROM session WHERE {tables.place_column(connection, 'session')} = ?"  # noqa: S608 - our own names
            sql = f"{select} WHERE message_id IS NULL AND session_id IS ({session}) ORDER BY id"
            rows += query(connection, sql, self.session)
        parts: dict[bytes | None, list[Row]] = {}
        for row in rows:
            parts.setdefault(row["name"], []).append(row)
        return parts


def _message(row: Row, parts: Sequence[Row]) -> Record | Damaged:
    wrong: list[str] = []
    record = {"info": _said("message", row, wrong), "parts": [_said("part", part, wrong) for part in parts]}
    if row["id"] is None:
        wrong.append(f"message, row {row['place']}: it has no id, by which it would be put in order")
    if not wrong:
        return record
    more = f"; and {len(wrong) - _TOLD:,} more rows" if len(wrong) > _TOLD else ""
    return Damaged(record, "; ".join(wrong[:_TOLD]) + more)


def _said(table: str, row: Row, wrong: list[str]) -> Record:
    """What a row says, with its id; what is wrong with it is added to a list."""
    data, key = row["data"], row["id"]
    found = blocks.parsed(data if type(data) is str else tables.natural(data))
    record: Record = {"id": key if type(key) is str else tables.natural(key) or None}
    if not isinstance(found, dict):
        wrong.append(f"{table}, row {row['place']}: its data is no object in JSON")
        return {**record, "type": UNREADABLE}
    if type(data) is bytes and (loss := tables.loss(data)):
        wrong.append(f"{table}, row {row['place']}: its data {loss}")
    return {**record, **found}
