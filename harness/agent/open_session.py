"""Taking a session to work on it, and bringing its two tracks together first."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from harness.agent.binding import Binding
from harness.agent.config import AgentConfig
from harness.agent.java import take_over_java
from harness.errors import PersistenceError, SessionExists
from harness.filesystem import pool
from harness.filesystem.namespaces import write_tenant_file
from harness.hooks.uninterrupted import uninterrupted
from harness.sessions.cache import OpenSession, SessionCache
from harness.sessions.snapshots.asking import AskedStore
from harness.sessions.snapshots.snapshot import MEMORY, load_snapshot
from harness.sessions.snapshots.state_modules import StateModules
from harness.sessions.snapshots.workspace_session import WorkspaceSession
from harness.sessions.tree.reconcile import AppendMissing, Branch, Ignore, holds, reconcile
from harness.sessions.tree.session_tree import SessionTree
from harness.state import Session, SessionKey

__all__ = ["forget", "holding", "refuse_remembered", "restore"]

log = logging.getLogger("harness.agent")

_cache = SessionCache()
"""Of the whole process: the sessions used last. Who takes one out has it alone."""


@asynccontextmanager
async def holding(config: AgentConfig, binding: Binding) -> AsyncIterator[OpenSession]:
    """The session, locked against other processes and loaded, for the block.

    The caller holds the gate. Raises `SessionBusy`, `SessionDamaged`, and `PersistenceError` where the
    disk cannot be written to and the builder did not say to go on. What was added by then and could not be
    written is dropped where the block is left by a `PersistenceError`: the caller is told that it is not done.
    """
    place = _cache_key(config, binding)
    known = _cache.take(place)
    session = known or OpenSession(_tree(config, binding))
    try:
        if known is None:
            await pool.run(write_tenant_file, binding.tenant_root, binding.namespace)
        await session.tree.lock(config.gate_timeout)
    except PersistenceError as error:
        if config.on_disk_failure == "fail":
            raise
        await session.tree.detach(error)
    try:
        yield session
    except PersistenceError:
        session.tree.take_back()
        raise
    finally:
        await uninterrupted(session.tree.release())
    _cache.put(place, session)


async def refuse_remembered(config: AgentConfig, binding: Binding) -> None:
    """Raise `SessionExists` where a store holds a conversation of this session, which has no ledger: it is alive.

    A call on it would go on with that conversation, whatever was put there instead.
    """
    store, key = binding.ctx.session, binding.ctx.session_key
    if store is None or not isinstance(key, SessionKey):
        return
    tree, snapshot = _tree(config, binding), await load_snapshot(store, key)
    await tree.load()
    if snapshot and isinstance(reconcile(tree, snapshot.position, snapshot.messages), AppendMissing | Branch):
        raise SessionExists(
            f"there is a session {binding.session_id!r} already: it has no ledger, and its messages are in the store "
            "of its state; choose another id for the new one, or delete that session first"
        )


def forget(config: AgentConfig, binding: Binding) -> None:
    """Drop what this process remembers of a session that is deleted."""
    _cache.forget(_cache_key(config, binding))


async def restore(config: AgentConfig, binding: Binding, session: OpenSession, modules: StateModules) -> list[str]:
    """Load the conversation and the state, and bring the tracks together where they differ.

    Returns what the caller should know, in sentences.
    """
    tree, store, key = session.tree, binding.ctx.session, binding.ctx.session_key
    told = tree.unproved()  # with the next line it is noted, and no news any more
    if tree.damage and (lost := await pool.run(tree.stepped_over)):
        told.append(lost)
    tree.close_compaction()
    told += await take_over_java(config, binding, tree)
    if store is None or not isinstance(key, SessionKey):
        return told
    try:
        return [*told, *await _restore_from_both(config, session, modules, store, key)]
    except PersistenceError as error:
        if not _is_guarded(config, store):
            raise
        # In the workspace the ledger has all that the snapshot has: the conversation goes on from it.
        log.warning("session %r goes on from its ledger: %s", binding.session_id, error)
        return [*told, f"the snapshot could not be read: {error}", *modules.load(tree.states())]


async def _restore_from_both(
    config: AgentConfig, session: OpenSession, modules: StateModules, store: Session, key: SessionKey
) -> list[str]:
    tree = session.tree
    if _is_guarded(config, store) and session.snapshots.is_current(store, key, tree):
        known = True
    else:
        position = await AskedStore(store, key).get(MEMORY)
        # This process wrote it, but the ledger may have been cut or removed since.
        known = session.snapshots.knows(store, key, position) and holds(tree, position or {})
    if known:
        return modules.load(tree.states())
    session.snapshots.forget()  # what is there now was written by another process, or is all there is
    warnings = await _reconcile(tree, store, key)
    values = tree.states()
    for name in modules.names:
        if name not in values and (value := await AskedStore(store, key).get(name)) is not None:
            values[name] = value
    return [*warnings, *modules.load(values)]


def _is_guarded(config: AgentConfig, store: Session) -> bool:
    """Whether nobody writes to this store who does not hold the ledger's lock, which this call holds."""
    return isinstance(store, WorkspaceSession) and store.workspace == config.workspace


def _cache_key(config: AgentConfig, binding: Binding) -> object:
    return binding.place, binding.namespace, config.agent_id, config.durability, config.redact, config.anchor_key


def _tree(config: AgentConfig, binding: Binding) -> SessionTree:
    return SessionTree(
        binding.sessions_folder,
        binding.session_id,
        agent=config.agent_id,
        namespace=binding.namespace,
        durability=config.durability,
        redact=config.redact,
        anchor_key=config.anchor_key,
    )


async def _reconcile(tree: SessionTree, store: Session, key: SessionKey) -> list[str]:
    snapshot = await load_snapshot(store, key)
    if snapshot is None:
        return []
    decision = reconcile(tree, snapshot.position, snapshot.messages)
    if tree.ledger_id is not None and isinstance(decision, AppendMissing | Branch):
        # What was gone back from, or summarised, is no news to the ledger, though its view has it no more.
        decision = reconcile(tree, snapshot.position, snapshot.messages, await tree.message_ids())
    if isinstance(decision, Ignore):
        # Whoever deleted the session did not come so far, or knew of no such store.
        await AskedStore(store, key).delete()
    warning = tree.adopt(decision)
    return [warning] if warning else []
