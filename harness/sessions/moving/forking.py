"""A copy of a conversation, up to a turn's end, as a session of its own.

The lines of one branch are copied with their ids, so that everything in them that names a line
still does. They are numbered and linked anew, and marked `inherited`: what they cost was counted
where it was spent. Behind them come the title and the labels of copied lines that were given later, or on another
branch: they are about the copy too. A text that only another branch wrote is put where the
copy first names it. Contents in `files/` are shared and not copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import SessionExists
from harness.filesystem import disk, pool
from harness.filesystem.archives import move_into_place, write_blocks
from harness.filesystem.locks import FileLock
from harness.filesystem.lowlevel import temporary_name
from harness.ids import new_id, timestamp
from harness.sessions.catalog.branching import note_lines
from harness.sessions.checking.strict import gone_is_not_found, read_strictly, require_same, whole_data
from harness.sessions.ledger.beginning import whole_or_nothing
from harness.sessions.ledger.committing import BLOB_LOCK_SECONDS, blob_lock
from harness.sessions.ledger.deleting import finish_removal
from harness.sessions.lines.anchor import Anchor, encode_anchor, new_ledger_id, read_anchor
from harness.sessions.lines.entries import Entry, EntryDict, Position, digest, make_line
from harness.sessions.lines.layout import Owner, SessionFiles
from harness.sessions.lines.listed import written_again
from harness.sessions.lines.skimming import uncut
from harness.sessions.moving.binding_texts import put_texts, texts_elsewhere
from harness.sessions.view.turn_ends import newest_end, path_to, path_to_end
from harness.sessions.view.turns import boundary_of

__all__ = ["fork_session"]

_ENVELOPE = frozenset({"type", "id", "parentId", "seq", "prevHash", "timestamp", "turnId", "requestId"})
_KEPT_OF_HEADER = ("provider", "model", "contextWindow", "workspace", "permissionMode")


async def fork_session(
    source: SessionFiles, owner: Owner, target: SessionFiles, session_id: str, entry_id: str | None, timeout: float
) -> None:
    """Write the new session, whole or not at all; `timeout` is how many seconds its lock is waited for.

    `entry_id` is a line at a turn's end; None for the newest one. Raises `NotATurnEnd`, `SessionDamaged`,
    `SessionNotFound`, `SessionBusy`, and `SessionExists` where the new session has a ledger already.
    """
    copy = await pool.run(_planned, source, owner, session_id, entry_id)
    async with FileLock(target.lock, barrier=target.barrier).held_for(timeout) as lock:
        await finish_removal(lock, target, session_id)
        if await pool.run(disk.mark, source.blobs) is None:
            await pool.run(lock.work, copy.write, source, target)
        else:  # nobody removes contents that the copy is about to name
            await blob_lock(source.blobs).run(BLOB_LOCK_SECONDS, lock.work, copy.write, source, target)


def _planned(source: SessionFiles, owner: Owner, session_id: str, entry_id: str | None) -> _Copy:
    entries = read_strictly(source, owner)
    path = path_to_end(entries, entry_id) if entry_id else newest_end(path_to(entries, entries[-1]))
    with gone_is_not_found(source, owner.session):
        texts = texts_elsewhere(entries, path, source.ledger)
    new = Owner(session_id, owner.agent, owner.namespace, owner.anchor_key)
    return _Copy(path, _notes_behind(entries, path), new, source.ledger, owner.session, texts)


def _notes_behind(entries: Sequence[Entry], path: Sequence[Entry]) -> list[Entry]:
    """The lines of the title, and of labels of lines on this path, that are not on it themselves."""
    there = {entry.id for entry in path}
    notes = [entry for entry in note_lines(entries) if entry.id not in there]
    about = [entry for entry in notes if entry.kind != "label" or entry.data.get("target") in there]
    return sorted(about, key=lambda entry: entry.seq)


class _Copy:
    """The new ledger while it is written; it exists to carry the chain and where lines have moved."""

    def __init__(
        self,
        path: Sequence[Entry],
        notes: Sequence[Entry],
        owner: Owner,
        source: Path,
        source_id: str,
        texts: dict[str, EntryDict],
    ) -> None:
        self._path = path
        self._notes = notes
        self._owner = owner
        self._source = source
        self._source_id = source_id
        self._texts = texts
        self._ledger_id = ""
        self._count = self._size = 0
        self._hash: str | None = None
        self._leaf = ""
        self._moved: dict[int, Position] = {}

    def write(self, source: SessionFiles, target: SessionFiles) -> None:
        """Make it a session, in a worker, while its lock is held. Raises as `fork_session`."""
        # Contents of a session that was deleted meanwhile went with it.
        require_same(source, self._path[0], self._source_id)
        with gone_is_not_found(source, self._source_id):
            for entry in (*self._path, *self._notes):
                whole_data(entry, source)
            self._write(target)

    def _write(self, target: SessionFiles) -> None:
        found = disk.mark(target.ledger)
        if found and found.size:
            raise SessionExists(f"there is a session {self._owner.session!r} already; choose another id for the copy")
        with whole_or_nothing(target):
            self._make(target)

    def _make(self, target: SessionFiles) -> None:
        """All of it on disk, then the anchor, and the ledger's name last: from that moment on there is a session."""
        before = read_anchor(target.anchor)
        deleted = before.deleted if before else ()
        self._ledger_id = new_ledger_id(deleted)
        temporary = target.folder / temporary_name()
        try:
            write_blocks(temporary, self.lines())
            disk.write_block(target.anchor, self.anchor(boundary_of(self._path), deleted), sync=True)
            disk.remove(target.ledger)  # an empty one may be there
            move_into_place(temporary, target.ledger)
        finally:
            disk.remove(temporary)
        disk.sync_folder(target.folder)

    def lines(self) -> Iterator[bytes]:
        """The bytes of the file, line by line."""
        yield self._header(uncut(self._path[0], self._source))
        for entry in (*self._path[1:], *self._notes):
            yield self._copied(entry, uncut(entry, self._source))

    def _header(self, header: EntryDict) -> bytes:
        fields = {
            "format": header.get("format"),
            "library": header.get("library"),
            "ledgerId": self._ledger_id,
            **self._owner.fields(),
            "created": timestamp(),
            **{key: header[key] for key in _KEPT_OF_HEADER if key in header},
            "forkedFrom": {"session": header.get("session"), "entry": self._path[-1].id},
        }
        return self._line("header", new_id(), fields, 0)

    def _copied(self, entry: Entry, data: EntryDict) -> bytes:
        fields = {key: value for key, value in data.items() if key not in _ENVELOPE}
        if entry.kind == "binding":
            fields = put_texts(fields, self._texts)
        for key in ("prevBoundary", "boundary"):
            if isinstance(fields.get(key), dict):
                fields[key] = self._where(fields[key].get("offset"))
        if isinstance(fields.get("keys"), dict):
            fields["keys"] = self._moved_keys(fields["keys"])
        # Within the envelope's order, but as it was then.
        fields = {"timestamp": data.get("timestamp"), **fields, "inherited": True}
        return self._line(entry.kind, entry.id, fields, entry.offset, data.get("turnId"), data.get("requestId"))

    def anchor(self, boundary: Position, deleted: Sequence[str]) -> bytes:
        """The anchor of the file, once all lines are written; `boundary` is the position in the source."""
        return encode_anchor(
            Anchor(
                ledger_id=self._ledger_id,
                session=self._owner.session,
                count=self._count,
                bytes=self._size,
                hash=str(self._hash),
                leaf=self._leaf,
                boundary=self._moved[boundary.offset],
                deleted=tuple(deleted),
            ),
            self._owner.anchor_key,
        )

    def _line(
        self,
        kind: str,
        entry_id: str,
        fields: Mapping[str, Any],
        offset: int,
        turn: str | None = None,
        request: str | None = None,
    ) -> bytes:
        line = make_line(
            kind,
            entry_id,
            fields,
            parent=self._leaf or None,
            seq=self._count + 1,
            prev_hash=self._hash,
            turn=turn,
            request=request,
        )
        raw = written_again(line)
        self._moved[offset] = Position(self._count + 1, self._size)
        self._count, self._size = self._count + 1, self._size + len(raw) + 1
        self._hash, self._leaf = digest(raw), entry_id
        return raw + b"\n"

    def _where(self, offset: object) -> dict[str, int] | None:
        moved = self._moved.get(offset) if isinstance(offset, int) else None
        return {"seq": moved.seq, "offset": moved.offset} if moved else None

    def _moved_keys(self, keys: Mapping[str, Any]) -> dict[str, int]:
        return {key: self._moved[offset].offset for key, offset in keys.items() if offset in self._moved}
