"""The agents that a user has talked to in a workspace, whichever of them is asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.agent.binding import owner_of
from harness.agent.config import AgentConfig
from harness.context import RuntimeContext
from harness.filesystem import disk, pool, tenant_root
from harness.filesystem.namespaces import AGENTS
from harness.ids import decode_name, encode_name
from harness.sessions.lines.entries import parse_line
from harness.sessions.lines.headers import read_first_line
from harness.sessions.lines.layout import LEDGER_SUFFIX

__all__ = ["agent_folders", "agent_named", "sessions_by_agent"]


async def sessions_by_agent(config: AgentConfig, ctx: RuntimeContext) -> dict[str, frozenset[str]]:
    """The encoded ids of the sessions that each agent has with this user, by the agent's id; only those that have any.

    Raises `InvalidId`, `ConfigError`.
    """
    root = tenant_root(config.workspace, owner_of(config, ctx))
    return await pool.run(lambda: dict(_sessions(root)))


def agent_folders(root: Path) -> list[Path]:
    """The folders of the agents in a tenant's folder. Blocking."""
    return [root / AGENTS / item.name for item in disk.list_folder(root / AGENTS) if item.is_dir]


def agent_named(folder: Path) -> str | None:
    """The id of the agent of a folder; one that was shortened stands in its ledgers. Blocking."""
    if (decoded := decode_name(folder.name)) is not None:
        return decoded
    for item in disk.list_folder(folder / "sessions"):
        if item.name.endswith(LEDGER_SUFFIX):
            agent = (parse_line(read_first_line(folder / "sessions" / item.name)) or {}).get("agent")
            if isinstance(agent, str) and encode_name(agent) == folder.name:
                return agent
    return None


def _sessions(root: Path) -> Iterator[tuple[str, frozenset[str]]]:
    for folder in agent_folders(root):
        names = [item.name for item in disk.list_folder(folder / "sessions") if item.name.endswith(LEDGER_SUFFIX)]
        if names:
            ids = frozenset(name.removesuffix(LEDGER_SUFFIX) for name in names)
            yield agent_named(folder) or folder.name, ids
