"""Track 2 of one session: the ledger, the files around it, and the conversation they hold.

The ledger `<id>.log.jsonl` is the truth: everything, append only. The context file and the anchor
are copies that make resuming cheap.

The boundary in the anchor, and `prevBoundary` in a compaction, are the place that `boundary_of` gives.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson

from harness.errors import PersistenceError
from harness.filesystem import pool
from harness.filesystem.lowlevel import temporary_name
from harness.ids import new_id
from harness.messages import MessageDict, Msg
from harness.sessions.catalog.branching import find_branch
from harness.sessions.ledger.store import Durability
from harness.sessions.lines import blobs
from harness.sessions.lines.content import refuse_entry
from harness.sessions.lines.entries import START, digest, own_copy
from harness.sessions.lines.incoming import media_bytes, media_named, plain_message, storable, storable_message
from harness.sessions.lines.redact import Redactor, redacted
from harness.sessions.moving.importing import settle
from harness.sessions.selection.selecting import Selected, split_shown
from harness.sessions.tree.adopting import adopt
from harness.sessions.tree.compacting import boundary_fields
from harness.sessions.tree.reader import SessionReader
from harness.sessions.tree.reconcile import Decision
from harness.sessions.tree.requestlog import RequestLog
from harness.sessions.view.cards import turn_card
from harness.sessions.view.turns import message_of, opens_turn
from harness.text import dumps, loads

__all__ = ["SessionTree"]

_Bytes = bytes  # within the class `bytes` is a property


class SessionTree(SessionReader):
    """One session's ledger and the conversation in it.

    folder      the folder `sessions/` of a tenant and agent
    session_id  the conversation
    agent       the agent's id; with `namespace` checked against the ledger's first line
    durability  `commit`: a sync at each `commit(sync=True)`; `every`: at each commit; `none`: never
    anchor_key  signs the ledger's anchor, and tells on opening whether it was signed so; see `verify`
    redact      applied to messages and to the fields of entries before they are logged; the model sees what it returns

    Making one touches no disk. Reading needs no lock; writing needs `writing()`, or `lock` and
    `release`, by one call at a time. Lines are added in memory and go to disk together, with `commit`.
    """

    def __init__(
        self,
        folder: Path,
        session_id: str,
        *,
        agent: str,
        namespace: tuple[str, ...],
        durability: Durability = "commit",
        redact: Redactor | None = None,
        anchor_key: bytes | None = None,
    ) -> None:
        super().__init__(
            folder, session_id, agent=agent, namespace=namespace, durability=durability, anchor_key=anchor_key
        )
        self._redact = redact
        self._requests = RequestLog(self._store)

    async def lock(self, timeout: float = 30) -> None:
        """Become the session's writer, waiting up to `timeout` seconds, and see what others wrote.

        Raises `SessionBusy` when another process or call keeps it, `SessionDamaged` as `load`.
        """
        await self._store.lock(timeout)

    async def detach(self, reason: PersistenceError) -> None:
        """Go on in memory where the disk refuses even the lock: what can be read is seen, every commit raises."""
        await self._store.detach(reason)

    async def release(self) -> None:
        """Commit what is left, sync what is unsynced, and let others write; fine if not locked."""
        await self._store.release()

    def take_back(self) -> None:
        """Drop what was added and not committed, before `release`: an error has told that it is not done."""
        self._store.take_back()

    @asynccontextmanager
    async def writing(self, timeout: float = 30) -> AsyncIterator[SessionTree]:
        """Lock, and release on every way out; where the disk refused, nothing is written that was not before."""
        await self.lock(timeout)
        try:
            yield self
        except PersistenceError:
            self.take_back()
            raise
        finally:
            await self.release()

    def describe(
        self,
        *,
        provider: str | None = None,
        model: str | None = None,
        context_window: int | None = None,
        workspace: str | None = None,
        permission_mode: str | None = None,
        parent: Mapping[str, Any] | None = None,
        imported_from: Mapping[str, Any] | None = None,
        policy: str = "compaction",
    ) -> None:
        """Say what the header of a new ledger records, and the policy in the context file. Writes nothing."""
        self._store.policy = policy
        self._store.header_fields = {
            "provider": provider,
            "model": model,
            "contextWindow": context_window,
            "workspace": workspace,
            "permissionMode": permission_mode,
            "parent": parent,
            "importedFrom": imported_from,
        }

    def add_message(
        self,
        message: MessageDict | Msg,
        *,
        via: str,
        turn: str | None = None,
        request: str | None = None,
        partial: bool = False,
        idempotency_key: str | None = None,
        media: Mapping[str, _Bytes] | None = None,
    ) -> str:
        """Log a message and return its entry id; one that is there already is not logged again.

        via     user, model, tool, hook, steer, repair or summary: who put it there
        turn    the id of its turn; the newest one if left out. A directive opens its own
        media   bytes of media blocks by SHA-256; a `Msg` brings those it carries itself; see `look_for_media`
        """
        data, raw = plain_message(message)
        known = self._store.conversation.entry_of(data["id"], partial)
        if known is not None:
            return known.id
        raw = raw if self._redact is None else None  # a redactor may change what it is the JSON of
        held = media_bytes(message, media)
        data, raw = self._store.media.without_lost(data, raw, {*held, *self._store.blobs})
        entry_id = self._log_message(data, via, turn, request, partial, idempotency_key, raw=raw)
        if held:
            self._store.blobs.update(media_named(held, self._store.conversation.entry_of(data["id"], partial)))
        return entry_id

    def add(self, kind: str, fields: Mapping[str, Any], *, turn: str | None = None, request: str | None = None) -> str:
        """Log an entry of any other type and return its id; `fields`, in order, are none that every line may have."""
        refuse_entry(kind, fields)
        whole, raw = storable({key: value for key, value in self.redacted(fields, kind).items() if value is not None})
        small, moved = blobs.fit_fields(kind, whole, raw)
        self._store.blobs.update(moved)
        return self._store.plan(kind, small, turn=turn, request=request, whole=loads(raw) if moved else None).id

    def keep(self, data: _Bytes) -> str:
        """Store a content with the next commit, and return its SHA-256; a line that names it must be added too.

        A line that `add` makes names it as its field `media`: `{"sha256":…,"bytes":…}`. Deeper in a line nothing names.
        """
        sha256 = digest(data)
        self._store.blobs[sha256] = data
        return sha256

    def redacted(self, value: Mapping[str, Any], kind: str = "message") -> Mapping[str, Any]:
        """What would be stored of a message, or of the fields of an entry of this kind; see `redact.redacted`."""
        return value if self._redact is None else redacted(self._redact, kind, value)

    def redacted_state(self, module: str, value: Mapping[str, Any]) -> dict[str, Any]:
        """What would be stored of a state module's value; errors as for `redacted`."""
        return dict(self.redacted({"module": module, "value": dict(value)}, "state")["value"])

    async def commit(self, *, sync: bool = True) -> None:
        """Write what was added, and with `sync` make it durable, in one hop to a worker.

        Raises `PersistenceError` with nothing written; the lines stay and go out with the next commit.
        """
        await self._store.commit(sync=sync)

    def take_along(self, work: Callable[[], None]) -> None:
        """Let the next commit do this too, in its worker, once its lines are written; a failure is logged.

        Nothing is done where that commit fails or has nothing to write.
        """
        self._store.along = work

    def beside(self) -> SessionTree:
        """The same session, empty, in a folder beside its place that no reader looks at; `take_in` gives it its place.

        For sessions that are to be there whole or not at all.
        """
        owner = self._store.owner
        return SessionTree(
            self.files.folder / temporary_name(),
            self.session_id,
            agent=owner.agent,
            namespace=owner.namespace,
            durability=self._store.durability,
            redact=self._redact,
            anchor_key=owner.anchor_key,
        )

    async def take_in(self, staged: SessionTree) -> None:
        """Let what was written `beside` be this session, while its lock is held. Raises `SessionExists`."""
        await settle(self._store.writer_lock, staged.files, self._store.owner, self.files)

    async def rebuild(self, first: Callable[[], object] | None = None) -> None:
        """Make context file and anchor anew from the ledger; a damaged end is noted there first.

        `first` is done before, in a worker. Raises `PersistenceError`.
        """
        await self._store.rebuild(first)

    def bind(
        self,
        system: Sequence[Mapping[str, str]],
        tools: Sequence[Mapping[str, Any]],
        model: str,
        provider: str,
        options: Mapping[str, Any] | None = None,
        *,
        turn: str | None = None,
    ) -> str:
        """Log what stands around the messages of a request and return the binding's entry id.

        `system` has items `{name, text}`, `tools` items `{name, schema}` with the whole tool as the
        model sees it. Nothing is written when a binding since the boundary says the same.
        """
        options = self.redacted({"options": dict(options or {})}, "binding")["options"]
        return self._requests.bind(system, tools, model, provider, options, turn)

    def select(self, messages: Sequence[MessageDict]) -> tuple[list[str], list[MessageDict]]:
        """The ids by which a request names that it shows these messages and no others, and the messages.

        Those that no line holds are logged, `via:summary`, and may get an id of their own.
        """
        ids: list[str] = []
        shown: list[MessageDict] = []
        for known, given in split_shown(self.view(), messages, self._line_of):
            entry_id, piece = (known, given) if known is not None else self._log_shown(given[0])
            ids.append(entry_id)
            shown.extend(piece)
        return ids, shown

    def begin_request(
        self,
        purpose: str,
        attempt: int,
        binding_id: str,
        messages: Sequence[MessageDict],
        turn: str | None,
        policy: str,
        projector: str = "turns/1",
        *,
        select: Sequence[Selected] | None = None,
        tokens: int | None = None,
    ) -> str:
        """Log that a request goes out, with a digest of all it holds, and return the request's id.

        `select` says what it shows where that is not the whole view; see `harness.sessions.selection.selecting`.
        `tokens` is what it was estimated at, where that is compared with what is billed.
        Raises `ConfigError` if the binding was not made since the boundary: after a compaction, bind again.
        """
        fields = {"purpose": purpose, "attempt": attempt, "policy": policy, "projector": projector, "tokens": tokens}
        return self._requests.begin(fields, binding_id, messages, turn, select)

    def end_request(
        self,
        request_id: str,
        status: str,
        stop: str | None = None,
        usage: Mapping[str, Any] | None = None,
        attempts: Sequence[Mapping[str, Any]] = (),
        *,
        prefix_digest: str | None = None,
        turn: str | None = None,
    ) -> str:
        """Log how a request ended. `completed` makes its output part of the conversation."""
        fields = {"status": status, "stop": stop, "usage": usage, "prefixDigest": prefix_digest}
        return self.add("request_end", {**fields, "attempts": list(attempts)}, turn=turn, request=request_id)

    def add_card(self, turn_id: str, outcome: str) -> None:
        """Log a turn in short, once; nothing for a turn that lies before the boundary or has its card."""
        turn = next((turn for turn in reversed(self.view().turns) if turn.id == turn_id), None)
        if turn and turn_id not in self._store.conversation.carded:
            self.add("turn_card", turn_card(turn, outcome), turn=turn_id)

    def close_compaction(self) -> None:
        """Log the end of a compaction that was begun and has none: whoever did it is gone."""
        bracket = self._store.conversation.bracket
        if bracket:
            status = {"status": "completed"} if bracket.done else {"status": "failed", "error": "interrupted"}
            self.add("event", {"kind": "compaction_end", "data": status}, turn=bracket.data.get("turnId"))

    def append_compaction(
        self,
        summary: str,
        first_turn: str,
        last_turn: str,
        model: str | None,
        tokens_before: int | None,
        *,
        keeps_open_turn: bool = False,
        cards: Sequence[Mapping[str, Any]] | None = None,
        checkpoint: bool = False,
    ) -> str:
        """Log a boundary: from now on the model sees `summary` and the turns after `last_turn`.

        With `keeps_open_turn` the open turn keeps its directive and what follows the boundary. Text
        and schemas of bindings are written in full again afterwards, and module states repeated,
        so that nobody need read what lies before. `checkpoint` says that it is there for readers, and hides
        nothing from requests that select what they show.
        """
        states = self.states()
        fields = boundary_fields(
            self._store.conversation, summary, first_turn, last_turn, model, tokens_before, keeps_open_turn, cards,
            checkpoint,
        )  # fmt: skip
        turn = self.view().open_turn
        entry_id = self.add("compaction", fields, turn=turn.id if turn else None)
        for module, value in states.items():
            self.add("state", {"module": module, "value": value})
        return entry_id

    async def branch(self, entry_id: str) -> str:
        """Go on behind the turn's end at this line; the id of the `branch` line that says so.

        Nothing is removed: what came after is another branch now. Raises `NotATurnEnd`,
        `SessionDamaged`, for the whole ledger is read, and `ConfigError` where there is no such line.
        """
        await self.commit()
        earlier = await pool.run(find_branch, self.files, self._store.owner, entry_id)
        self._store.restart(earlier)
        boundary = earlier.boundary
        at = None if boundary == START else {"seq": boundary.seq, "offset": boundary.offset}
        return self.add("branch", {"to": earlier.leaf, "boundary": at})

    def adopt(self, decision: Decision) -> str | None:
        """Do what `reconcile` decided, and return what a person should know about it, or None.

        Missing messages are logged `via:repair`. A branch begins at the line of the last common
        message; a `branch` entry behind it leads back, so the ledger's own conversation stays active.
        """
        return adopt(self._store, self._log_message, decision)

    def _log_message(
        self,
        data: MessageDict,
        via: str,
        turn: str | None = None,
        request: str | None = None,
        partial: bool = False,
        idempotency_key: str | None = None,
        parent: str | None = None,
        raw: bytes | None = None,
    ) -> str:
        data, raw = storable_message(data if self._redact is None else dict(self.redacted(data)), raw)
        small, moved, files = blobs.shrink_message(data, raw)
        self._store.blobs.update(moved)
        fields: dict[str, Any] = {"message": orjson.Fragment(dumps(small) if moved else raw), "via": via, **files}
        fields |= {"partial": True} if partial else {}
        if idempotency_key is not None:
            fields["idempotencyKey"] = idempotency_key
        entry_id = new_id()
        own = opens_turn({"type": "message", "message": data, "via": via, "partial": partial})
        return self._store.plan(
            "message",
            fields,
            entry_id=entry_id,
            turn=entry_id if own else turn or self.turn,
            request=request,
            parent=parent,
            whole={"message": own_copy(data, raw)},
        ).id

    def _line_of(self, message: MessageDict) -> str | None:
        """The line that holds exactly this message and is not shown as more than that."""
        entry = self._store.conversation.entry_of(str(message.get("id")))
        return entry.id if entry and not opens_turn(entry.data) and message_of(entry.data) == message else None

    def _log_shown(self, message: MessageDict) -> tuple[str, tuple[MessageDict, ...]]:
        """Log a copy of a message for a request beside the conversation; the line and the message as logged."""
        copy = {**message, "id": new_id()}
        entry_id = self.add_message(copy, via="summary")
        entry = self._store.conversation.entry_of(copy["id"])
        return entry_id, (entry.data["message"] if entry else copy,)
