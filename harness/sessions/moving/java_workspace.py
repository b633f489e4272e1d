"""Sessions that the Java harness has left in a workspace: found, read, and never changed here.

Its files lie outside `tenants/`: those of calls without a user below the workspace, those of a user in a folder named
by the raw user id, except that the memory of all users lies in the one place of calls without a user. So a memory there
is a user's only if the transcript in the user's own folder says the same; and it is nobody's if some user has a
session of that id.

Folders of users were written to by models. No link is followed here, and names are compared with what a folder lists,
so that a file system that is blind to case shows nobody another one's files.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import FileMissing, FilesystemError
from harness.filesystem.local_tree import LocalTree
from harness.filesystem.namespaces import TENANTS
from harness.filesystem.paths import Parts, join
from harness.ids import new_id
from harness.sessions.moving.java_messages import (
    SUMMARY_NAME,
    JavaMessage,
    Transcript,
    from_java,
    identity_of,
    key_of,
    message_of_line,
    read_lines,
    read_transcript,
)
from harness.state import State
from harness.text import clean_text, read_json

__all__ = ["JavaSession", "JavaWorkspace"]

_log = logging.getLogger("harness.sessions")
_LIMIT = 512 * 1024 * 1024
_DAY = re.compile(r"\d{4}-\d\d-\d\d\.md")
_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")
# Names below the workspace that are no users' folders.
_OWN = frozenset({TENANTS, "agents", "knowledge", "large_tool_results", "memory", "sandboxes", "skills", "subagents"})
_SUMMARY = re.compile(r"<summary>\s*(.*?)\s*</summary>", re.DOTALL)


@dataclass(slots=True)
class JavaSession:
    """What there is of a session. The model saw `summary` and what follows from `kept` on."""

    messages: list[JavaMessage] = field(default_factory=list)
    summary: str = ""
    kept: int = 0
    states: dict[str, State] = field(default_factory=dict)
    others: list[dict[str, Any]] = field(default_factory=list)
    sources: list[dict[str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


class JavaWorkspace:
    """The Java sessions of one user with one agent, under any of the names the agent may have had. Blocking."""

    def __init__(self, workspace: Path, namespace: tuple[str, ...], agents: Sequence[str]) -> None:
        self._tree = LocalTree(workspace)
        self._user = namespace[0] if namespace else None
        self._is_ours = len(namespace) <= 1 and (self._user is None or _is_user(self._user))
        self._agents = [name for name in dict.fromkeys(agents) if _is_part(name)]

    @property
    def is_there(self) -> bool:
        """Whether the Java harness was here, for this user and agent."""
        return self._is_ours and any(self._is_there(root) for root in self._roots())

    def session_ids(self) -> list[str]:
        """The ids of the sessions there are."""
        found = {_decoded(name) for folder in self._folders("context") for name in self._names(folder)}
        for folder in self._folders("sessions"):
            found |= {
                name.removesuffix(".jsonl").removesuffix(".log")
                for name in self._names(folder)
                if name.endswith(".jsonl")
            }
        return sorted(session_id for session_id in found if self.read(session_id) is not None)

    def memory_files(self) -> dict[Parts, bytes]:
        """The user's long-term memory: MEMORY.md and the daily files, by their paths below the tenant's root."""
        if not self._is_ours:
            return {}
        base = self.base
        names = [
            ("MEMORY.md",),
            *(("memory", name) for name in sorted(self._names((*base, "memory"))) if _DAY.fullmatch(name)),
        ]
        found = {parts: self._load((*base, *parts)) for parts in names}
        return {parts: raw for parts, raw in found.items() if raw is not None}

    def read(self, session_id: str) -> JavaSession | None:
        """The session, or None if there is none. What cannot be read is left out and named in `warnings`."""
        for folder in self._roots() if self.is_there else ():
            if (session := self._read_from(folder, session_id)) is not None:
                return session
        return None

    def agents_there(self) -> list[str]:
        """The names of agents that may have been the Java harness's, for this user."""
        return sorted(filter(_is_part, self._names((*self.base, "agents")))) if self._is_ours else []

    def places(self, session_id: str) -> tuple[list[Parts], list[Parts]]:
        """Where a session lies that `read` gives: its files and folders, then those that are another's, or may be.

        In this order they can be removed: what is left when that is cut off is still found as this session's.
        """
        mine: list[Parts] = []
        others: list[Parts] = []
        for root in self._roots():
            told = self._transcript_lines(root, session_id, JavaSession())
            folders = [(*root, "context", _encoded(session_id))]
            if self._user is not None:
                shared = folders[0][1:]
                found = self._lines((*shared, "memory_messages.jsonl"), JavaSession())
                if found is not None:
                    (folders if _agrees(found, told) else others).append(shared)
            names = [(*root, "sessions", f"{session_id}{suffix}") for suffix in reversed(_suffixes(session_id))]
            is_ours = self._user is not None or not self._is_some_users(root, session_id)
            (mine if is_ours else others).extend(place for place in (*folders, *names) if self._is_there(place))
        return mine, others

    @property
    def has_folders(self) -> bool:
        """Whether there are folders for sessions, which tell the harness's from another folder of the user's name."""
        return any(map(self._is_there, [*self._folders("context"), *self._folders("sessions")]))

    @property
    def base(self) -> Parts:
        """The user's own folder, or the workspace for nobody."""
        return () if self._user is None else (self._user,)

    def lists(self) -> list[Parts]:
        """The lists of sessions in the user's own folder."""
        found = [(*root, "sessions", "sessions.json") for root in self._roots() if self.base]
        return [place for place in found if self._is_there(place)]

    def own_folders(self) -> list[Parts]:
        """The folders of those that the Java harness makes for a user that are there, the user's own as the last."""
        if not self.base:
            return []
        inner = [(*root, name) for root in self._roots() for name in ("context", "sessions")]
        made = [*inner, *self._roots(), *((*self.base, name) for name in ("agents", "memory")), self.base]
        return [parts for parts in made if self._is_there(parts)]

    def _roots(self) -> list[Parts]:
        return [(*self.base, "agents", agent) for agent in self._agents]

    def _folders(self, kind: str) -> list[Parts]:
        return [(*root, kind) for root in self._roots() if self._is_ours and self._is_there(root)]

    def _read_from(self, root: Parts, session_id: str) -> JavaSession | None:
        session = JavaSession()
        entries = self._transcript_lines(root, session_id, session)
        memory = self._memory(root, session_id, entries, session)
        if memory is None and not entries:
            return None
        if self._user is None and self._is_some_users(root, session_id):
            _log.warning("the Java session %r is some user's, and was not imported for nobody", session_id)
            return None
        _put_together(session, read_transcript(entries), memory or [])
        return session

    def _transcript_lines(self, root: Parts, session_id: str, session: JavaSession) -> list[dict[str, Any]]:
        """The lines of both transcripts; they were meant to differ and hold the same."""
        if not _is_part(session_id):
            return []
        entries: list[dict[str, Any]] = []
        for suffix in _suffixes(session_id):
            known = {identity_of(entry) for entry in entries}
            lines = self._lines((*root, "sessions", session_id + suffix), session)
            entries += [entry for entry in lines or () if identity_of(entry) not in known]
        return entries

    def _memory(
        self, root: Parts, session_id: str, entries: Sequence[Mapping[str, Any]], session: JavaSession
    ) -> list[dict[str, Any]] | None:
        folder = (*root, "context", _encoded(session_id))
        found = self._lines((*folder, "memory_messages.jsonl"), session)
        if found is None and self._user is not None:
            folder = folder[1:]
            shared = JavaSession()
            found = self._lines((*folder, "memory_messages.jsonl"), shared)
            if found is None or not _agrees(found, entries):
                return None
            session.sources += shared.sources
            session.warnings += shared.warnings
        if found is not None:
            session.states = self._states(folder)
        return found

    def _states(self, folder: Parts) -> dict[str, State]:
        states: dict[str, State] = {}
        groups = self._value((*folder, "toolkit_activeGroups.json"))
        if groups and isinstance(groups.get("activeGroups"), list):
            states["active_tool_groups"] = {"on": sorted(map(str, groups["activeGroups"])), "off": []}
        plan = self._value((*folder, "planNotebook_state.json"))
        if plan and plan.get("currentPlan"):
            states["planNotebook_state"] = plan
        return states

    def _is_some_users(self, root: Parts, session_id: str) -> bool:
        """Whether a user's own folder knows a session that lies in the place of all."""
        users = [name for name in self._names(()) if _is_user(name)]
        places = ((user, *root, "sessions", f"{session_id}.log.jsonl") for user in users)
        return _is_part(session_id) and any(self._is_there(place) for place in places)

    def _lines(self, parts: Parts, session: JavaSession) -> list[dict[str, Any]] | None:
        raw = self._load(parts)
        if raw is None:
            return None
        lines, bad = read_lines(raw)
        session.sources.append({"path": join(parts), "sha256": hashlib.sha256(raw).hexdigest()})
        if bad:
            session.warnings.append(f"{join(parts)}: {bad} lines could not be read and were left out")
        return lines

    def _value(self, parts: Parts) -> dict[str, Any] | None:
        try:
            value = read_json(self._load(parts) or b"null")
        except ValueError:
            return None
        return value if isinstance(value, dict) else None

    def _load(self, parts: Parts) -> bytes | None:
        """The bytes of a file; None if there is none, or one that is not to be read."""
        if not self._is_there(parts):
            return None
        try:
            return self._tree.load(parts, _LIMIT)
        except FileMissing:
            return None
        except FilesystemError as error:
            _log.warning("a file of the Java harness was left out: %s", error)
            return None

    def _is_there(self, parts: Parts) -> bool:
        """Whether every name of a path is listed, letter for letter, where it should be."""
        try:
            if self._tree.stat(parts) is None:
                return False
        except FilesystemError:
            return False
        return all(parts[n] in self._names(parts[:n]) for n in range(len(parts)))

    def _names(self, parts: Parts) -> set[str]:
        """What a folder lists; no id can have made a name that is no UTF-8."""
        try:
            names = {node.parts[-1] for node in self._tree.children(parts)}
        except FilesystemError:
            return set()
        return {name for name in names if clean_text(name) == name}


