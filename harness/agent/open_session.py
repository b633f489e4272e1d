"""Taking a session to work on it, and bringing its two tracks together first."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from harness.agent.binding import Binding
from harness.agent.config import AgentConfig
from harness.agent.gate import process_gate
from harness.agent.java import take_over_java
from harness.errors import PersistenceError, SessionExists
from harness.filesystem import pool
from harness.filesystem.namespaces import write_tenant_file
from harness.hooks.uninterrupted import uninterrupted
from harness.sessions.cache import OpenSession, SessionCache
from harness.sessions.checking.strict import not_found
from harness.sessions.lines.layout import Owner, SessionFiles
from harness.sessions.snapshots.asking import AskedStore
from harness.sessions.snapshots.snapshot import MEMORY, Snapshot, is_anothers, load_snapshot
from harness.sessions.snapshots.state_files import FileSession
from harness.sessions.snapshots.state_modules import StateModules
from harness.sessions.snapshots.workspace_session import WorkspaceSession
from harness.sessions.tree.reconcile import AppendMissing, Branch, Ignore, holds, reconcile
from harness.sessions.tree.session_tree import SessionTree
from harness.state import Session, SessionKey

__all__ = ["existing", "forget", "forget_tenant", "holding", "place_of", "refuse_remembered", "restore"]

log = logging.getLogger("harness.agent")

_cache = SessionCache()
"""Of the whole process: the sessions used last. Who takes one out has it alone."""


@asynccontextmanager
async def existing(config: AgentConfig, binding: Binding) -> AsyncIterator[OpenSession]:
    """A session that is there, held against calls and other processes, for what has no business to begin one.

    Raises as `holding`, and `SessionNotFound` where it was deleted by the time it is held.
    """
    async with (
        process_gate().hold(binding.place, config, config.gate_timeout),
        holding(config, binding) as session,
    ):
        if session.tree.ledger_id is None:
            raise not_found(binding.session_id)
        yield session


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
        if session.tree.ledger_id is None:
            await _claim_again(binding, session.tree)
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
    if snapshot is None or is_anothers(snapshot.position, key, tree):
        return
    if isinstance(reconcile(tree, snapshot.position, snapshot.messages), AppendMissing | Branch):
        raise SessionExists(
            f"there is a session {binding.session_id!r} already: it has no ledger, and its messages are in the store "
            "of its state; choose another id for the new one, or delete that session first"
        )


def place_of(config: AgentConfig, binding: Binding) -> tuple[SessionFiles, Owner]:
    """The files of a session, and what its ledger must say of whose it is."""
    owner = Owner(binding.session_id, config.agent_id, binding.namespace, config.anchor_key)
    return SessionFiles.of(binding.sessions_folder, binding.session_id), owner


def forget(config: AgentConfig, binding: Binding) -> None:
    """Drop what this process remembers of a session that is deleted."""
    _cache.forget(_cache_key(config, binding))


def forget_tenant(root: Path) -> None:
    """Drop what this process remembers of the sessions of a tenant that is removed."""
    _cache.forget_those(lambda key: isinstance(key, tuple) and Path(key[0].folder).is_relative_to(root))


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
    snapshot = await load_snapshot(store, key)
    values = tree.states()
    if snapshot and is_anothers(snapshot.position, key, tree):
        return [await _not_taken(tree, store, key), *modules.load(values)]
    warnings = await _reconcile(tree, store, key, snapshot)
    values = tree.states()
    for name in modules.names:
        if name not in values and (value := await AskedStore(store, key).get(name)) is not None:
            values[name] = value
    return [*warnings, *modules.load(values)]


async def _claim_again(binding: Binding, tree: SessionTree) -> None:
    """Whoever waited for the lock while the tenant was removed begins in a new folder, which must say whose it is."""
    try:
        await pool.run(write_tenant_file, binding.tenant_root, binding.namespace)
    except BaseException:
        await tree.release()
        raise


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


async def _not_taken(tree: SessionTree, store: Session, key: SessionKey) -> str:
    """Keep another's snapshot where that can be done, so that this session's own does not replace it; what to say."""
    kept = "it is replaced by the one of this session"
    if isinstance(store, FileSession):
        kept = f"it was kept as {(await store.set_aside(key)).name}: move it back where it came from"
    warning = f"session {tree.session_id!r}: its snapshot is another's, or of another ledger, and was not taken; {kept}"
    log.warning("%s", warning)
    return warning


async def _reconcile(tree: SessionTree, store: Session, key: SessionKey, snapshot: Snapshot | None) -> list[str]:
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
