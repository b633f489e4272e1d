"""`agent.sessions(user)`: one tenant's conversations, from outside a call."""

from __future__ import annotations

import builtins
import logging
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial

from harness.agent import earlier
from harness.agent.binding import Binding, bind
from harness.agent.catalogs import Catalogs
from harness.agent.checks import text, whole
from harness.agent.config import AgentConfig
from harness.agent.gate import process_gate
from harness.agent.handoff import hand_over
from harness.agent.java import java_workspace, take_over_java
from harness.agent.journal import Journal
from harness.agent.moving import export_bundle, import_bundle
from harness.agent.open_session import existing, forget, holding, place_of, restore
from harness.agent.summing_up import sum_up
from harness.agent.switching import switch_model
from harness.context import RuntimeContext
from harness.errors import FileMissing, HarnessError, PersistenceError, SessionNotFound
from harness.filesystem import pool
from harness.ids import new_session_id
from harness.messages import Msg
from harness.models.base import Model
from harness.sessions.catalog.branching import BranchInfo
from harness.sessions.catalog.index import SessionInfo
from harness.sessions.catalog.search import SearchHit
from harness.sessions.catalog.session_catalog import SessionCatalog
from harness.sessions.catalog.usage import UsageReport
from harness.sessions.checking.verify import VerifyReport, verify_session
from harness.sessions.lines.built import BuiltMessages
from harness.sessions.moving.bundle import MAX_BYTES, Bundle
from harness.sessions.snapshots.asking import AskedStore
from harness.sessions.snapshots.snapshot import MEMORY, is_anothers
from harness.sessions.snapshots.state_files import FileSession
from harness.sessions.snapshots.state_modules import StateModules
from harness.sessions.tree.repair import RepairReport, repair_session
from harness.sessions.tree.session_tree import SessionTree
from harness.state import Session, SessionKey

__all__ = ["TenantSessions"]

log = logging.getLogger("harness.agent")


