"""The way of a call through its session: gate, lock, load, turn, release.

Whatever happens inside, everything that was taken is given back, in order, and uninterrupted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.agent.asked_again import other_words, reply_of
from harness.agent.binding import Binding
from harness.agent.call import Call
from harness.agent.catalogs import Catalogs
from harness.agent.config import AgentConfig, StateFactory
from harness.agent.gate import process_gate
from harness.agent.handoff import Handoff
from harness.agent.journal import Journal
from harness.agent.lifecycle import Lifecycle
from harness.agent.meta import AgentMeta
from harness.agent.open_session import holding, restore
from harness.agent.recollecting import Recollection
from harness.agent.side import LoggedSideModel
from harness.agent.turn import run_turn
from harness.agent.turnstate import TurnState
from harness.context import CallScope, enter_scope
from harness.errors import ConfigError
from harness.filesystem import AbstractFilesystem
from harness.filesystem.treefs import TreeFilesystem
from harness.hooks import Announcer, Background, Notices, Recollector, Selector, SideModel
from harness.messages import Msg
from harness.models.base import Model
from harness.sessions.cache import OpenSession
from harness.sessions.catalog.session_catalog import SessionCatalog
from harness.sessions.snapshots.snapshot import SnapshotWriter
from harness.sessions.snapshots.state_modules import StateModules
from harness.sessions.tree.results import RESULTS, KeptResults
from harness.sessions.tree.session_tree import SessionTree
from harness.sessions.view.prefix import PrefixWatch
from harness.state import StateModule
from harness.text import said

__all__ = ["SessionCall"]


class SessionCall:
    """What one `Call` runs."""

    def __init__(
        self,
        config: AgentConfig,
        lifecycle: Lifecycle,
        catalogs: Catalogs,
        binding: Binding,
        models: Sequence[Model],
        messages: Sequence[Msg],
        idempotency_key: str | None,
    ) -> None:
        self._config = config
        self._lifecycle = lifecycle
        self._catalog = catalogs.of(binding.sessions_folder, binding.namespace)
        self._binding = binding
        self._models = tuple(models)
        self._messages = messages
        self._key = idempotency_key

    async def run(self, call: Call) -> Msg:
        """The reply. Raises `SessionBusy`, `SessionDamaged`, and what ends the turn."""
        self._lifecycle.enter(call)
        try:
            async with (
                process_gate().hold(self._binding.place, call, self._config.gate_timeout),
                holding(self._config, self._binding) as session,
            ):
                return await self._in_session(call, session)
        finally:
            self._lifecycle.leave(call)

    async def _in_session(self, call: Call, session: OpenSession) -> Msg:
        own = [_made(make) for make in self._config.state_factories]
        kept = (AgentMeta(self._config, self._models[0]), Handoff(self._config), self._config.toolkit.active_groups())
        modules = StateModules([*kept, *own])
        call.warnings.extend(await restore(self._config, self._binding, session, modules))
        found = await session.tree.find_answered(self._key) if self._key is not None else None
        if found and (warning := other_words(session.tree, self._key or "", found, self._messages)):
            call.warnings.append(warning)
        if found and (given := reply_of(found)) is not None:
            reply, call.entry_id = given
            call.turn_id = found.turn.id
            return reply
        self._describe(session.tree)
        state = self._state(call, session, modules)
        with enter_scope(state.scope):
            try:
                return await run_turn(state, self._messages, self._key)
            finally:
                call.warnings.extend(modules.troubles.values())
                if state.journal.unstored:
                    call.warnings.append(f"this turn is not stored: {state.journal.unstored}")
                    session.tree.take_back()
                elif told := session.tree.unanchored():
                    call.warnings.append(told)
                if session.tree.count:
                    prompt = state.journal.as_stored(self._messages[0]).text
                    self._catalog.note_turn(self._binding.session_id, prompt=prompt)

    def _state(self, call: Call, session: OpenSession, modules: StateModules) -> TurnState:
        goes_on = self._config.on_disk_failure == "continue"
        journal = Journal(session.tree, self._config.policy, session.built, goes_on=goes_on)
        services: dict[type, Any] = {
            AbstractFilesystem: self._files(session.tree),
            SessionTree: session.tree,
            SessionCatalog: self._catalog,
            SnapshotWriter: session.snapshots,
            PrefixWatch: session.prefixes,
            StateModules: modules,
            Journal: journal,
            Background: self._lifecycle.background,
            Model: self._models[0],
            **{type(module): module for module in modules},
        }
        scope = CallScope(
            self._binding.ctx, self._binding.namespace, self._config.agent_id, self._binding.session_id, services
        )
        state = TurnState(self._config, call, scope, self._models)
        services[Notices] = services[Announcer] = state
        services[Recollector] = Recollection(self._config, self._binding, self._models, state)
        services[SideModel] = side = LoggedSideModel(self._config, journal, self._models, state)
        if self._config.working_set:
            chosen = Selector(session.tree, session.past, side, state, self._config.working_set)
            services[Selector], journal.choice = chosen, chosen.shown
        return state

    def _files(self, tree: SessionTree) -> AbstractFilesystem:
        """The tenant's files, with what was evicted from this session among them."""
        files = self._config.filesystem.for_namespace(self._binding.namespace)
        return files.with_tree(RESULTS, KeptResults(tree)) if isinstance(files, TreeFilesystem) else files

    def _describe(self, tree: SessionTree) -> None:
        model = self._models[0]
        tree.describe(
            provider=model.provider,
            model=model.name,
            context_window=model.context_window,
            policy=self._config.policy,
        )


def _made(make: StateFactory) -> StateModule:
    """A state module for this call. Raises `ConfigError`."""
    try:
        return make()
    except Exception as error:
        raise ConfigError(f"the state module {make!r} could not be made: {said(error)}; mend what makes it") from error
