"""From a call to its tenant, and from a tenant to its folders.

A namespace is a tuple of ids. Every namespace has one folder below the workspace, and none lies
inside another's. The folder's name may be shortened, so `tenant.json` in it holds the whole namespace.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from harness.context import RuntimeContext
from harness.errors import FileMissing, SessionDamaged
from harness.filesystem import disk
from harness.ids import encode_name, join_names
from harness.text import dumps, loads

__all__ = [
    "AGENTS",
    "TENANTS",
    "TENANT_FILE",
    "NamespaceFactory",
    "agent_root",
    "check_tenant_file",
    "tenant_root",
    "user_namespace",
    "write_tenant_file",
]

AGENTS = "agents"
"""The folder of a tenant that holds sessions; no path from a model reaches it."""
TENANTS = "tenants"
TENANT_FILE = "tenant.json"

NamespaceFactory: TypeAlias = Callable[[RuntimeContext], tuple[str, ...]]
"""Decides which tenant a call belongs to; called once at the start of each call.

Equal tuples share everything, different ones nothing. `()` is the tenant of calls without a user.
"""


def user_namespace(ctx: RuntimeContext) -> tuple[str, ...]:
    """The default `NamespaceFactory`: one tenant a user."""
    return () if ctx.user_id is None else (ctx.user_id,)


def tenant_root(workspace: Path, namespace: tuple[str, ...]) -> Path:
    """The tenant's folder; not made here. Raises `InvalidId` for a part that cannot be stored."""
    return workspace / TENANTS / join_names(namespace)


def agent_root(root: Path, agent_id: str) -> Path:
    """The folder of one agent below a tenant's root; not made here. Raises `InvalidId`."""
    return root / AGENTS / encode_name(agent_id, "agent id")


def write_tenant_file(root: Path, namespace: tuple[str, ...]) -> None:
    """Make the tenant's folder, and note in it whose it is; if that is noted already, check it.

    Blocking. Raises `SessionDamaged` if the folder belongs to another namespace.
    """
    path = root / TENANT_FILE
    if not check_tenant_file(root, namespace):
        disk.make_folder(root, sync=True)
        if not disk.create(path, dumps({"namespace": list(namespace)}) + b"\n", sync=True):
            check_tenant_file(root, namespace)  # another process was first


def check_tenant_file(root: Path, namespace: tuple[str, ...]) -> bool:
    """Check whose folder this is, before anything in it is trusted; False if nobody has noted it.

    Blocking. Raises `SessionDamaged` naming both namespaces if it belongs to another one.
    """
    path = root / TENANT_FILE
    try:
        found = _noted(disk.read(path))
    except FileMissing:
        return False
    except ValueError as error:
        raise SessionDamaged(f"{path} cannot be read ({error}); restore it from a backup") from error
    if found != list(namespace):
        raise SessionDamaged(
            f"{path} says that this folder belongs to {found!r}, but {list(namespace)!r} was asked for; "
            "nothing was changed: move one of the two to another workspace"
        )
    return True


def _noted(raw: bytes) -> object:
    value = loads(raw)
    if not isinstance(value, dict) or "namespace" not in value:
        raise ValueError('it has no "namespace"')
    return value["namespace"]
