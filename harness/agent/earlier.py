"""Going back in conversations, copying them, naming things in them, and what they cost."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from harness.agent.binding import Binding
from harness.agent.checks import text
from harness.agent.config import AgentConfig
from harness.agent.gate import process_gate
from harness.agent.open_session import existing, place_of, refuse_remembered, restore
from harness.errors import ConfigError
from harness.filesystem import disk, pool
from harness.sessions.cache import OpenSession
from harness.sessions.catalog.branching import has_line
from harness.sessions.catalog.session_catalog import SessionCatalog
from harness.sessions.catalog.usage import UsageReport, read_usage
from harness.sessions.moving.forking import fork_session
from harness.sessions.snapshots.state_modules import StateModules
from harness.state import Session, SessionKey
from harness.text import clean_text, said

__all__ = ["branch", "fork", "label", "rename", "usage"]

log = logging.getLogger("harness.agent")


async def branch(config: AgentConfig, binding: Binding, entry_id: str) -> str:
    """The id of the line behind which the session goes on from that turn's end."""
    text("branch: the entry id", entry_id)
    async with _held(config, binding) as session:
        line = await session.tree.branch(entry_id)
        await session.tree.commit(sync=True)
        # A snapshot of what was left behind must not come back as something that the ledger lacks.
        store, key = binding.ctx.session, binding.ctx.session_key
        if store is not None and isinstance(key, SessionKey):
            await _save(session, store, key)
        return line


async def _save(session: OpenSession, store: Session, key: SessionKey) -> None:
    try:
        await session.snapshots.save(store, key, session.tree, session.tree.states())
    except Exception as error:  # noqa: BLE001 - stores are users' own, and the ledger is written
        # It says the same as the ledger, which wins; the next call writes it anew.
        log.warning("the snapshot of session %r could not be written: %s", session.tree.session_id, said(error))


async def fork(config: AgentConfig, source: Binding, target: Binding, entry_id: str | None) -> str:
    """The id of the new session. No lock is taken on the old one: what it has written stays as it is."""
    if entry_id is not None:
        text("fork: the entry id", entry_id)
    files, owner = place_of(config, source)
    place, _ = place_of(config, target)
    async with process_gate().hold(target.place, fork, config.gate_timeout):
        if await pool.run(disk.mark, place.ledger) is None:
            await refuse_remembered(config, target)
        await fork_session(files, owner, place, target.session_id, entry_id, config.gate_timeout)
    return target.session_id


async def label(config: AgentConfig, binding: Binding, entry_id: str, name: str) -> str:
    """The id of the line that names another one."""
    text("label: the entry id", entry_id)
    name = clean_text(text("label: the name", name))
    if not name.strip():
        raise ConfigError("a label needs a name that is not blank")
    async with _held(config, binding) as session:
        tree = session.tree
        if not await pool.run(has_line, tree.files, entry_id):
            raise ConfigError(
                f"there is no line {entry_id!r} in session {binding.session_id!r}; give the id of one that is there"
            )
        line = tree.add("label", {"target": entry_id, "name": name})
        await tree.commit(sync=True)
        return line


async def rename(config: AgentConfig, binding: Binding, catalog: SessionCatalog, title: str) -> None:
    """Give a session a title, in its ledger and in the list."""
    title = clean_text(text("rename: the title", title))
    if not title.strip():
        raise ConfigError("a title needs a text that is not blank")
    async with _held(config, binding) as session:
        named = session.tree.redacted({"kind": "title", "data": {"title": title}}, "event")
        session.tree.add("event", named)
        await session.tree.commit(sync=True)
    catalog.note_title(binding.session_id, named["data"]["title"])
    await catalog.flush_or_tell()


async def usage(config: AgentConfig, bindings: list[Binding]) -> UsageReport:
    """What the requests of these sessions cost."""
    return await pool.run(read_usage, [place_of(config, binding) for binding in bindings])


@asynccontextmanager
async def _held(config: AgentConfig, binding: Binding) -> AsyncIterator[OpenSession]:
    """The session, its two tracks brought together, held against calls and other processes."""
    async with existing(config, binding) as session:
        await restore(config, binding, session, StateModules([]))
        yield session
