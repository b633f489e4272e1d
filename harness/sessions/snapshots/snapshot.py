"""Track 1 of a call: the snapshot, written so that a growing conversation costs what it grew by.

`memory` names the ledger position the snapshot was taken at, and whose it is: `{ledgerId, seq, hash, count, owner}`.
`memory_messages` is the list of messages the model would see. Each state module has its own value.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.errors import ListMoved
from harness.messages import MessageDict
from harness.sessions.lines.anchor import is_deleted
from harness.sessions.lines.digest import message_digest
from harness.sessions.lines.entries import digest
from harness.sessions.lines.layout import Owner
from harness.sessions.lines.shapes import is_message
from harness.sessions.snapshots.asking import AskedStore, asked
from harness.sessions.snapshots.place import Place
from harness.sessions.snapshots.state_files import FileSession
from harness.sessions.snapshots.workspace_session import WorkspaceSession
from harness.sessions.tree.reconcile import LedgerSide
from harness.sessions.tree.session_tree import SessionTree
from harness.state import Session, SessionKey, State
from harness.text import dumps

__all__ = ["MEMORY", "MESSAGES", "Snapshot", "SnapshotWriter", "is_anothers", "load_snapshot", "owner_mark"]

_log = logging.getLogger("harness.sessions")
MEMORY = "memory"
MESSAGES = "memory_messages"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a store holds of a conversation; `position` is None where it does not say."""

    position: State | None
    messages: tuple[MessageDict, ...]


async def load_snapshot(session: Session, key: SessionKey) -> Snapshot | None:
    """The snapshot in a store, or None if it has none. Raises `PersistenceError` where the store does not answer."""
    store = AskedStore(session, key)
    position = await store.get(MEMORY)
    messages = await store.get_list(MESSAGES)
    if position is None and not messages:
        return None
    whole = tuple(message for message in messages if is_message(message))
    if len(whole) < len(messages):
        _log.warning(
            "a snapshot of session %r has %d messages that are none, and was read without them",
            key.session,
            len(messages) - len(whole),
        )
    return Snapshot(position, whole)


def owner_mark(key: SessionKey) -> str:
    """What a snapshot says of whose it is: of one length for all, so that its block has room for it."""
    return digest(dumps(Owner(key.session, key.agent, key.namespace).fields()))


def is_anothers(position: State | None, key: SessionKey, ledger: LedgerSide | None = None) -> bool:
    """Whether a snapshot that lies under this key was put there from under another.

    Those of older versions do not say whose they are: then it must be of this ledger, or of one that was deleted.
    """
    owner, named = (position or {}).get("owner"), (position or {}).get("ledgerId")
    if owner is not None:
        return bool(owner != owner_mark(key))
    own = {ledger.ledger_id, ledger.anchored} - {None} if ledger else set()
    if ledger is None or not own or not isinstance(named, str):
        return False
    return named not in own and not is_deleted(named, ledger.deleted)


