"""Track 1 in a directory of the caller's choice."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from harness.ids import decode_name, encode_name, join_names
from harness.sessions.snapshots.state_files import FileSession
from harness.state import SessionKey

__all__ = ["JsonSession"]


@dataclass(frozen=True, slots=True)
class _Layout:
    """`<root>/<namespace>/<agent>/<session>/`."""

    root: Path

    def folder(self, key: SessionKey) -> Path:
        return self.parent(key.namespace, key.agent) / encode_name(key.session, "session id")

    def parent(self, namespace: tuple[str, ...], agent: str) -> Path:
        return self.root / join_names(namespace) / encode_name(agent, "agent id")

    def session(self, agent: str, name: str) -> str | None:
        return decode_name(name)

    def is_shortened(self, folder: Path) -> bool:
        return "%%" in str(folder.relative_to(self.root))

    def check(self, namespace: tuple[str, ...]) -> None:
        """Every folder of a session that needs it has its own note."""

    def claim(self, namespace: tuple[str, ...]) -> None:
        """As `check`."""


class JsonSession(FileSession):
    """A `Session` on JSON files below any directory, made at the first write.

    For keeping snapshots apart from the workspace, on a disk of their own for example.
    `sync=True` syncs every write. Without it a power cut, not a killed process, may cost the newest
    snapshots; the ledger, which is synced, brings them back.
    """

    def __init__(self, path: str | os.PathLike[str], *, sync: bool = False) -> None:
        super().__init__(_Layout(Path(path).absolute()), sync=sync)
        self.path = Path(path).absolute()
