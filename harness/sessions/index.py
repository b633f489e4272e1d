"""The list of a folder's sessions, `sessions.json`: a copy, made for listing, that can always be made again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.errors import FileMissing, InvalidId, PersistenceError
from harness.filesystem import disk
from harness.filesystem.disk import DirItem
from harness.ids import check_id, decode_name, timestamp
from harness.messages import MessageDict
from harness.sessions.branching import notes_of
from harness.sessions.entries import Entry, parse_line
from harness.sessions.headers import read_first_line
from harness.sessions.layout import LEDGER_SUFFIX
from harness.sessions.search import message_text
from harness.sessions.skimming import skim
from harness.sessions.turns import opens_turn
from harness.text import dumps, read_json

__all__ = [
    "HANDOFF",
    "SessionInfo",
    "encode_index",
    "info_of_file",
    "info_of_ledger",
    "parse_index",
    "session_files",
    "time_of",
    "title_of",
]

HANDOFF = "handoff"
"""A field of a text block that says: this tells of another session, and is no word of the person."""
_TITLE = 80
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """One session in a list. Times are RFC 3339 in UTC; `turns` counts directives."""

    id: str
    title: str = ""
    summary: str = ""
    created_at: str = ""
    updated_at: str = ""
    turns: int = 0


def title_of(text: str) -> str:
    """The first line of a prompt, cut at 80 characters."""
    lines = text.strip().splitlines()
    return lines[0][:_TITLE] if lines else ""


def encode_index(infos: Mapping[str, SessionInfo]) -> bytes:
    """The bytes of the file."""
    return dumps({"version": 1, "sessions": {key: _stored(infos[key]) for key in sorted(infos)}})


def parse_index(raw: bytes) -> dict[str, SessionInfo] | None:
    """The sessions of an index, without entries that cannot be right; None if it is none at all."""
    try:
        data = read_json(raw)
    except ValueError:
        return None
    sessions = data.get("sessions") if isinstance(data, dict) else None
    if not isinstance(sessions, dict):
        return None
    infos = [_info(key, value) for key, value in sessions.items()]
    return {info.id: info for info in infos if info}


def session_files(folder: Path) -> dict[str, DirItem]:
    """The ledgers of a folder by session id. Files whose name is none of ours are not seen."""
    found: dict[str, DirItem] = {}
    for item in disk.list_folder(folder):
        if item.name.endswith(LEDGER_SUFFIX) and not item.is_dir and item.size:
            session_id = _id_of(folder / item.name)
            if session_id is not None:
                found[session_id] = item
    return found


def info_of_file(session_id: str, item: DirItem) -> SessionInfo:
    """A list entry for a session whose ledger cannot be read: what the file itself tells."""
    return SessionInfo(session_id, created_at=time_of(item), updated_at=time_of(item))


def info_of_ledger(session_id: str, path: Path) -> SessionInfo:
    """A list entry made from the ledger itself, by reading all of it."""
    entries, _, _ = skim(path)
    prompts = [entry for entry in entries if opens_turn(entry.data)]
    title = notes_of(entries).title or (message_text(_said(prompts[0].data["message"])) if prompts else "")
    header = entries[0].data if entries else {}
    return SessionInfo(
        id=session_id,
        title=title_of(title),
        created_at=_instant(header.get("created")) or _instant(header.get("timestamp")) or _newest(entries),
        updated_at=_newest(entries),
        turns=len(prompts),
    )


def _said(message: MessageDict) -> MessageDict:
    content = message.get("content")
    own = [block for block in content if not (isinstance(block, dict) and HANDOFF in block)] if content else []
    return {**message, "content": own}


def time_of(item: DirItem) -> str:
    """When a file was last written."""
    return timestamp(datetime.fromtimestamp(item.mtime_ns // 1000 / 1e6, UTC))


def _id_of(path: Path) -> str | None:
    name = path.name.removesuffix(LEDGER_SUFFIX)
    if "%%" not in name:
        return decode_name(name)
    try:
        header = parse_line(read_first_line(path)) or {}  # only there does a shortened id stand whole
    except (FileMissing, PersistenceError):
        return None
    return header["session"] if isinstance(header.get("session"), str) else None


def _newest(entries: list[Entry]) -> str:
    times = [stamp for entry in entries if (stamp := _instant(entry.data.get("timestamp")))]
    return max(times, default=timestamp())


def _instant(value: Any) -> str | None:
    return value if isinstance(value, str) and _INSTANT.fullmatch(value) else None


def _stored(info: SessionInfo) -> dict[str, Any]:
    return {
        "title": info.title,
        "summary": info.summary,
        "createdAt": info.created_at,
        "updatedAt": info.updated_at,
        "turns": info.turns,
    }


def _info(key: str, value: Any) -> SessionInfo | None:
    if not isinstance(value, dict):
        return None
    texts = [value.get(name) for name in ("title", "summary", "createdAt", "updatedAt")]
    turns = value.get("turns")
    if not all(isinstance(text, str) for text in texts) or type(turns) is not int:
        return None
    if not all(_instant(value[name]) for name in ("createdAt", "updatedAt")):
        return None
    try:
        check_id("session_id", key)
    except InvalidId:
        return None
    return SessionInfo(key, value["title"], value["summary"], value["createdAt"], value["updatedAt"], turns)
