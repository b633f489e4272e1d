"""opencode sessions: rows of a SQLite database, or the document that `opencode export` prints.

Either way a record here is one message with its parts: `{"info": …, "parts": […]}`. Results stand in
the parts that call. Tables that hold accounts and secrets are never looked at.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from harness.errors import TranscriptRefused
from harness.filesystem import disk
from harness.transcripts import blocks, tables
from harness.transcripts.blocks import BlockDict
from harness.transcripts.database import MAGIC, Row, columns, pairs, query, read_database
from harness.transcripts.document import read_document
from harness.transcripts.formats.base import Format, Listed, Opened, Place, Where
from harness.transcripts.formats.opencode_rows import UNREADABLE, Messages, message_keys
from harness.transcripts.lines import Record, TranscriptWarning
from harness.transcripts.pieces import About, Reader, Subagent
from harness.transcripts.rows import RowSource
from harness.transcripts.source import file_mark
from harness.transcripts.times import stamp

__all__ = ["FORMATS", "OpencodeFormat", "OpencodeReader"]

_STOPS = {"stop": "stop", "tool-calls": "tool_use", "length": "length"}
_QUIET = frozenset({"step-start", "step-finish", "snapshot", "retry", "agent", "subtask"})
_OF_THE_MODEL = frozenset({"step-start", "step-finish", "reasoning", "tool", "patch"})
_WANTED = ("id", "parent_id", "directory", "title", "model", "time_created", "time_updated")


class OpencodeReader(Reader):
    """Reads the messages of one session."""

    def record(self, record: Record) -> None:
        """See `Reader`."""
        info, parts = record.get("info"), record.get("parts")
        if not isinstance(info, dict):
            self.warn("unknown_record", "a message without its info")
            return
        found = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        time = info.get("time")
        at = self.saw_time(time.get("created") if isinstance(time, dict) else None)
        if info.get("role") == "user":
            self._user(at, info, found)
        elif info.get("role") == "assistant":
            self._assistant(at, info, found)
        elif info.get("type") == UNREADABLE:
            self._of_somebody(at, info, found)
        else:
            self.warn("unknown_record", f"role {str(info.get('role'))[:80]!r} is not known")

    def _user(self, at: str | None, info: Record, parts: list[Record]) -> None:
        own: list[BlockDict] = []
        for part in parts:
            if part.get("type") == "compaction":
                self.counts.compactions += 1
                self.piece("compaction", [blocks.text(blocks.text_of(part.get("text")))], at)
            elif blocks.text_of(part.get("type")) not in _QUIET:
                block = self._said(part)
                is_own = part.get("synthetic") is not True and part.get("ignored") is not True
                own += [block] if is_own else []
                if not is_own:
                    self.piece("context", [block], at)
        if own:
            self.piece("prompt", own, at, fields=_id(info))
            self.counts.prompts_lt += any(not str(block.get("text", "<")).lstrip().startswith("<") for block in own)

    def _assistant(self, at: str | None, info: Record, parts: list[Record]) -> None:
        self.counts.assistant_msgs += 1
        model, provider = blocks.word(info.get("modelID")), blocks.word(info.get("providerID"))
        self.counts.saw_model(model)
        finish = blocks.word(info.get("finish"))
        named = {"provider": provider, "model": model, "stop": _STOPS.get(finish, finish) if finish else None}
        fields = {**_id(info), **{name: value for name, value in named.items() if value}}
        content = [block for part in parts for block in self._part(part, provider or "unknown", model)]
        if isinstance(info.get("error"), dict):
            content.append({"type": "error", "text": _error(info["error"])})
        self.piece("answer", content, at, fields=fields, usage=_usage(info.get("tokens")))
        for part in parts:
            if part.get("type") == "tool":
                self._answered(at, part)

    def _of_somebody(self, at: str | None, info: Record, parts: list[Record]) -> None:
        """The parts of a message whose own row cannot be read: of the model where only it writes such."""
        if any(blocks.text_of(part.get("type")) in _OF_THE_MODEL for part in parts):
            self._assistant(at, info, parts)
            return
        for part in parts:
            if blocks.text_of(part.get("type")) not in _QUIET:
                self.piece("context", [self._said(part)], at)

    def _part(self, part: Record, provider: str, model: str | None) -> list[BlockDict]:
        kind = blocks.text_of(part.get("type"))
        if kind in _QUIET:
            return []
        if kind == "reasoning":
            return [blocks.thinking(blocks.text_of(part.get("text")), provider, model, self.settled(part))]
        if kind == "tool":
            state = _state(part)
            return [blocks.call_block(self._call(part), part.get("tool"), self.settled(state.get("input")))]
        if kind == "patch":
            return [{"type": "patch", "files": part.get("files"), "hash": part.get("hash")}]
        return [self._said(part)]

    def _said(self, part: Record) -> BlockDict:
        kind = part.get("type")
        if kind == "text":
            return blocks.text(blocks.text_of(part.get("text")))
        if kind == "file":
            url, media = part.get("url"), blocks.text_of(part.get("mime"))
            if media.startswith("image/") and blocks.text_of(url).startswith("data:"):
                return self.image(blocks.image_from_url(url, whole=self.cap is None))
            named = {"type": "file", "name": part.get("filename"), "mediaType": media, "url": _place(url)}
            return blocks.unknown(named)
        # What cannot be read was told of when its row was.
        return blocks.unknown(part) if kind == UNREADABLE else self.unknown(part)

    def _call(self, part: Record) -> str:
        return blocks.word(part.get("callID")) or blocks.word(part.get("id")) or self.place("call")

    def _answered(self, at: str | None, part: Record) -> None:
        """The result of a call that has ended; an `invalid` tool is a failed call, whatever its status."""
        state, key = _state(part), self._call(part)
        status, metadata = state.get("status"), state.get("metadata")
        told = metadata if isinstance(metadata, dict) else {}
        if (child := blocks.word(told.get("sessionId"))) is not None:
            self.about.subagents.append(Subagent(child, call=key))
        is_invalid = part.get("tool") == "invalid"
        if status not in ("completed", "error"):
            return
        text = state.get("error") if status == "error" else state.get("output")
        if is_invalid and isinstance(state.get("input"), dict):
            text = state["input"].get("error") or text
        content = [blocks.text(text if isinstance(text, str) else blocks.json_text(text))]
        block = blocks.result_block(key, content, failed=status == "error" or is_invalid, exit_code=told.get("exit"))
        self.piece("results", [block], at)


class OpencodeFormat(Format):
    """See the module."""

    name = "opencode"
    title = "opencode"
    tables: Mapping[str, frozenset[str]] = {
        "session": frozenset({"id", "title", "time_created"}),
        "message": frozenset({"id", "session_id", "data"}),
        "part": frozenset({"id", "message_id", "data"}),
    }

    def judge_document(self, value: object) -> bool:
        """See `Format`."""
        return isinstance(value, dict) and isinstance(value.get("info"), dict) and "messages" in value

    def is_document(self, path: Path) -> bool:
        """See `Format`."""
        return True

    def reader(self, cap: int | None) -> OpencodeReader:
        """See `Format`."""
        return OpencodeReader(cap)

    def places(self, where: Where) -> Sequence[Place]:
        """See `Format`."""
        return [Place(where.folder("XDG_DATA_HOME", ".local", "share") / "opencode", "opencode*.db")]

    def listed(self, path: Path) -> list[Listed]:
        """See `Format`; the oldest first."""
        if not _is_database(path):
            return [_listed_document(path)]
        return read_database(path, _sessions)

    def is_indexed(self, path: Path) -> bool:
        """See `Format`."""
        return _is_database(path)

    def open(self, path: Path, session_id: str) -> Opened:
        """See `Format`."""
        return _open_database(path, session_id) if _is_database(path) else _open_document(path)


FORMATS = (OpencodeFormat(),)


def _is_database(path: Path) -> bool:
    return disk.read(path, 0, len(MAGIC)) == MAGIC


def _sessions(connection: sqlite3.Connection) -> list[Listed]:
    return [_listed(row, name) for name, row in tables.sessions(connection, "session", _WANTED, "time_created")]


def _open_database(path: Path, session_id: str) -> Opened:
    found = read_database(path, partial(_found, path=path, name=session_id))
    if found is None:
        raise tables.no_such_session(path, session_id)
    session, children, messages = found
    about = About(
        session_id=session_id,
        title=blocks.word(session.row.get("title")),
        cwd=blocks.word(session.row.get("directory")),
        parent=tables.natural(session.row.get("parent_id")) or None,
        subagents=[Subagent(name, str(path), title=title) for name, title in children],
    )
    size = file_mark(path).size if session.is_first else 0
    return Opened(RowSource(messages.read, messages.ids), session_id, size, about=about)


def _found(
    connection: sqlite3.Connection, path: Path, name: str
) -> tuple[tables.Session, list[tuple[str, str]], Messages] | None:
    """A session, the names and titles of those that it started, and its messages."""
    session = tables.session(connection, "session", _WANTED, name, "time_created")
    if session is None:
        return None
    places, ids = pairs(connection, message_keys(connection), session.place)
    return session, _children(connection, session.place), Messages(path, session.place, places, ids)


def _children(connection: sqlite3.Connection, session: tables.Place) -> list[tuple[str, str]]:
    if "parent_id" not in columns(connection, "session"):
        return []
    at = tables.place_column(connection, "session")
    sql = f"""SELECT {at} AS place, id, title FROM session
        WHERE parent_id = (SELECT id FROM session WHERE {at} = ?) ORDER BY time_created, id"""  # noqa: S608 - our own names
    rows = map(tables.plain, query(connection, sql, session))
    return [(tables.name_of(row["place"], row["id"]), str(row["title"] or "")) for row in rows]


def _listed(row: Row, name: str) -> Listed:
    model = blocks.parsed(row.get("model"))
    return Listed(
        name,
        blocks.text_of(row.get("title")),
        blocks.text_of(row.get("directory")),
        blocks.text_of(model.get("id")) if isinstance(model, dict) else "",
        stamp(row.get("time_created")) or "",
        stamp(row.get("time_updated")) or "",
        tables.natural(row.get("parent_id")) or None,
    )


def _document(path: Path) -> tuple[Record, list[Any], bool]:
    document = read_document(path)
    if document is None or not OpencodeFormat().judge_document(document.value):
        raise TranscriptRefused("unknown_format", f"{path} is no export of opencode any more; read it again")
    found = document.value
    messages = found["messages"] if isinstance(found["messages"], list) else []
    return found["info"], messages, document.is_cut


def _listed_document(path: Path) -> Listed:
    info, _, _ = _document(path)
    found = info.get("time")
    time = found if isinstance(found, dict) else {}
    return _listed(
        {
            "title": info.get("title"),
            "directory": info.get("directory"),
            "parent_id": info.get("parentID"),
            "time_created": time.get("created"),
            "time_updated": time.get("updated"),
        },
        str(info.get("id") or path.stem),
    )


def _open_document(path: Path) -> Opened:
    _, messages, is_cut = _document(path)
    records = [message for message in messages if isinstance(message, dict)]
    listed = _listed_document(path)
    about = About(session_id=listed.session_id, title=listed.title, cwd=listed.cwd, parent=listed.parent)
    note = TranscriptWarning("truncated", 0, "the export was cut before its end; read the database instead")
    return Opened(
        RowSource.of(records, range(len(records))),
        listed.session_id,
        file_mark(path).size,
        (note,) if is_cut else (),
        about=about,
    )


def _id(info: Record) -> dict[str, str]:
    found = blocks.word(info.get("id"))
    return {"id": found} if found else {}


def _state(part: Record) -> Record:
    state = part.get("state")
    return state if isinstance(state, dict) else {}


def _usage(tokens: object) -> dict[str, int] | None:
    if not isinstance(tokens, dict):
        return None
    cache = tokens.get("cache")
    found = cache if isinstance(cache, dict) else {}
    return blocks.usage_dict(
        tokens.get("input"), found.get("read"), found.get("write"), tokens.get("output"), tokens.get("reasoning") or 0
    )


def _error(error: Record) -> str:
    data = error.get("data")
    told = data.get("message") if isinstance(data, dict) else None
    return blocks.word(told) or blocks.word(error.get("name")) or blocks.json_text(error)


def _place(url: object) -> str:
    """An address without its data."""
    return blocks.text_of(url)[:200] if not blocks.text_of(url).startswith("data:") else "data:"
