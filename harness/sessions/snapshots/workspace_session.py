"""Track 1 in the workspace, beside track 2: the default store of an agent."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from harness.filesystem import namespaces
from harness.ids import check_id, decode_name, encode_name, join_names
from harness.sessions.lines.layout import SNAPSHOTS, SessionFiles
from harness.sessions.snapshots.state_files import FileSession
from harness.state import SessionKey

__all__ = ["WorkspaceSession"]


@dataclass(frozen=True, slots=True)
class _Layout:
    """`<workspace>/tenants/<namespace>/agents/<agent id>/context/<session>/`.

    A key of another agent is put there as `<agent>+<session>`: `+` occurs in no encoded name.
    """

    workspace: Path
    agent_id: str

    def folder(self, key: SessionKey) -> Path:
        if key.agent == self.agent_id:
            name = encode_name(key.session, "session id")
        else:
            name = join_names((key.agent, key.session), "session id")
        return self.parent(key.namespace, key.agent) / name

    def parent(self, namespace: tuple[str, ...], agent: str) -> Path:
        root = namespaces.tenant_root(self.workspace, namespace)
        return namespaces.agent_root(root, self.agent_id) / SNAPSHOTS

    def session(self, agent: str, name: str) -> str | None:
        if agent == self.agent_id:
            return decode_name(name)
        beginning = encode_name(agent, "agent id") + "+"
        return decode_name(name.removeprefix(beginning)) if name.startswith(beginning) else None

    def is_shortened(self, folder: Path) -> bool:
        return "%%" in str(folder.relative_to(self.workspace))

    def check(self, namespace: tuple[str, ...]) -> None:
        namespaces.check_tenant_file(namespaces.tenant_root(self.workspace, namespace), namespace)

    def claim(self, namespace: tuple[str, ...]) -> None:
        namespaces.write_tenant_file(namespaces.tenant_root(self.workspace, namespace), namespace)


class WorkspaceSession(FileSession):
    """A `Session` in the context folder of one agent, per tenant, in a workspace.

    A key that carries another agent's id is kept in the same place and apart, so that equal session
    ids of two agents never meet. `sync=True` syncs every write; without it a power cut, not a
    killed process, may cost the newest snapshots, which the ledger beside them brings back.
    Raises `InvalidId` for an agent id that cannot be stored.
    """

    def __init__(self, workspace: str | os.PathLike[str], agent_id: str, *, sync: bool = False) -> None:
        self.workspace = namespaces.workspace_root(workspace)
        self.agent_id = check_id("agent id", agent_id)
        super().__init__(_Layout(self.workspace, agent_id), sync=sync)

    def is_beside(self, key: SessionKey, files: SessionFiles) -> bool:
        """Whether a key's states lie beside the ledger of the same session, whose lock all who write there hold."""
        return self._layout.folder(key) == files.snapshot.parent
