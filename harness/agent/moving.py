"""Sessions out of a workspace and into another: bundles, from outside a call."""

from __future__ import annotations

import os

from harness.agent.binding import Binding, bind
from harness.agent.checks import path_of
from harness.agent.config import AgentConfig
from harness.agent.gate import process_gate
from harness.agent.open_session import forget, place_of
from harness.context import RuntimeContext
from harness.errors import ConfigError
from harness.filesystem import disk, pool
from harness.filesystem.locks import FileLock
from harness.filesystem.namespaces import write_tenant_file
from harness.sessions.ledger.deleting import finish_removal
from harness.sessions.lines.layout import SessionFiles
from harness.sessions.moving.bundle import Bundle
from harness.sessions.moving.exporting import export_session
from harness.sessions.moving.importing import admit, place_beside, read_bundle, refuse_existing, unpack

__all__ = ["export_bundle", "import_bundle"]


async def export_bundle(config: AgentConfig, binding: Binding, target: str | os.PathLike[str]) -> Bundle:
    """See `TenantSessions.export`."""
    files, owner = place_of(config, binding)
    return await pool.run(export_session, files, owner, path_of("export", target))


async def import_bundle(
    config: AgentConfig,
    ctx: RuntimeContext,
    source: str | os.PathLike[str],
    *,
    session_id: str | None,
    take_over: bool,
    max_bytes: int,
) -> str:
    """See `TenantSessions.import_session`."""
    path = path_of("import", source)
    bundle = await pool.run(read_bundle, path, max_bytes)
    binding = bind(config, ctx.with_changes(session_id=session_id or bundle.session_id, session_key=None))
    files, owner = place_of(config, binding)
    if owner != bundle.owner and not take_over:
        raise ConfigError(
            f"{path} holds {bundle.owner}, and was to become {owner}; import it for that user, "
            "agent and session, or take it over: then it gets a new ledger that says where it came from"
        )
    async with process_gate().hold(binding.place, bundle, config.gate_timeout):
        await _prepare(binding, files, config.gate_timeout)
        unpacked = place_beside(files, owner)
        try:
            await pool.run(lambda: unpack(path, unpacked, files, max_bytes, take_over=take_over))
            async with FileLock(files.lock, barrier=files.barrier).held_for(config.gate_timeout) as lock:
                await admit(lock, unpacked, files)
        finally:
            # Here, and not in the worker: nobody who is cancelled gets what a worker returns.
            await pool.run(unpacked.discard)
        forget(config, binding)
    return binding.session_id


async def _prepare(binding: Binding, files: SessionFiles, timeout: float) -> None:
    await pool.run(_make_room, binding, files)
    if await pool.run(disk.mark, files.removed):
        async with FileLock(files.lock, barrier=files.barrier).held_for(timeout) as lock:
            await finish_removal(lock, files, binding.session_id)


def _make_room(binding: Binding, files: SessionFiles) -> None:
    write_tenant_file(binding.tenant_root, binding.namespace)
    refuse_existing(files, binding.session_id)  # asked again once it is locked; this spares the unpacking
    disk.make_folder(files.folder, sync=True)
