"""A copy of a conversation, up to a turn's end, as a session of its own.

The lines of one branch are copied with their ids, so that everything in them that names a line
still does. They are numbered and linked anew, and marked `inherited`: what they cost was counted
where it was spent. Contents in `files/` are shared and not copied.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.errors import SessionExists
from harness.filesystem import disk
from harness.filesystem.locks import FileLock
from harness.ids import new_id, timestamp
from harness.sessions.anchor import Anchor, encode_anchor, read_anchor
from harness.sessions.committing import blob_lock
from harness.sessions.entries import Entry, EntryDict, Position, build_line, digest
from harness.sessions.layout import Owner, SessionFiles
from harness.sessions.strict import read_strictly, whole_data
from harness.sessions.turn_ends import newest_end, path_to, path_to_end
from harness.sessions.turns import boundary_of

__all__ = ["fork_session"]

_LOCK_SECONDS = 60.0
_ENVELOPE = frozenset({"type", "id", "parentId", "seq", "prevHash", "timestamp", "turnId", "requestId"})
_KEPT_OF_HEADER = ("provider", "model", "contextWindow", "workspace", "permissionMode")


def fork_session(
    source: SessionFiles, owner: Owner, target: SessionFiles, session_id: str, entry_id: str | None
) -> None:
    """Write the new session, whole or not at all, in a worker.

    `entry_id` is a line at a turn's end; None for the newest one. Raises `NotATurnEnd`,
    `SessionDamaged`, `SessionNotFound`, and `SessionExists` where the new session has a ledger already.
    """
    entries = read_strictly(source, owner)
    path = path_to_end(entries, entry_id) if entry_id else newest_end(path_to(entries, entries[-1]))
    copy = _Copy(path[0].data, Owner(session_id, owner.agent, owner.namespace), path[-1].id)
    for entry in path[1:]:
        copy.add(entry)
    with FileLock(target.lock).hold(_LOCK_SECONDS), _contents_kept(source):
        for entry in path:
            whole_data(entry, source)
        found = disk.mark(target.ledger)
        if found and found.size:
            raise SessionExists(f"there is a session {session_id!r} already in {target.folder}; choose another id")
        disk.replace(target.ledger, copy.data, sync=True)
        before = read_anchor(target.anchor)
        disk.write_block(target.anchor, copy.anchor(boundary_of(path), before.deleted if before else ()), sync=True)


@contextlib.contextmanager
def _contents_kept(files: SessionFiles) -> Iterator[None]:
    """Nobody removes contents that the copy is about to name."""
    if disk.mark(files.blobs) is None:
        yield
        return
    with blob_lock(files.blobs).hold(_LOCK_SECONDS):
        yield


class _Copy:
    """The new ledger while it is written; it exists to carry the chain and where lines have moved."""

    def __init__(self, header: EntryDict, owner: Owner, entry_id: str) -> None:
        self._owner = owner
        self._ledger_id = new_id()
        self._lines: list[bytes] = []
        self._size = 0
        self._leaf = ""
        self._moved: dict[int, Position] = {}
        fields = {
            "format": header.get("format"),
            "library": header.get("library"),
            "ledgerId": self._ledger_id,
            **owner.fields(),
            "created": timestamp(),
            **{key: header[key] for key in _KEPT_OF_HEADER if key in header},
            "forkedFrom": {"session": header.get("session"), "entry": entry_id},
        }
        self._append("header", new_id(), fields, 0)

    @property
    def data(self) -> bytes:
        """The bytes of the file."""
        return b"".join(line + b"\n" for line in self._lines)

    def add(self, entry: Entry) -> None:
        """Copy a line."""
        data = entry.data
        fields = {key: value for key, value in data.items() if key not in _ENVELOPE}
        for key in ("prevBoundary", "boundary"):
            if isinstance(fields.get(key), dict):
                fields[key] = self._where(fields[key].get("offset"))
        if isinstance(fields.get("keys"), dict):
            fields["keys"] = self._moved_keys(fields["keys"])
        # Within the envelope's order, but as it was then.
        fields = {"timestamp": data.get("timestamp"), **fields, "inherited": True}
        self._append(entry.kind, entry.id, fields, entry.offset, data.get("turnId"), data.get("requestId"))

    def anchor(self, boundary: Position, deleted: Sequence[str]) -> bytes:
        """The anchor of the file; `boundary` is the position in the source."""
        return encode_anchor(
            Anchor(
                ledger_id=self._ledger_id,
                session=self._owner.session,
                count=len(self._lines),
                bytes=self._size,
                hash=digest(self._lines[-1]),
                leaf=self._leaf,
                boundary=self._moved[boundary.offset],
                deleted=tuple(deleted),
            )
        )

    def _append(
        self,
        kind: str,
        entry_id: str,
        fields: Mapping[str, Any],
        offset: int,
        turn: str | None = None,
        request: str | None = None,
    ) -> None:
        raw = build_line(
            kind,
            entry_id,
            fields,
            parent=self._leaf or None,
            seq=len(self._lines) + 1,
            prev_hash=digest(self._lines[-1]) if self._lines else None,
            turn=turn,
            request=request,
        )
        self._moved[offset] = Position(len(self._lines) + 1, self._size)
        self._lines.append(raw)
        self._size += len(raw) + 1
        self._leaf = entry_id

    def _where(self, offset: object) -> dict[str, int] | None:
        moved = self._moved.get(offset) if isinstance(offset, int) else None
        return {"seq": moved.seq, "offset": moved.offset} if moved else None

    def _moved_keys(self, keys: Mapping[str, Any]) -> dict[str, int]:
        return {key: self._moved[offset].offset for key, offset in keys.items() if offset in self._moved}