class SnapshotWriter:
    """Writes the snapshots of one session. It remembers what it stored last, to append what is new.

    A writer belongs to one session and is used by one call at a time. What it remembers is checked
    by the store (`expect_count`), so a store that another process wrote to is noticed.
    """

    def __init__(self) -> None:
        self._place: tuple[Session, SessionKey] | None = None
        self._owner = ""
        self._guarded: Place | None = None
        """Where its files are, if the ledger's lock keeps all others from there."""
        self._messages: list[MessageDict] = []
        self._position: State | None = None
        self._values: dict[str, State] = {}

    def knows(self, session: Session, key: SessionKey, position: State | None) -> bool:
        """Whether this writer stored the snapshot that is there now."""
        return position is not None and self._place == (session, key) and self._position == position

    def is_current(self, session: Session, key: SessionKey, tree: SessionTree) -> bool:
        """Whether this writer stored the snapshot of the ledger as it is now."""
        return self._position is not None and self.knows(session, key, self._at(tree, self._position["count"]))

    def forget(self) -> None:
        """Look at the store before the next snapshot is written: somebody else wrote to it."""
        self._place = self._position = None

    async def save(self, session: Session, key: SessionKey, tree: SessionTree, values: Mapping[str, State]) -> None:
        """Bring the store up to the ledger, unless this writer did so already. Raises `PersistenceError`."""
        if tree.ledger_id is None:
            return
        if self._place != (session, key):
            self._values, self._owner = {}, owner_mark(key)
        changed = self._changed(tree, values)
        if not changed and self.is_current(session, key, tree):
            return
        messages = tree.view().messages
        position = self._at(tree, len(messages))
        await asked(
            session, f"session {key.session!r}", lambda: self._save_all(session, key, messages, position, changed),
            "the ledger has what was to be stored, and the next call stores it",
        )  # fmt: skip
        self._guarded = None
        if isinstance(session, WorkspaceSession) and session.is_beside(key, tree.files):
            self._guarded = session.known(key)
        self._note(position, changed)

    def save_with_commit(
        self, session: Session, key: SessionKey, tree: SessionTree, values: Mapping[str, State]
    ) -> None:
        """Let the ledger's next commit do what `save` would do after it, in the same hop to a worker.

        Where that is not possible, or comes to nothing, `save` is still to do.
        """
        if tree.ledger_id is None or self._place != (session, key) or not isinstance(session, FileSession):
            return
        messages, changed = tree.view().messages, self._changed(tree, values)
        seq, last_hash = tree.planned_end
        position = _position(tree.ledger_id, seq, last_hash, len(messages), self._owner)
        there = len(self._messages) if self._grown(messages) else None
        added = messages[there or 0 :]
        alone = self._guarded if tree.locked else None
        write = session.together(key, changed, MESSAGES, added, there, {MEMORY: position}, alone=alone)

        def put() -> None:
            self._place = None
            if write():
                self._place, self._messages = (session, key), messages
                self._note(position, changed)

        tree.take_along(put)

    def _at(self, tree: SessionTree, count: int) -> State:
        return _position(tree.ledger_id, tree.count, tree.last_hash, count, self._owner)

    def _changed(self, tree: SessionTree, values: Mapping[str, State]) -> dict[str, State]:
        stored = {name: tree.redacted_state(name, value) for name, value in values.items()}
        return {name: value for name, value in stored.items() if self._values.get(name) != value}

    def _note(self, position: State, changed: Mapping[str, State]) -> None:
        self._position, self._values = position, {**self._values, **changed}

    async def _save_all(
        self,
        session: Session,
        key: SessionKey,
        messages: Sequence[MessageDict],
        position: State,
        values: Mapping[str, State],
    ) -> None:
        there = await self._there(session, key, messages)
        self._place = None
        try:
            await _put(session, key, position, values, messages[there or 0 :], there)
        except ListMoved:
            await _put(session, key, position, values, messages, None)
        self._place, self._messages = (session, key), [*messages]

    async def _there(self, session: Session, key: SessionKey, messages: Sequence[MessageDict]) -> int | None:
        """How many of the messages the store has already; None where it has others."""
        if self._place == (session, key):
            return len(self._messages) if self._grown(messages) else None
        stored = await session.get_list(key, MESSAGES)
        same = [message_digest(message) for message in stored] == [*map(message_digest, messages[: len(stored)])]
        return len(stored) if same else None

    def _grown(self, messages: Sequence[MessageDict]) -> bool:
        """Whether these are the messages stored last, and perhaps more. Lists look first whether it is the same dict:
        this is cheap as long as message dicts, once handed out, are replaced and not changed in place.
        """
        return messages[: len(self._messages)] == self._messages


async def _put(
    session: Session,
    key: SessionKey,
    position: State,
    values: Mapping[str, State],
    items: Sequence[State],
    expect_count: int | None,
) -> None:
    """Everything of one snapshot. The ledger says which part is behind, should a crash come between."""
    if isinstance(session, FileSession):
        await session.save_together(key, values, MESSAGES, items, expect_count, {MEMORY: position})
        return
    work = [session.save(key, name, value) for name, value in {MEMORY: position, **values}.items()]
    if expect_count is None:
        work.append(session.replace(key, MESSAGES, items))
    elif items:
        work.append(session.append(key, MESSAGES, items, expect_count))
    # All are waited for: none may write when the session is another call's already.
    failed = [error for error in await asyncio.gather(*work, return_exceptions=True) if error is not None]
    if failed:
        raise failed[0]


def _position(ledger_id: str | None, seq: int, last_hash: str | None, count: int, owner: str) -> State:
    return {"ledgerId": ledger_id, "seq": seq, "hash": last_hash, "count": count, "owner": owner}
