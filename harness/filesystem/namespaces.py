"""From a call to its tenant, and from a tenant to its folders.

A namespace is a tuple of ids. Every namespace has one folder below the workspace, and none lies
inside another's. The folder's name may be shortened, so `tenant.json` in it holds the whole namespace.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from harness.context import RuntimeContext
from harness.errors import ConfigError, FileMissing, SessionDamaged
from harness.filesystem import disk
from harness.ids import encode_name, join_names
from harness.text import dumps, loads

__all__ = [
    "AGENTS",
    "REMOVAL_LOCK",
    "TENANTS",
    "TENANT_FILE",
    "NamespaceFactory",
    "agent_root",
    "check_tenant_file",
    "tenant_root",
    "user_namespace",
    "workspace_root",
    "write_tenant_file",
]

_log = logging.getLogger("harness.filesystem")

AGENTS = "agents"
"""The folder of a tenant that holds sessions; no path from a model reaches it."""
REMOVAL_LOCK = "removal.lock"
"""In that folder: locked while the whole tenant is removed. No agent's folder has a dot in its name."""
TENANTS = "tenants"
TENANT_FILE = "tenant.json"
_TRIES = 10

NamespaceFactory: TypeAlias = Callable[[RuntimeContext], tuple[str, ...]]
"""Decides which tenant a call belongs to; called once at the start of each call.

Equal tuples share everything, different ones nothing. `()` is the tenant of calls without a user.
"""


def user_namespace(ctx: RuntimeContext) -> tuple[str, ...]:
    """The default `NamespaceFactory`: one tenant a user."""
    return () if ctx.user_id is None else (ctx.user_id,)


def workspace_root(path: str | os.PathLike[str]) -> Path:
    """The one spelling of a workspace, whatever links, `..` and relative paths lead to it. Ask once, when it is opened.

    All that goes by paths within this process (who waits for whom, what is open) then knows a place as one. A link that
    is turned to another folder later moves nothing that is open. Raises `ConfigError` for what can be no path.
    """
    try:
        return Path(os.path.realpath(path))
    except ValueError as error:
        raise ConfigError(f"{os.fspath(path)!r} is no path ({error}); give that of a folder") from error


def tenant_root(workspace: Path, namespace: tuple[str, ...]) -> Path:
    """The tenant's folder; not made here. Raises `InvalidId` for a part that cannot be stored."""
    return workspace / TENANTS / join_names(namespace)


def agent_root(root: Path, agent_id: str) -> Path:
    """The folder of one agent below a tenant's root; not made here. Raises `InvalidId`."""
    return root / AGENTS / encode_name(agent_id, "agent id")


def write_tenant_file(root: Path, namespace: tuple[str, ...]) -> None:
    """Make the tenant's folder, and note in it whose it is; if that is noted already, check it.

    A note that nobody can read is set aside and written anew: the folder's name was made from the namespace, and no
    other one has it. Blocking. Raises `SessionDamaged` if the folder belongs to another namespace.
    """
    for _ in range(_TRIES):
        try:
            _write_tenant_file(root, namespace)
        except FileMissing:  # the folder went away meanwhile, with the whole tenant
            continue
        return
    _write_tenant_file(root, namespace)


def _write_tenant_file(root: Path, namespace: tuple[str, ...]) -> None:
    path = root / TENANT_FILE
    if not check_tenant_file(root, namespace):
        disk.make_folder(root, sync=True)
        _set_aside_unreadable(path)
        if not disk.create(path, dumps({"namespace": list(namespace)}) + b"\n", sync=True):
            check_tenant_file(root, namespace)  # another process was first


def check_tenant_file(root: Path, namespace: tuple[str, ...]) -> bool:
    """Check whose folder this is, before anything in it is trusted; False if no note that can be read says it.

    Blocking. Raises `SessionDamaged` naming both namespaces if it belongs to another one.
    """
    path = root / TENANT_FILE
    found = _noted(path)
    if found is not None and found != list(namespace):
        raise SessionDamaged(
            f"{path} says that this folder belongs to {found!r}, but {list(namespace)!r} was asked for; "
            "nothing was changed: move one of the two to another workspace"
        )
    return found is not None


def _set_aside_unreadable(path: Path) -> None:
    if disk.is_file_or_nothing(path) and (not disk.has_file(path) or _noted(path) is not None):
        return
    try:
        aside = disk.set_aside(path)
    except FileMissing:
        return  # another process was first
    _log.warning("%s could not be read; it was kept as %s and written anew", path, aside)


def _noted(path: Path) -> list[str] | None:
    """The namespace that stands there; None where there is nothing that a writer wrote."""
    try:
        value = loads(disk.read(path)) if disk.is_file_or_nothing(path) else None
    except (FileMissing, ValueError):
        return None
    found = value.get("namespace") if isinstance(value, dict) else None
    return found if isinstance(found, list) and all(isinstance(part, str) for part in found) else None
