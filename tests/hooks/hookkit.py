"""A scope to show hooks events in, without an agent around it."""

from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness.context import CallScope, RuntimeContext
from harness.filesystem import AbstractFilesystem, LocalFilesystem


def scope_of(workspace: Path, user: str | None = "alice", **services: Any) -> CallScope:
    namespace = () if user is None else (user,)
    files = LocalFilesystem(workspace).for_namespace(namespace)
    found = {AbstractFilesystem: files, **services.get("services", {})}
    return CallScope(RuntimeContext(session_id="s1", user_id=user), namespace, "notes", "s1", MappingProxyType(found))


def put(path: Path, text: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
