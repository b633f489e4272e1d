"""The list of a folder's sessions, `sessions.json`: a copy, made for listing, that can always be made again.

Turns are counted in the ledgers, from where they were counted to before: so however many write to the list, each
turn counts once, and what was counted is not read again.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.errors import FileMissing, InvalidId, PersistenceError, SessionDamaged, SessionNotFound
from harness.filesystem import disk
from harness.filesystem.disk import DirItem
from harness.ids import check_id, decode_name, timestamp
from harness.messages import MessageDict
from harness.sessions.catalog.branching import notes_of
from harness.sessions.catalog.search import message_text
from harness.sessions.lines.anchor import read_anchor
from harness.sessions.lines.entries import Entry, Position, Tail, parse_line
from harness.sessions.lines.headers import read_first_line
from harness.sessions.lines.layout import ANCHOR_SUFFIX, CONTEXT_SUFFIX, LEDGER_SUFFIX, SNAPSHOTS, SessionFiles
from harness.sessions.lines.skimming import skim
from harness.sessions.lines.traces import find_trace
from harness.sessions.view.turns import opens_turn
from harness.text import dumps, read_json

__all__ = [
    "HANDOFF",
    "INDEX",
    "Listed",
    "SessionInfo",
    "counted_on",
    "encode_index",
    "info_of_file",
    "info_of_ledger",
    "list_ledger",
    "lost_sessions",
    "page_of",
    "parse_index",
    "read_index",
    "session_files",
    "time_of",
    "title_of",
]

INDEX = "sessions.json"
"""The name of the file."""
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


@dataclass(frozen=True, slots=True)
class Listed:
    """What the list says of a session, and the position up to which its turns were counted; None: nobody knows."""

    info: SessionInfo
    counted: Position | None = None


def page_of(
    infos: Iterable[SessionInfo], limit: int | None, after: str | None, *, newest_first: bool
) -> list[SessionInfo]:
    """At most `limit` of these, of those behind the session `after`: by id, or the one that was written last first.

    Raises `SessionNotFound` where that order does not say what is behind a session that is not there.
    """
    ordered = sorted(infos, key=lambda info: info.id)
    if newest_first:
        ordered.sort(key=lambda info: info.updated_at, reverse=True)
    start = 0
    if after is not None:
        start = (
            _place_behind(ordered, after) if newest_first else bisect_right(ordered, after, key=lambda info: info.id)
        )
    return ordered[start:] if limit is None else ordered[start : start + limit]


def _place_behind(ordered: Sequence[SessionInfo], after: str) -> int:
    place = next((place for place, info in enumerate(ordered) if info.id == after), None)
    if place is None:
        raise SessionNotFound(f"there is no session {after!r} any more to go on behind; list from the beginning again")
    return place + 1


def title_of(text: str) -> str:
    """The first line of a prompt, cut at 80 characters."""
    lines = text.strip().splitlines()
    return lines[0][:_TITLE] if lines else ""


def encode_index(listed: Mapping[str, Listed], whose: Mapping[str, Any]) -> bytes:
    """The bytes of the file; `whose` are the fields that say to which agent and tenant the sessions belong."""
    sessions = {key: _stored(listed[key].info) for key in sorted(listed)}
    counted = {key: place._asdict() for key in sorted(listed) if (place := listed[key].counted)}
    return dumps({"version": 1, **whose, "sessions": sessions, "counted": counted})


def parse_index(raw: bytes) -> dict[str, SessionInfo] | None:
    """The sessions of an index, without entries that cannot be right; None if it is none at all."""
    listed = read_index(raw)
    return None if listed is None else {key: each.info for key, each in listed.items()}


def read_index(raw: bytes, whose: Mapping[str, Any] | None = None) -> dict[str, Listed] | None:
    """The same with the positions up to which turns were counted; older versions wrote none.

    Raises `SessionDamaged` for a list that says it is another's than `whose`; those of older versions do not say.
    """
    try:
        data = read_json(raw)
    except ValueError:
        return None
    sessions = data.get("sessions") if isinstance(data, dict) else None
    if not isinstance(sessions, dict):
        return None
    if whose and (others := {key: data[key] for key in whose if key in data and data[key] != whose[key]}):
        raise SessionDamaged(f"it belongs to {others}, not to {dict(whose)}; move it back where it came from")
    infos = [_info(key, value) for key, value in sessions.items()]
    counted = data.get("counted")
    places: dict[str, Any] = counted if isinstance(counted, dict) else {}
    return {info.id: Listed(info, _position(places.get(info.id))) for info in infos if info}


def session_files(folder: Path) -> dict[str, DirItem]:
    """The ledgers of a folder by session id. Files whose name is none of ours are not seen."""
    found: dict[str, DirItem] = {}
    for item in disk.list_folder(folder):
        if item.name.endswith(LEDGER_SUFFIX) and not item.is_dir and item.size:
            session_id = _id_of(folder / item.name)
            if session_id is not None:
                found[session_id] = item
    return found


def lost_sessions(folder: Path) -> list[str]:
    """The sessions of a folder whose ledger is gone: an anchor, a context file, a snapshot or the list knows of one.

    An id that was too long for the name of a file is nowhere to be read then, and is not among them. Blocking.
    """
    there, listed = session_files(folder), _listed_in(folder)
    names = [item.name for item in disk.list_folder(folder) if not item.is_dir]
    known = {name.removesuffix(end) for name in names for end in (ANCHOR_SUFFIX, CONTEXT_SUFFIX) if name.endswith(end)}
    known |= {item.name for item in disk.list_folder(folder.parent / SNAPSHOTS) if item.is_dir}
    ids = {each for name in known if (each := decode_name(name)) is not None} | listed
    return sorted(
        each for each in ids - there.keys() if _is_missed(SessionFiles.of(folder, each), listed=each in listed)
    )


def _listed_in(folder: Path) -> set[str]:
    try:
        return {*(read_index(disk.read(folder / INDEX)) or {})}
    except (FileMissing, PersistenceError):
        return set()


def _is_missed(files: SessionFiles, *, listed: bool) -> bool:
    anchor = read_anchor(files.anchor)
    known = anchor.count > 0 if anchor else listed
    return (known or find_trace(files) is not None) and not disk.mark(files.removed)


def info_of_file(session_id: str, item: DirItem) -> SessionInfo:
    """A list entry for a session whose ledger cannot be read: what the file itself tells."""
    return SessionInfo(session_id, created_at=time_of(item), updated_at=time_of(item))


def info_of_ledger(session_id: str, path: Path) -> SessionInfo:
    """A list entry made from the ledger itself, by reading all of it."""
    return list_ledger(session_id, path).info


def list_ledger(session_id: str, path: Path) -> Listed:
    """The same, with the position up to which its turns are counted."""
    entries, _, tail = skim(path)
    prompts = [entry for entry in entries if opens_turn(entry.data)]
    title = notes_of(entries).title or (message_text(_said(prompts[0].data["message"])) if prompts else "")
    header = entries[0].data if entries else {}
    info = SessionInfo(
        id=session_id,
        title=title_of(title),
        created_at=_instant(header.get("created")) or _instant(header.get("timestamp")) or _newest(entries),
        updated_at=_newest(entries),
        turns=len(prompts),
    )
    return Listed(info, _behind(tail))


def counted_on(listed: Listed, path: Path) -> Listed:
    """With the turns that the ledger has behind those counted. All of it is counted where it is not the one it was, and
    where nobody knows up to where it was counted: a number that may be wrong would stay so.
    """
    start, found = listed.counted, disk.mark(path)
    if start is not None and found is not None and _goes_on(path, start, found.size):
        entries, _, tail = skim(path, start)
        if not entries or entries[0].data.get("seq") == entries[0].seq:
            more = sum(opens_turn(entry.data) for entry in entries)
            return Listed(replace(listed.info, turns=listed.info.turns + more), _behind(tail))
    anew = list_ledger(listed.info.id, path)
    return Listed(replace(listed.info, turns=anew.info.turns), anew.counted)


def _goes_on(path: Path, start: Position, size: int) -> bool:
    """Whether a line of this file may begin, or its end be, at a position."""
    return start.offset <= size and (not start.offset or disk.read(path, start.offset - 1, 1) == b"\n")


def _behind(tail: Tail) -> Position | None:
    """Where the next line will begin; nobody knows while the last one has no end."""
    return Position(tail.count + 1, tail.size) if tail.ended else None


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


def _position(value: Any) -> Position | None:
    seq, offset = (value.get("seq"), value.get("offset")) if isinstance(value, dict) else (None, None)
    return Position(seq, offset) if type(seq) is type(offset) is int and seq > 0 and offset >= 0 else None


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