class TenantSessions:
    """The conversations of one user with one agent; there is no way from here to anybody else's."""

    def __init__(self, config: AgentConfig, catalogs: Catalogs, ctx: RuntimeContext) -> None:
        self._config = config
        self._ctx = ctx
        self._catalogs = catalogs

    async def list(
        self, limit: int | None = None, after: str | None = None, *, newest_first: bool = False
    ) -> builtins.list[SessionInfo]:
        """The sessions, by id, or the one that was written last first. Reads no conversation.

        limit   how many at most; None for all
        after   the id of the last one of the page before

        Raises `ConfigError`, and `SessionNotFound` where with `newest_first` there is no session `after` any more.
        """
        if limit is not None:
            whole("list: limit", limit)
        if after is not None:
            text("list: after", after)
        return await self._catalog().list(limit, after, newest_first=newest_first)

    async def lost(self) -> builtins.list[str]:
        """The ids of sessions whose ledger is gone, although nobody deleted them; `verify` says what is missing."""
        return await self._catalog().lost()

    async def history(self, session_id: str, last_n: int | None = 20) -> builtins.list[Msg]:
        """The last `last_n` messages, oldest first, also what was compacted; None for all of them.

        Raises `SessionNotFound`, and `ConfigError` for what is no whole number above 0.
        """
        wanted = _count_of("history", last_n)
        return [Msg.from_dict(message) for message in await self._catalog().history(session_id, wanted)]

    async def read(self, session_id: str, last_n: int | None = 20) -> AsyncIterator[Msg]:
        """The messages of `history` one by one, for conversations that are too large to be held at once.

        As there, the last 20 unless `last_n` says otherwise, None for all. Raises the same, with the first one.
        """
        async for message in self._catalog().read(session_id, _count_of("read", last_n)):
            yield Msg.from_dict(message)

    async def read_timed(self, session_id: str, last_n: int | None = 20) -> AsyncIterator[tuple[str, Msg]]:
        """The messages of `read`, each behind the time at which it was stored: RFC 3339, UTC. Raises the same."""
        async for line in self._catalog().read_lines(session_id, _count_of("read_timed", last_n)):
            yield str(line.get("timestamp", "")), Msg.from_dict(line["message"])

    async def search(self, query: str, limit: int = 10, session_id: str | None = None) -> builtins.list[SearchHit]:
        """The messages that match best, in all sessions or in one; searches of one tenant take turns.

        Raises `ConfigError` for what is no text, and for more than 2 048 characters or 64 different words.
        """
        text("search: the query", query)
        whole("search: limit", limit)
        return await self._catalog().search(query, limit=limit, session_id=session_id)

    async def tree(self, session_id: str) -> SessionTree:
        """The session's track 2, loaded, to read from. Raises `SessionNotFound`."""
        binding = self._binding(session_id)
        await self._check_there(session_id)
        tree = SessionTree(
            binding.sessions_folder, session_id, agent=self._config.agent_id, namespace=binding.namespace
        )
        await tree.load()
        if tree.ledger_id is None:
            raise self._not_found(session_id)
        return tree

    async def verify(self, session_id: str) -> VerifyReport:
        """Check every line, the end, and all files of a session; `.ok` and `.findings` tell.

        Changes nothing and waits for nobody. Raises `SessionNotFound`, `NewerFormat`.
        """
        files, owner = place_of(self._config, self._binding(session_id))
        try:
            return await pool.run(verify_session, files, owner)
        except FileMissing:
            raise self._not_found(session_id) from None

    async def repair(self, session_id: str) -> RepairReport:
        """Make anew what can be made from the ledger, which is itself never edited; `.done` and `.ok` tell.

        Waits for a call on the session. Raises `SessionNotFound`, `SessionBusy`, `PersistenceError`.
        """
        await self._check_there(session_id)
        binding = self._binding(session_id)
        async with existing(self._config, binding) as session:
            return await repair_session(session.tree, place_of(self._config, binding)[1], self._catalog())

    async def branch(self, session_id: str, entry_id: str) -> str:
        """Go back: the session goes on behind the turn's end at this line. The id of the line that says so.

        What came after stays in the ledger as another branch. `entry_id` is that of the turn's reply, as
        `call.entry_id` gave it. Raises `NotATurnEnd`, `SessionNotFound`, `SessionBusy`, `SessionDamaged`, and
        `ConfigError` where there is no such line.
        """
        await self._check_there(session_id)
        return await earlier.branch(self._config, self._binding(session_id), entry_id)

    async def branches(self, session_id: str) -> builtins.list[BranchInfo]:
        """The ways a session went, oldest first."""
        return await (await self.tree(session_id)).branches()

    async def fork(self, session_id: str, at: str | None = None, *, to: str | None = None) -> str:
        """Copy a session, up to the turn's end at this line, and return the id of the copy.

        `at` is None for the newest turn's end, `to` the new id, one is made if it is left out. Raises as `branch`,
        and `SessionExists` where there is a session `to`.
        """
        await self._check_there(session_id)
        target = self._binding(new_session_id() if to is None else to)
        return await earlier.fork(self._config, self._binding(session_id), target, at)

    async def label(self, session_id: str, entry_id: str, name: str) -> str:
        """Name a line, so that it is found again; the id of the line that says so. Raises `ConfigError`."""
        await self._check_there(session_id)
        return await earlier.label(self._config, self._binding(session_id), entry_id, name)

    async def labels(self, session_id: str) -> dict[str, str]:
        """The lines that have a name, by it; of two of one name the newer."""
        return (await (await self.tree(session_id)).notes()).labels

    async def rename(self, session_id: str, title: str) -> None:
        """Give a session a title."""
        await self._check_there(session_id)
        await earlier.rename(self._config, self._binding(session_id), self._catalog(), title)

    async def usage(self, session_id: str | None = None) -> UsageReport:
        """Tokens and cost of one session, or of all, by request, model and session; from the ledgers alone."""
        if session_id is not None:
            await self._check_there(session_id)
        ids = [session_id] if session_id is not None else [info.id for info in await self.list()]
        report = await earlier.usage(self._config, [self._binding(each) for each in ids])
        if session_id is not None and not report.rows:
            await self._check_there(session_id)  # it may have been deleted meanwhile
        return report

    async def compact(self, session_id: str, instructions: str = "") -> bool:
        """Summarise the older turns now, and say whether any could go.

        `instructions` is added to the prompt. Waits for a call on the session. Raises
        `SessionNotFound`, `SessionBusy`, and `ModelError` when no summary came; then nothing changed.
        """
        await self._check_there(session_id)
        binding, config = self._binding(session_id), self._config.compaction
        if instructions:
            config = replace(config, summary_prompt=f"{config.summary_prompt}\n\n{instructions}")
        async with existing(self._config, binding) as session:
            await restore(self._config, binding, session, StateModules([]))
            return await sum_up(self._config, session.tree, config)

    async def switch_model(self, session_id: str, model: str | Model, *, compact: bool = True) -> bool:
        """Note that a session goes on with another model, which its next calls name; whether it was compacted.

        With `compact` the model that was used last sums up the older turns first, for it alone can read what it has
        sealed; as many stay whole as in any compaction. Without this method a call with another model notes the
        switch by itself and compacts nothing.
        Raises `SessionNotFound`, `SessionBusy`, and `ModelError` when no summary came; then nothing changed.
        """
        await self._check_there(session_id)
        binding, new = self._binding(session_id), self._config.models.resolve(model)
        async with existing(self._config, binding) as session:
            await restore(self._config, binding, session, StateModules([]))
            journal = Journal(session.tree, self._config.policy, BuiltMessages())
            summed_up = partial(sum_up, self._config, session.tree, self._config.compaction)
            return await switch_model(self._config, journal, new, summed_up if compact else None)

    async def handoff(self, session_id: str, to: str | None = None, *, model: str | Model | None = None) -> str:
        """Begin a new session in which this one goes on, with any model, and give its id.

        The first message there opens with a block that names this session, its model and how to read it; nothing of it
        is repeated, and it stays as it is. `to` is the new id, made if left out; `model` is the one noted as its first.
        Raises `SessionNotFound`, `SessionExists`.
        """
        source = await self.tree(session_id)
        target = self._binding(to or new_session_id())
        await hand_over(self._config, source, target, self._config.models.resolve(model or self._config.model))
        return target.session_id

    async def export(self, session_id: str, target: str | os.PathLike[str]) -> Bundle:
        """Write a session into one new file, byte for byte, to keep or to import elsewhere.

        Waits for nobody, changes nothing, takes a damaged session as it is. Raises `SessionNotFound`, `FileExists`.
        """
        await self._check_there(session_id)
        return await export_bundle(self._config, self._binding(session_id), target)

    async def import_session(
        self,
        bundle: str | os.PathLike[str],
        *,
        session_id: str | None = None,
        take_over: bool = False,
        max_bytes: int = MAX_BYTES,
    ) -> str:
        """Take a session out of a bundle, whole and checked, or not at all; its id. It can be continued at once.

        session_id  the id to give it, instead of its own
        take_over   make a session of another user, agent or id this one's, or one that the anchor key did not sign:
                    in a new ledger that says where it came from
        max_bytes   the most it may unpack to

        Raises `SessionExists`, `SessionDamaged` naming what is wrong, `ConfigError` if it is somebody else's and not
        taken over, `FileMissing`, `NewerFormat`.
        """
        return await import_bundle(
            self._config, self._ctx, bundle, session_id=session_id, take_over=take_over, max_bytes=max_bytes
        )

    async def import_java(self) -> builtins.list[str]:
        """Take over every session that the Java harness left for this user in the workspace; the ids of new ones.

        A call on such a session does so by itself. The Java files are not changed. One that cannot be taken over
        keeps none of the others back; where there is no other, its error is raised: `SessionBusy`, `SessionDamaged`.
        """
        found = await pool.run(java_workspace(self._config, self._binding("any")).session_ids)
        taken, errors = [], []
        for session_id in found:
            try:
                if await self._take_over_java(session_id):
                    taken.append(session_id)
            except HarnessError as error:
                log.warning("the Java session %r was not taken over: %s", session_id, error)
                errors.append(error)
        if errors and not taken:
            raise errors[0]
        return taken

    async def _take_over_java(self, session_id: str) -> bool:
        binding = self._binding(session_id)
        async with (
            process_gate().hold(binding.place, self, self._config.gate_timeout),
            holding(self._config, binding) as session,
        ):
            return bool(await take_over_java(self._config, binding, session.tree))

    async def delete(self, session_id: str) -> bool:
        """Remove both tracks of a session for good; False if there was none. Waits for a call on it."""
        binding = self._binding(session_id)
        async with process_gate().hold(binding.place, self, self._config.gate_timeout):
            forget(self._config, binding)
            existed = await self._catalog().delete(session_id, timeout=self._config.gate_timeout)
            store, key = binding.ctx.session, binding.ctx.session_key
            if store is not None and isinstance(key, SessionKey):
                existed = await _delete_snapshot(store, key) or existed
        return existed

    async def _check_there(self, session_id: str) -> None:
        if not await self._catalog().exists(session_id):
            raise self._not_found(session_id)

    def _not_found(self, session_id: str) -> SessionNotFound:
        return SessionNotFound(
            f"there is no session {session_id!r} of this user with agent {self._config.agent_id!r}; "
            "list the sessions to see which there are"
        )

    def _binding(self, session_id: str) -> Binding:
        return bind(self._config, self._ctx.with_changes(session_id=session_id, session_key=None))

    def _catalog(self) -> SessionCatalog:
        binding = self._binding("any")
        return self._catalogs.of(binding.sessions_folder, binding.namespace)


async def _delete_snapshot(store: Session, key: SessionKey) -> bool:
    """Whether there was one."""
    try:
        asked = AskedStore(store, key)
        if await _is_anothers(asked, store, key):
            log.warning("the snapshot of session %r is another's, and was not deleted with it", key.session)
            return False
        existed = await asked.exists()
        await asked.delete()
    except PersistenceError as error:
        raise PersistenceError(
            f"the ledger of session {key.session!r} is deleted, its snapshot may be there still: {error}; "
            "delete the session again"
        ) from error
    return existed


async def _is_anothers(asked: AskedStore, store: Session, key: SessionKey) -> bool:
    try:
        return is_anothers(await asked.get(MEMORY), key)
    except PersistenceError:
        if not isinstance(store, FileSession):
            raise
        return False  # what cannot be read says nothing, and can be removed


def _count_of(what: str, last_n: int | None) -> int:
    return sys.maxsize if last_n is None else whole(f"{what}: last_n", last_n)