def _put_together(session: JavaSession, transcript: Transcript, memory: Sequence[Mapping[str, Any]]) -> None:
    """The transcript up to where the memory begins, the memory, and what the transcript has behind it."""
    session.others = transcript.others
    told = [message_of_line(entry) for entry in transcript.said]
    if memory:
        _put_memory(session, told, memory)
    else:
        session.messages, session.summary, session.kept = told, transcript.summary or "", transcript.kept
    _keep_apart(session.messages)


def _put_memory(session: JavaSession, told: Sequence[JavaMessage], memory: Sequence[Mapping[str, Any]]) -> None:
    first = memory[0]
    has_summary = first.get("name") == SUMMARY_NAME
    kept = [from_java(data) for data in (memory[1:] if has_summary else memory)]
    start, length = _place(told, [message.key for message in kept if message.key[1]])
    session.messages = [*told[:start], *kept, *told[start + length :]]
    session.summary = _summary_of(from_java(first)) if has_summary else ""
    session.kept = start


def _keep_apart(messages: Iterable[JavaMessage]) -> None:
    """Here a message is known by its id, so where one is used again for something else, that gets a new one."""
    known: dict[str, tuple[Any, Any]] = {}
    for message in (each.message for each in messages):
        said = (message["role"], message["content"])
        if known.setdefault(message["id"], said) != said:
            message["id"] = new_id()


