"""What the Java harness left in the workspace, as the sessions of this agent's tenants."""

from __future__ import annotations

from harness.agent.binding import Binding
from harness.agent.config import AgentConfig
from harness.filesystem import pool
from harness.filesystem.local_tree import LocalTree
from harness.filesystem.paths import join
from harness.sessions.moving.java_workspace import JavaWorkspace
from harness.sessions.tree.java_import import log_java_session
from harness.sessions.tree.session_tree import SessionTree

__all__ = ["java_workspace", "take_over_java"]


async def take_over_java(config: AgentConfig, binding: Binding, tree: SessionTree) -> list[str]:
    """Log what the Java harness has of a session that has no ledger yet, and say so.

    What was deleted here does not come back.
    """
    if tree.ledger_id is not None or tree.deleted:
        return []
    workspace = java_workspace(config, binding)
    found = await pool.run(workspace.read, binding.session_id)
    if found is None:
        return []
    warnings = await log_java_session(tree, found, config.policy)
    copied = await pool.run(_copy_memory, workspace, LocalTree(binding.tenant_root))
    return [*warnings, *([f"long-term memory was taken over: {', '.join(copied)}"] if copied else [])]


def _copy_memory(workspace: JavaWorkspace, tenant: LocalTree) -> list[str]:
    """Copy the long-term memory of a tenant that has none yet; the paths."""
    if tenant.stat(("MEMORY.md",)) or tenant.stat(("memory",)):
        return []
    files = workspace.memory_files()
    for parts, raw in files.items():
        tenant.store(parts, raw, exclusive=True)
    return [join(parts) for parts in files]


def java_workspace(config: AgentConfig, binding: Binding) -> JavaWorkspace:
    """Where the Java harness would have put the sessions of this tenant."""
    return JavaWorkspace(config.workspace, binding.namespace, (config.agent_id, config.name))
