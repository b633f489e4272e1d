"""Hermes sessions: rows of `state.db`, a JSON file a session, or an export with one session a line.

Arguments stand in the assistant's row, as JSON text within a JSON list; results are rows of role
`tool`. Tokens are counted for the session as a whole. Columns grew over the versions.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from harness.errors import TranscriptRefused
from harness.filesystem import disk
from harness.transcripts import blocks, tables
from harness.transcripts.blocks import BlockDict
from harness.transcripts.database import MAGIC, Row, columns, pairs, query, read_database
from harness.transcripts.document import read_document
from harness.transcripts.formats.base import Format, Listed, Opened, Place, Verdict, Where
from harness.transcripts.lines import Record
from harness.transcripts.pieces import About, Reader
from harness.transcripts.rows import Damaged, RowSource
from harness.transcripts.source import FileSource, file_mark
from harness.transcripts.times import stamp
from harness.transcripts.turns import Aside

__all__ = ["FORMATS", "HermesFormat", "HermesReader"]

_SESSION = ("id", "model", "parent_session_id", "started_at", "ended_at", "cwd", "git_branch", "title")
_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
_MESSAGE = (
    *("id", "role", "content", "tool_call_id", "tool_calls", "tool_name", "timestamp", "finish_reason"),
    *("reasoning", "reasoning_content", "codex_reasoning_items", "active", "compacted"),
)
_STOPS = {"stop": "stop", "tool_calls": "tool_use", "length": "length"}


class HermesReader(Reader):
    """Reads the messages of one session."""

    def record(self, record: Record) -> None:
        """See `Reader`."""
        role = record.get("role")
        at = self.saw_time(record.get("timestamp"))
        aside: Aside | None = "abandoned" if record.get("active") == 0 else None
        if role == "user":
            said = self._content(record.get("content"))
            self.piece("prompt", said, at, aside=aside)
            self.counts.prompts_lt += blocks.begins_untagged(said)
        elif role == "assistant":
            self._assistant(at, record, aside)
        elif role == "tool":
            key = blocks.word(record.get("tool_call_id")) or self.place("result")
            content = self._content(record.get("content"))
            self.piece("results", [blocks.result_block(key, content, failed=False, exit_code=_exit(record))], at)
        elif role == "system":
            self.piece("context", self._content(record.get("content")), at)
        elif role != "session_meta":
            self.warn("unknown_record", f"role {str(role)[:80]!r} is not known")

    def _assistant(self, at: str | None, record: Record, aside: Aside | None) -> None:
        self.counts.assistant_msgs += 1
        self.counts.saw_model(self.about.model)
        model = self.about.model
        reason = blocks.word(record.get("finish_reason"))
        fields = {"model": model, "stop": _STOPS.get(reason, reason) if reason else None}
        content = [*self._reasoning(record, model), *self._content(record.get("content"))]
        content += [self._call(n, call) for n, call in enumerate(_listed_calls(record.get("tool_calls")))]
        named = {name: value for name, value in fields.items() if value}
        self.piece("answer", content, at, fields=named, aside=aside)

    def _reasoning(self, record: Record, model: str | None) -> list[BlockDict]:
        shown = blocks.word(record.get("reasoning_content")) or blocks.word(record.get("reasoning"))
        found = record.get("codex_reasoning_items")
        kept = blocks.parsed(found) if isinstance(found, str) else found
        if shown is None and not kept:
            return []
        return [blocks.thinking(shown or "", "hermes", model, self.settled(kept))]

    def _call(self, position: int, call: Record) -> BlockDict:
        found = call.get("function")
        function = found if isinstance(found, dict) else {}
        key = blocks.word(call.get("id")) or blocks.word(call.get("call_id")) or self.place(f"call-{position}")
        return blocks.call_block(key, function.get("name"), function.get("arguments"))

    def _content(self, content: object) -> list[BlockDict]:
        found = [self._said(item) for item in blocks.items(content) if isinstance(item, dict)]
        return [block for block in found if block["type"] != "text" or block["text"]]

    def _said(self, item: BlockDict) -> BlockDict:
        kind = item.get("type")
        if kind in ("text", "input_text", "output_text"):
            return blocks.text(blocks.text_of(item.get("text")))
        if kind in ("image_url", "input_image"):
            url = item.get("image_url")
            found = url.get("url") if isinstance(url, dict) else url
            return self.image(blocks.image_from_url(found, whole=self.cap is None))
        return self.unknown(item)


class HermesFormat(Format):
    """See the module."""

    name = "hermes"
    title = "Hermes"
    tables: Mapping[str, frozenset[str]] = {
        "sessions": frozenset({"id", "started_at"}),
        "messages": frozenset({"id", "session_id", "role", "content", "tool_calls"}),
    }

    def judge(self, record: Record) -> Verdict:
        """An export has one session a line."""
        return Verdict.CERTAIN if _is_session(record) else Verdict.NO

    def judge_document(self, value: object) -> bool:
        """See `Format`."""
        return isinstance(value, dict) and _is_session(value)

    def is_document(self, path: Path) -> bool:
        """See `Format`."""
        return True

    def reader(self, cap: int | None) -> HermesReader:
        """See `Format`."""
        return HermesReader(cap)

    def places(self, where: Where) -> Sequence[Place]:
        """See `Format`."""
        root = where.folder("HERMES_HOME", ".hermes")
        return [Place(root, "state.db"), Place(root / "sessions", "*.json")]

    def listed(self, path: Path) -> list[Listed]:
        """See `Format`; the oldest first."""
        if _is_database(path):
            return read_database(path, _sessions)
        return [_listed(row, str(row["id"])) for row in (_as_row(value, path) for value in _documents(path))]

    def is_indexed(self, path: Path) -> bool:
        """See `Format`."""
        return _is_database(path)

    def open(self, path: Path, session_id: str) -> Opened:
        """See `Format`."""
        if _is_database(path):
            return _open_database(path, session_id)
        rows, chosen = [], None
        for value in _documents(path):
            rows.append(_as_row(value, path))
            if chosen is None or rows[-1]["id"] == session_id:
                chosen = value["messages"]
        records = [message for message in chosen if isinstance(message, dict)] if isinstance(chosen, list) else []
        source = RowSource.of(
            records, [(record.get("id", at), record.get("active")) for at, record in enumerate(records)]
        )
        name = session_id or str(rows[0]["id"])
        row = next(row for row in rows if row["id"] == name)
        return _opened(source, name, row, file_mark(path).size if row is rows[0] else 0)


FORMATS = (HermesFormat(),)


def _opened(source: RowSource, session_id: str, row: Row, size: int) -> Opened:
    about = About(
        session_id=session_id,
        title=blocks.word(row.get("title")),
        cwd=blocks.word(row.get("cwd")),
        branch=blocks.word(row.get("git_branch")),
        model=blocks.word(row.get("model")),
        parent=tables.natural(row.get("parent_session_id")) or None,
        usage=_usage(row),
    )
    return Opened(source, session_id, size, about=about)


def _is_database(path: Path) -> bool:
    return disk.read(path, 0, len(MAGIC)) == MAGIC


def _sessions(connection: sqlite3.Connection) -> list[Listed]:
    rows = tables.sessions(connection, "sessions", (*_SESSION, *_TOKENS), "started_at")
    return [_listed(row, name) for name, row in rows]


def _open_database(path: Path, session_id: str) -> Opened:
    found = read_database(path, partial(_found, name=session_id))
    if found is None:
        raise tables.no_such_session(path, session_id)
    session, select, places, keys = found

    def read(first: int, stop: int) -> list[Record | Damaged | None]:
        return read_database(path, partial(_messages, select=select, places=places[first:stop]))

    return _opened(RowSource(read, keys), session_id, session.row, file_mark(path).size if session.is_first else 0)


def _found(
    connection: sqlite3.Connection, name: str
) -> tuple[tables.Session, str, list[tables.Place], list[str]] | None:
    """A session, the query for messages by their places, and the places of its own and how they are called."""
    session = tables.session(connection, "sessions", (*_SESSION, *_TOKENS), name, "started_at")
    if session is None:
        return None
    at, of = tables.place_column(connection, "messages"), tables.place_column(connection, "sessions")
    active = "coalesce(active, '')" if "active" in columns(connection, "messages") else "''"
    sql = f"""SELECT {at}, coalesce(id, '') || ' ' || {active} FROM messages
        WHERE session_id IS (SELECT id FROM sessions WHERE {of} = ?) ORDER BY id"""  # noqa: S608 - our own names
    names = tables.known_columns(connection, "messages", _MESSAGE)
    select = f"SELECT {at} AS place, {names} FROM messages WHERE {at} IN"  # noqa: S608 - our own names
    return session, select, *pairs(connection, sql, session.place)


def _messages(
    connection: sqlite3.Connection, select: str, places: Sequence[tables.Place]
) -> list[Record | Damaged | None]:
    """What some messages say."""
    found = {row.pop("place"): row for row in query(connection, f"{select} ({tables.among(places)})", *places)}
    return [_message(place, found[place]) if place in found else None for place in places]


def _message(place: tables.Place, row: Row) -> Record | Damaged:
    record = tables.plain(row)
    wrong = [f"its {name} {told}" for name in row if (told := tables.loss(row[name]))] if record is not row else []
    if row["id"] is None:
        wrong.append("it has no id, by which it would be put in order")
    if isinstance(calls := record["tool_calls"], str) and calls:
        record["tool_calls"] = found = blocks.parsed(calls)
        if not isinstance(found, list | None) or (found is None and calls.strip() != "null"):
            wrong.append("its tool_calls are no list in JSON")
    if not isinstance(record["content"], str | None):
        record["content"] = str(record["content"])
    return Damaged(record, f"messages, row {place}: {'; '.join(wrong)}") if wrong else record


def _is_session(value: Record) -> bool:
    named = "session_id" in value or "id" in value
    told = any(name in value for name in ("platform", "source", "model", "session_start", "started_at"))
    return isinstance(value.get("messages"), list) and named and told and "sessionId" not in value


def _documents(path: Path) -> Iterator[Record]:
    """The sessions of a file: one a line, or one that is the whole file."""
    found = (line.record for line in FileSource(path).lines() if line.record is not None and _is_session(line.record))
    first = next(FileSource(path).lines(), None)
    document = read_document(path) if first is None or first.record is None else None
    if document is not None and isinstance(document.value, dict) and not document.is_cut:
        yield document.value
        return
    one = next(found, None)
    if one is None:
        raise TranscriptRefused("unknown_format", f"{path} holds no session of Hermes any more; read it again")
    yield from chain((one,), found)


def _as_row(value: Record, path: Path) -> Row:
    config = value.get("model_config")
    config = config if isinstance(config, dict) else {}
    made = {name: value.get(name) for name in (*_SESSION, *_TOKENS)}
    made["id"] = blocks.word(value.get("session_id")) or blocks.word(value.get("id")) or path.stem
    made["started_at"] = value.get("started_at") or value.get("session_start")
    made["ended_at"] = value.get("ended_at") or value.get("last_updated")
    made["cwd"] = value.get("cwd") or config.get("cwd")
    return made


def _listed(row: Row, name: str) -> Listed:
    return Listed(
        name,
        blocks.text_of(row.get("title")),
        blocks.text_of(row.get("cwd")),
        blocks.text_of(row.get("model")),
        stamp(row.get("started_at")) or "",
        stamp(row.get("ended_at")) or "",
        tables.natural(row.get("parent_session_id")) or None,
    )


def _usage(row: Row) -> dict[str, int] | None:
    if all(row.get(name) is None for name in _TOKENS):
        return None
    fresh, out, read, write, reasoning = (row.get(name) for name in _TOKENS)
    return blocks.usage_dict(fresh, read, write, out, reasoning or 0)


def _listed_calls(calls: object) -> list[Record]:
    found = blocks.parsed(calls) if isinstance(calls, str) else calls
    return [call for call in found if isinstance(call, dict)] if isinstance(found, list) else []


def _exit(record: Record) -> object:
    """The exit code in a result that is JSON; the format itself marks no failures."""
    content = record.get("content")
    if not isinstance(content, str) or '"exit_code"' not in content:
        return None
    found = blocks.parsed(content)
    return found.get("exit_code") if isinstance(found, dict) else None
