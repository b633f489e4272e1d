"""What can be asked of a session's files: without a lock, at any time, also while a call writes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from harness.filesystem import pool
from harness.ids import check_id
from harness.messages import MessageDict, Msg
from harness.sessions.catalog.branching import BranchInfo, Notes, read_branches, read_notes
from harness.sessions.checking.strict import gone_is_not_found
from harness.sessions.ledger.answers import Answered, read_answered
from harness.sessions.ledger.following import follow
from harness.sessions.ledger.stepped_over import stepped_over
from harness.sessions.ledger.store import Durability, LedgerStore
from harness.sessions.lines import blobs
from harness.sessions.lines.entries import Damage, Entry, EntryDict, Position
from harness.sessions.lines.layout import Owner, SessionFiles
from harness.sessions.lines.message_ids import message_ids
from harness.sessions.selection.context_at import ContextAt, read_context
from harness.sessions.view.projection import View

__all__ = ["SessionReader"]

P = ParamSpec("P")
T = TypeVar("T")
_Bytes = bytes  # within the class `bytes` is a property


class SessionReader:
    """The reading half of `SessionTree`."""

    def __init__(
        self,
        folder: Path,
        session_id: str,
        *,
        agent: str,
        namespace: tuple[str, ...],
        durability: Durability,
        anchor_key: bytes | None = None,
    ) -> None:
        check_id("session_id", session_id)
        self.session_id = session_id
        self.files = SessionFiles.of(folder, session_id)
        self._store = LedgerStore(self.files, Owner(session_id, agent, tuple(namespace), anchor_key), durability)

    @property
    def header(self) -> EntryDict | None:
        """The first line, or None if there is no ledger yet or the line is damaged."""
        return self._store.loaded.header

    @property
    def ledger_id(self) -> str | None:
        """The ledger's own id; another one after the session was deleted and begun anew. None before the first line."""
        return self._store.loaded.ledger_id

    @property
    def anchored(self) -> str | None:
        """The ledger whose end the anchor names, also where that ledger is lost; None where it names no lines."""
        anchor = self._store.loaded.anchor
        return anchor.ledger_id if anchor and anchor.count else None

    @property
    def deleted(self) -> tuple[str, ...]:
        """The ids of ledgers of this session that were deleted and must not come back from a snapshot."""
        return self._store.loaded.deleted

    @property
    def leaf(self) -> str | None:
        """The entry id of the newest line."""
        return self._store.leaf

    @property
    def count(self) -> int:
        """Lines written, damaged ones counted; the `seq` of the newest."""
        return self._store.ledger.written.count

    @property
    def bytes(self) -> int:
        """Bytes written."""
        return self._store.ledger.written.size

    @property
    def last_hash(self) -> str | None:
        """The SHA-256 of the newest line written, as a snapshot names it."""
        return self._store.ledger.written.hash

    @property
    def planned_end(self) -> tuple[int, str | None]:
        """`count` and `last_hash` as they will be when the lines that were added are written too."""
        return self._store.ledger.planned.count, self._store.ledger.planned.hash

    @property
    def boundary(self) -> Position:
        """The first line a reader must read; see the module."""
        return self._store.conversation.boundary

    @property
    def damage(self) -> list[Damage]:
        """What the last reading had to step over."""
        return self._store.loaded.damage

    def stepped_over(self) -> str | None:
        """What the last reading had to do without and the ledger does not note, in a sentence. Blocking."""
        store = self._store
        told = store.noted or bool(store.owner.anchor_key)  # with a key, `unproved` says what is wrong with the end
        return stepped_over(self.session_id, store.loaded, store.files.ledger, noted=told)

    def unproved(self) -> list[str]:
        """With an anchor key, what a writer is about to take in that was not signed with it, in sentences."""
        return self._store.unproved()

    def unanchored(self) -> str | None:
        """That the newest commit has no anchor, and why, in a sentence; None where it has one."""
        if (reason := self._store.unanchored) is None:
            return None
        return (
            f"session {self.session_id!r}: all is stored, but the anchor of its ledger could not be written ({reason});"
            " until a call can, nobody can prove that no line is missing at the end"
        )

    @property
    def turn(self) -> str | None:
        """The id of the newest turn since the boundary."""
        return self._store.conversation.turn

    @property
    def locked(self) -> bool:
        """Whether this object is the session's writer now."""
        return self._store.locked

    async def load(self) -> View:
        """The conversation as the model sees it, as it is on disk now; empty for an unknown session.

        Costs what the view costs, not the history; nothing if no one wrote since the last time.
        Raises `SessionDamaged` if the files belong to someone else.
        """
        await self._store.refresh()
        return self.view()

    def view(self) -> View:
        """The conversation as it is in memory, lines not yet committed included."""
        return self._store.conversation.view()

    def path(self) -> Sequence[Entry]:
        """The lines of the active path since the boundary, those not yet committed included. Not to be changed."""
        return self._store.conversation.path

    def states(self) -> dict[str, Any]:
        """The newest logged value of each state module, by its name."""
        return self._store.conversation.states()

    def answered(self, idempotency_key: str) -> Answered | None:
        """The prompt that was sent with this key since the boundary, and its turn; None if none was."""
        return self._store.conversation.answered(idempotency_key)

    async def context_at(self, entry_id: str) -> ContextAt:
        """What the model saw at the request that this line begins or belongs to, worked out from the ledger.

        Reads the ledger up to it. Raises `ConfigError` where there is no such request, and `SessionNotFound`.
        """
        return await pool.run(self._asked, read_context, entry_id)

    async def branches(self) -> list[BranchInfo]:
        """The ways the conversation went, oldest first; reads the whole ledger. Raises `SessionNotFound`."""
        return await pool.run(self._asked, read_branches)

    async def notes(self) -> Notes:
        """The labels and the title that people gave; reads the whole ledger. Raises `SessionNotFound`."""
        return await pool.run(self._asked, read_notes)

    async def find_answered(self, idempotency_key: str) -> Answered | None:
        """As `answered`, and further back: a boundary knows the newest 1 024 keys before it."""
        if found := self.answered(idempotency_key):
            return found
        offset = self._store.conversation.asked_at(idempotency_key)
        return None if offset is None else await pool.run(read_answered, self.files, offset, idempotency_key)

    def entry_id(self, message_id: str) -> str | None:
        """The entry that holds a message, if one does since the boundary."""
        entry = self._store.conversation.entry_of(message_id)
        return entry.id if entry else None

    def message_line(self, message_id: str) -> Entry | None:
        """The line that holds a message, if one does since the boundary; as it was logged, never to be changed."""
        return self._store.conversation.entry_of(message_id)

    async def message_ids(self) -> frozenset[str]:
        """The ids of the messages on all branches, those before the boundary included; reads the whole ledger."""
        return await pool.run(message_ids, self.files)

    def messages(self) -> list[MessageDict]:
        """The messages of `view`."""
        return self.view().messages

    def knows(self, seq: int, line_hash: str) -> bool:
        """Whether the line of that number is the one with that hash; what lies before the boundary is believed."""
        return self._store.knows(seq, line_hash)

    def _asked(self, read: Callable[Concatenate[SessionFiles, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        with gone_is_not_found(self.files, self.session_id):
            return read(self.files, *args, **kwargs)

    def follow(self, after: int = 0, *, poll: float = 0.2) -> AsyncIterator[Entry]:
        """The lines behind line `after`, then those that are written from now on, as they get whole.

        Without a lock, whoever writes; looks every `poll` seconds. Ends when the ledger is removed. Raises
        `SessionDamaged` if it is cut or replaced meanwhile.
        """
        return follow(self.files, after, poll)

    async def look_for_media(self, messages: Iterable[MessageDict | Msg]) -> list[str]:
        """The SHA-256 of media that these messages name and do not bring, and that are stored nowhere.

        A line gets a text in the place of each. `add_message` looks for itself where nobody has asked this while the
        session is locked, and blocks the event loop for so long.
        """
        return await self._store.media.look_for(messages, self._store.blobs)

    async def load_media(self, sha256: str) -> _Bytes:
        """The bytes behind a media block. Raises `FileMissing`, and `SessionDamaged` if they were changed."""
        if (waiting := self._store.blobs.get(sha256)) is not None:
            return waiting
        return await pool.run(blobs.read_blob, self.files.blobs, sha256)
