"""Tenants' files on a local disk."""

from __future__ import annotations

from pathlib import Path

from harness.errors import ConfigError
from harness.filesystem.local_tree import LocalTree
from harness.filesystem.namespaces import TENANTS, tenant_root
from harness.filesystem.paths import PathRules
from harness.filesystem.treefs import MAX_FILE_BYTES, TreeFilesystem

__all__ = ["LocalFilesystem"]


class LocalFilesystem(TreeFilesystem):
    """Files below a folder that nothing leads out of; links are refused, also those that stay inside.

    As made, it is a workspace: `for_namespace` gives each tenant its part, and the folder `tenants`
    is off limits here. A tenant's part shows `AGENTS.md`, `knowledge/`, `skills/` and `subagents/` of
    the workspace too, read-only: what a tenant writes there is its own and hides the shared file.

    `shared` is another folder to take those from. `max_file_bytes` is the most that is read or written
    at once. The folder is made on the first write.
    """

    def __init__(
        self,
        root: str | Path,
        *,
        shared: str | Path | None = None,
        max_file_bytes: int = MAX_FILE_BYTES,
        _tenant: bool = False,
    ) -> None:
        # Absolute, so that a later change of the working directory moves nothing.
        self.root = Path(root).absolute()
        """The folder."""
        self._shared_root = Path(shared).absolute() if shared is not None else None
        self._is_tenant = _tenant
        shared_tree = LocalTree(self._shared_root) if self._shared_root else None
        super().__init__(LocalTree(self.root), shared_tree, PathRules(() if _tenant else (TENANTS,)), max_file_bytes)

    def for_namespace(self, namespace: tuple[str, ...]) -> LocalFilesystem:
        """See `AbstractFilesystem`; the part is `<root>/tenants/<name>`."""
        if self._is_tenant:
            raise ConfigError(f"{self.root} is a tenant's own folder already; ask the filesystem of the workspace")
        root = tenant_root(self.root, namespace)
        return LocalFilesystem(root, shared=self._shared_root or self.root, max_file_bytes=self._max, _tenant=True)
