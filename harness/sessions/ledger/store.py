"""The files of one session held together: lock, read, plan lines, commit, release.

Nothing is opened or locked before it is needed, and nothing stays so after `release`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Literal, ParamSpec, TypeVar

from harness.errors import ConfigError, FileMissing, PersistenceError
from harness.filesystem import disk, pool
from harness.filesystem.locks import FileLock
from harness.ids import new_id, timestamp
from harness.sessions.ledger.appending import Ledger
from harness.sessions.ledger.committing import BLOB_LOCK_SECONDS, Commit, ContextUpdate, blob_lock
from harness.sessions.ledger.conversation import Conversation
from harness.sessions.ledger.deleting import finish_removal
from harness.sessions.ledger.loading import load_session
from harness.sessions.ledger.reading import Loaded, damage_to_note, read_session
from harness.sessions.lines.anchor import Anchor, encode_anchor, new_ledger_id
from harness.sessions.lines.blobs import Blobs
from harness.sessions.lines.contextfile import ContextFile, context_header
from harness.sessions.lines.entries import Entry
from harness.sessions.lines.formats import FORMAT
from harness.sessions.lines.layout import Owner, SessionFiles
from harness.sessions.lines.lost_media import NamedMedia
from harness.text import loads

P = ParamSpec("P")
T = TypeVar("T")

__all__ = ["Durability", "LedgerStore"]

Durability = Literal["commit", "every", "none"]
"""When lines are synced: at each commit that asks for it, at every commit, or never."""

_log = logging.getLogger("harness.sessions")
_LIBRARY = "dualtrack-harness"


class LedgerStore:
    """One writer's or reader's hold on the files of a session, and the conversation in them."""

    def __init__(self, files: SessionFiles, owner: Owner, durability: Durability) -> None:
        self.files = files
        self.owner = owner
        self.durability: Durability = durability
        self.conversation = Conversation()
        self.loaded = Loaded()
        self.ledger = Ledger(files.ledger)
        self.leaf: str | None = None
        self.header_fields: dict[str, Any] = {}
        self.policy = "compaction"
        self.blobs: Blobs = {}
        self.media = NamedMedia(files.blobs)
        self.along: Callable[[], None] | None = None
        self.unanchored: str | None = None
        self._context = ContextFile(files.context)
        self.writer_lock = FileLock(files.lock, in_folder=True, barrier=files.barrier)
        self._mark: disk.FileMark | None = None
        self._fresh = False
        self._committing = asyncio.Lock()
        self._held_back: list[tuple[Entry, bytes]] = []
        self._open_requests: set[str] = set()
        self._compacted = False
        self._failed = False
        self._noted = False
        self._taken_back = False
        self._detached: PersistenceError | None = None

    @property
    def locked(self) -> bool:
        """Whether this is the writer now."""
        return self.writer_lock.held or self._detached is not None

    async def detach(self, reason: PersistenceError) -> None:
        """See what can be read, and take lines that every commit will refuse for this reason."""
        self._committing, self._detached = asyncio.Lock(), reason
        await self._refresh(disk.mark(self.files.ledger))

    async def lock(self, timeout: float) -> None:
        """Become the writer and see what others wrote. Raises `SessionBusy`, `SessionDamaged`."""
        await self._acquire(timeout)
        try:
            found = disk.mark(self.files.ledger)
            if found is None and disk.mark(self.files.removed) is not None:
                await finish_removal(self.writer_lock, self.files, self.owner.session)
            # A lock of asyncio belongs to one loop; calls of one session may come from several.
            self._committing = asyncio.Lock()
            await self._refresh(found)
        except BaseException:
            self.writer_lock.release()
            raise

    async def _acquire(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        to_be_made = False
        while True:
            try:
                if to_be_made:
                    # Whoever makes a folder makes its name durable: a ledger in it is no safer than that.
                    await pool.run(disk.make_folder, self.files.folder, sync=self.durability != "none")
                return await self.writer_lock.acquire(max(0.0, deadline - time.monotonic()))
            except FileMissing:
                # It is not there yet, or went away with the whole user, as it can until the lock is had.
                if to_be_made and time.monotonic() >= deadline:
                    raise
                to_be_made = True

    async def release(self) -> None:
        """Write and sync what is left, then let go. Raises `PersistenceError` once for lines that are lost."""
        if self._detached is not None:
            self._detached = None
            self._forget()
        if not self.writer_lock.held:
            return
        if self._taken_back:
            self._let_go()
            return
        reported = self._failed
        try:
            if self.ledger.pending or self.ledger.unsynced:
                await self.commit(sync=True)
        except PersistenceError as error:
            if not reported:
                raise
            _log.error("lines of %s could not be written and are lost: %s", self.files.ledger, error)
        finally:
            self._let_go()

    async def work(self, what: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Blocking work that needs the lock, which stays for so long even where the event loop is closed meanwhile."""
        return await pool.run(partial(self.writer_lock.work, what, *args, **kwargs))

    def take_back(self) -> None:
        """Drop what was added and not written, for whoever tells by an error that it is not done; then release."""
        self._taken_back = True

    async def refresh(self) -> None:
        """See what others wrote, without a lock; the writer itself knows already."""
        if not self.locked:
            await self._refresh(disk.mark(self.files.ledger))

    def knows(self, seq: int, line_hash: str) -> bool:
        """Whether a line is the one with that hash, as far as the lines in memory tell."""
        end = self.ledger.written
        if seq >= end.count:
            return seq == end.count and line_hash == end.hash
        path = self.conversation.path
        follower = next((entry for entry in reversed(path) if entry.seq <= seq + 1), None)
        # Each line holds the hash of the one before it; where that one is not in memory there is no doubt.
        return follower is None or follower.seq != seq + 1 or follower.data.get("prevHash") == line_hash

    def restart(self, earlier: Loaded) -> None:
        """Go on from an earlier state of the conversation, all of whose lines are written."""
        self._require_lock()
        self.conversation.reset(earlier)
        self.leaf = earlier.leaf
        self._held_back.clear()
        self._compacted = True  # the context file is no beginning of what it must be now

    def plan(
        self,
        kind: str,
        fields: Mapping[str, Any],
        *,
        entry_id: str | None = None,
        turn: str | None = None,
        request: str | None = None,
        parent: str | None = None,
        whole: Mapping[str, Any] | None = None,
    ) -> Entry:
        """Add a line to the conversation and to those to be committed.

        `parent` puts it on another branch, not into the conversation. `whole` is what the fields
        say with their files put back in; it is kept, and must be nobody else's.
        """
        if not self.writer_lock.held:
            self._require_lock()
        if not self.ledger.planned.count:
            self._add_header()
        if self.loaded.damage:
            self._note_damage()
        entry, raw = self.ledger.plan(
            kind, entry_id or new_id(), fields, parent=parent or self.leaf, turn=turn, request=request, whole=whole
        )
        if parent is None:
            self._follow(entry, raw)
        return entry

    async def commit(self, *, sync: bool) -> None:
        """Write everything planned, in one hop to a worker. Raises `PersistenceError`, with nothing written."""
        self._require_lock()
        along, self.along = self.along, None
        async with self._committing:
            if self.ledger.pending or (sync and self.ledger.unsynced):
                await self._write(sync or self.durability == "every", along)

    async def rebuild(self, first: Callable[[], object] | None = None) -> None:
        """Make context file and anchor anew from all of the ledger; before, do `first` in a worker.

        Raises `PersistenceError`.
        """
        self._require_lock()
        await self.commit(sync=False)
        self.restart(await self.work(partial(read_session, self.files, self.owner, anchored=False)))
        if first:
            await self.work(first)
        self._note_damage()
        if not (end := self.ledger.planned).ended:
            # The anchor names no unfinished line; a line behind it ends it.
            text = "the last line had no end; it stays a line of its own"
            self._note([{"kind": "torn", "line": end.count, "byte": end.size, "text": text}])
        async with self._committing:
            self._compacted = True  # so the whole context file is written
            await self._write(True)

    async def _write(self, synced: bool, along: Callable[[], None] | None = None) -> None:
        if self._detached is not None:
            raise PersistenceError(str(self._detached))
        held, boundary_seen = len(self._held_back), self._compacted
        job = self._job(synced)
        job.along = along
        try:
            await self._done(job)
        except PersistenceError:
            self._failed = True
            raise
        finally:
            # Also when the caller was cancelled: the work itself went on to its end.
            if job.written:
                self._advance(job, held, boundary_seen)

    def _done(self, job: Commit) -> Awaitable[None]:
        if not job.blobs:
            return pool.run(self.writer_lock.work, job.run)
        contents = blob_lock(job.files.blobs, sync=job.durable)
        return contents.run(BLOB_LOCK_SECONDS, self.writer_lock.work, job.run)

    def _job(self, synced: bool) -> Commit:
        end = self.ledger.planned
        lines, durable = list(self.ledger.pending), self.durability != "none"
        job = Commit(self.files, self.ledger, self._context, lines, end, synced and durable, durable, dict(self.blobs))
        job.update = self._context_update()
        # Where nothing is ever synced, the anchor names what was written.
        job.anchor = self._anchor() if synced else None
        return job

    def _advance(self, job: Commit, held: int, boundary_seen: bool) -> None:
        self._failed = False
        if job.anchor is not None:
            self.unanchored = job.unanchored
        self.ledger.advance(len(job.lines), job.end, synced=job.anchor is not None)
        for sha256 in job.blobs:
            self.blobs.pop(sha256, None)
        if job.update:
            del self._held_back[:held]
            self._compacted = self._compacted and not boundary_seen

    def _context_update(self) -> ContextUpdate | None:
        """What is new for the context file; nothing while it is open whether a model's output counts."""
        if self._open_requests or not (self._held_back or self._compacted):
            return None
        lines = [raw for entry, raw in self._held_back if self.conversation.is_settled(entry)]
        if not lines and not self._compacted:
            return None
        end = self.ledger.planned
        header = partial(context_header, str(self.loaded.ledger_id), end.count, str(end.hash), self.policy)
        # More lines may be added while the worker looks at these; a path only grows, or is another list.
        path, count = self.conversation.path, len(self.conversation.path)
        return ContextUpdate(header, lines, lambda: self.conversation.settled(path[:count]), self._compacted)

    def _anchor(self) -> bytes:
        end = self.ledger.planned
        return encode_anchor(
            Anchor(
                ledger_id=str(self.loaded.ledger_id),
                session=self.owner.session,
                count=end.count,
                bytes=end.size,
                hash=str(end.hash),
                leaf=str(self.leaf),
                boundary=self.conversation.boundary,
                deleted=self.loaded.deleted,
            ),
            self.owner.anchor_key,
        )

    def _add_header(self) -> None:
        """The first line of an empty file says whose it is; no other file ever gets one."""
        ledger_id = new_ledger_id(self.loaded.deleted)
        known = {key: value for key, value in self.header_fields.items() if value is not None}
        fields = {
            "format": FORMAT,
            "library": _LIBRARY,
            "ledgerId": ledger_id,
            **self.owner.fields(),
            "created": timestamp(),
            **known,
        }
        entry, raw = self.ledger.plan("header", new_id(), fields, parent=None)
        self.loaded.header, self.loaded.ledger_id = loads(raw), ledger_id
        self._follow(entry, raw)

    @property
    def noted(self) -> bool:
        """Whether a line says what was wrong with the end."""
        return self._noted

    def unproved(self) -> list[str]:
        """What the key does not vouch for and is taken in all the same, in sentences; nothing once it was noted."""
        if not self.owner.anchor_key or self._noted:
            return []
        return [f"session {self.owner.session!r}: {item['text']}" for item in damage_to_note(self.loaded)]

    def _note_damage(self) -> None:
        """Before a new anchor makes an end look right that was not, a line says so."""
        if self._noted or not self.loaded.damage or not (found := damage_to_note(self.loaded)):
            return
        self._noted = True
        self._note(found)

    def _note(self, found: list[dict[str, Any]]) -> None:
        fields = {"kind": "damage", "data": {"found": found}}
        self._follow(*self.ledger.plan("event", new_id(), fields, parent=self.leaf))

    def _follow(self, entry: Entry, raw: bytes) -> None:
        self.leaf, kind = entry.id, entry.kind
        self.conversation.append(entry)
        if kind == "message":
            self._held_back.append((entry, raw))
        elif kind == "request_begin":
            self._open_requests.add(entry.id)
        elif kind == "request_end":
            self._open_requests.discard(str(entry.data.get("requestId")))
        elif kind == "compaction":
            self._held_back.append((entry, raw))
            self._compacted = self._compacted or bool(entry.data.get("boundary"))

    def _require_lock(self) -> None:
        if not self.writer_lock.held and self._detached is None:
            raise ConfigError(f"{self.files.ledger} can be written only under its lock; use tree.writing()")

    async def _refresh(self, found: disk.FileMark | None) -> None:
        """Read the session unless its ledger, as it was `found`, is the one in memory."""
        locked = self.writer_lock.held
        if self._fresh and self._mark == found:
            return
        loaded, conversation = await pool.run(load_session, self.files, self.owner)
        if locked == self.writer_lock.held:  # otherwise a writer has come, or gone, and knows better
            self._take(loaded, conversation)

    def _take(self, loaded: Loaded, conversation: Conversation) -> None:
        self._forget()
        self.loaded, self.conversation = loaded, conversation
        self._noted = False
        # An anchor is written after a sync, never before.
        self.ledger.reset(loaded.tail, synced=loaded.anchor is not None and loaded.anchor.count > 0)
        self.leaf = loaded.leaf
        self._mark = loaded.mark
        self._fresh = True

    def _forget(self) -> None:
        self.ledger.close()
        self._context.distrust()
        self._held_back.clear()
        self._open_requests.clear()
        self.blobs.clear()
        self.media.forget()
        self.unanchored = None
        self._compacted = self._failed = self._fresh = self._taken_back = False

    def _let_go(self) -> None:
        if self.ledger.pending or self._taken_back:
            self._forget()  # what is in memory is not what is on disk
        self._open_requests.clear()
        self.media.forget()
        self._mark = self.ledger.mark or self._mark
        self.ledger.close()
        self.writer_lock.release()