def _place(told: Sequence[JavaMessage], keys: Sequence[tuple[str, str]]) -> tuple[int, int]:
    """Where in the transcript the memory stands, and how much of it is told there; behind the end if nothing is."""
    said = [message.key for message in told]
    for start in range(len(said)):
        length = min(len(said) - start, len(keys))
        if length and said[start : start + length] == keys[:length]:
            return start, length
    return len(said), 0


def _summary_of(message: JavaMessage) -> str:
    text = message.key[1]
    found = _SUMMARY.search(text)
    return found[1] if found else text


def _agrees(memory: Iterable[Mapping[str, Any]], entries: Iterable[Mapping[str, Any]]) -> bool:
    """Whether everything that a person says in a memory stands in a transcript, and there is something."""
    said = {key_of(entry) for entry in entries}
    asked = {
        message.key
        for data in memory
        if data.get("name") != SUMMARY_NAME and (message := from_java(data)).message["role"] == "user"
    }
    return bool(asked) and asked <= said


def _suffixes(session_id: str) -> tuple[str, ...]:
    """Of the two transcripts. `s.jsonl` of a session `s` that ends in `.log` would be one of another session."""
    return (".log.jsonl",) if session_id.endswith(".log") else (".log.jsonl", ".jsonl")


def _is_part(name: str) -> bool:
    """Whether an id can be one name in a path. Raw ids became names there."""
    return bool(name) and name not in (".", "..") and not any(char in name for char in "/\\\0") and name.isprintable()


def _is_user(name: str) -> bool:
    return _is_part(name) and not name.startswith(".") and name.casefold() not in _OWN


def _encoded(session_id: str) -> str:
    """The name of a session's folder."""
    if _PLAIN.fullmatch(session_id) and session_id not in (".", ".."):
        return session_id
    return base64.urlsafe_b64encode(session_id.encode()).decode().rstrip("=")


def _decoded(name: str) -> str:
    """The session id behind the name of a folder: the text it encodes, if that would be encoded so."""
    try:
        text = base64.urlsafe_b64decode(name + "=" * (-len(name) % 4)).decode()
    except (ValueError, binascii.Error):
        return name
    return text if not _PLAIN.fullmatch(text) and _encoded(text) == name else name
