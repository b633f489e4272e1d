"""Where the files of one session are, and whose they must be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.errors import SessionDamaged
from harness.filesystem.namespaces import REMOVAL_LOCK
from harness.ids import encode_name
from harness.sessions.lines.entries import EntryDict

__all__ = ["ANCHOR_SUFFIX", "CONTEXT_SUFFIX", "LEDGER_SUFFIX", "SNAPSHOTS", "Owner", "SessionFiles"]

LEDGER_SUFFIX = ".log.jsonl"
CONTEXT_SUFFIX = ".jsonl"
ANCHOR_SUFFIX = ".head.json"
LOCK_SUFFIX = ".lock"
REMOVED_SUFFIX = ".deleted"
SNAPSHOTS = "context"
"""The folder beside `sessions/` in which a workspace keeps snapshots."""


@dataclass(frozen=True)
class SessionFiles:
    """The paths of one session in a folder `sessions/`; an encoded id has no dot, so none can meet.

    Each is made once, since each commit asks for the same few.
    """

    folder: Path
    name: str

    @classmethod
    def of(cls, folder: Path, session_id: str) -> SessionFiles:
        """The files of a session. Raises `InvalidId`."""
        return cls(folder, encode_name(session_id, "session_id"))

    @cached_property
    def ledger(self) -> Path:
        """Everything, append only."""
        return self.folder / f"{self.name}{LEDGER_SUFFIX}"

    @cached_property
    def removed(self) -> Path:
        """The ledger while it is being deleted."""
        return self.folder / f"{self.name}{LEDGER_SUFFIX}{REMOVED_SUFFIX}"

    @cached_property
    def context(self) -> Path:
        """What the model sees now; can be rebuilt."""
        return self.folder / f"{self.name}{CONTEXT_SUFFIX}"

    @cached_property
    def anchor(self) -> Path:
        """The end and the start of the view of the ledger."""
        return self.folder / f"{self.name}{ANCHOR_SUFFIX}"

    @cached_property
    def lock(self) -> Path:
        """Locked by the kernel while there is a writer; that it is there means nothing."""
        return self.folder / f"{self.name}{LOCK_SUFFIX}"

    @cached_property
    def barrier(self) -> Path:
        """Locked by the kernel while the whole tenant is removed; nobody becomes a writer then."""
        return self.folder.parent.parent / REMOVAL_LOCK

    @cached_property
    def snapshot(self) -> Path:
        """The position of the snapshot that a workspace keeps beside the ledger."""
        return self.folder.parent / SNAPSHOTS / self.name / "memory.json"

    @cached_property
    def blobs(self) -> Path:
        """Large contents and media of all sessions of the folder, by SHA-256."""
        return self.folder / "files"


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose session it is: what the first line of its ledger must say.

    `anchor_key` signs its anchors, and checks them; see `anchor`.
    """

    session: str
    agent: str
    namespace: tuple[str, ...]
    anchor_key: bytes | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        return _named(self.fields())

    def fields(self) -> dict[str, Any]:
        """The header's fields for it."""
        return {"session": self.session, "agent": self.agent, "tenant": list(self.namespace)}

    def check(self, header: EntryDict, place: Path) -> None:
        """Raise `SessionDamaged` if the header names another owner: two long ids met, or a file was moved."""
        found = {key: header.get(key) for key in ("session", "agent", "tenant")}
        if found != self.fields():
            raise SessionDamaged(
                f"{place} belongs to {_named(found)}, not to {self}; nothing was changed: "
                "move the file back where it came from, or use another session id"
            )


def _named(fields: Mapping[str, Any]) -> str:
    """An owner in words."""
    tenant = fields["tenant"]
    parts = "/".join(map(str, tenant)) if isinstance(tenant, list) else str(tenant)
    return f"session {fields['session']!r} of agent {fields['agent']!r} and tenant {parts!r}"
