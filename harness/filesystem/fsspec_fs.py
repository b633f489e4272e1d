"""Tenants' files in any place that fsspec reaches: object stores, servers, memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from harness.errors import ConfigError, FilesystemError
from harness.filesystem.fsspec_tree import FsspecTree, Store
from harness.filesystem.local_tree import LocalTree
from harness.filesystem.namespaces import TENANTS
from harness.filesystem.paths import PathRules
from harness.filesystem.treefs import MAX_FILE_BYTES, TreeFilesystem
from harness.filesystem.trees import Tree
from harness.ids import join_names

__all__ = ["FsspecFilesystem"]

_LOCAL = frozenset({"file", "local"})
# They reach a second filesystem, where our checks of links and freshness would not hold.
_WRAPPERS = frozenset({"asyncwrapper", "blockcache", "cached", "dir", "filecache", "generic", "simplecache"})

_TreeAt = Callable[[tuple[str, ...]], Tree]


class FsspecFilesystem(TreeFilesystem):
    """Files below a URL, such as `s3://bucket/workspace`; options are those of fsspec for that protocol.

    As made, it is a workspace, in the same layout as `LocalFilesystem`, and `for_namespace` gives each
    tenant its part. `file://` is a `LocalFilesystem` in all but name. `memory://` is one store for the
    whole process, so each workspace in it needs a URL of its own.

    A store that fails for a moment is asked again, three times in all. Changing a file takes turns
    within this process only. Raises `ConfigError` for a protocol that is unknown, not installed, or
    wraps another one.
    """

    def __init__(
        self,
        url: str,
        *,
        max_file_bytes: int = MAX_FILE_BYTES,
        _tree_at: _TreeAt | None = None,
        _tenant: tuple[str, ...] | None = None,
        **storage_options: object,
    ) -> None:
        self.url = url
        """As it was given."""
        self._tree_at = _tree_at or _trees_below(url, storage_options)
        self._is_tenant = _tenant is not None
        below = () if _tenant is None else (TENANTS, join_names(_tenant))
        rules = PathRules(() if _tenant is not None else (TENANTS,))
        super().__init__(self._tree_at(below), self._tree_at(()) if below else None, rules, max_file_bytes)

    def for_namespace(self, namespace: tuple[str, ...]) -> FsspecFilesystem:
        """See `AbstractFilesystem`; the part is `<url>/tenants/<name>`."""
        if self._is_tenant:
            raise ConfigError(f"this is a tenant's own part of {self.url} already; ask the filesystem of the workspace")
        return FsspecFilesystem(self.url, max_file_bytes=self._max, _tree_at=self._tree_at, _tenant=namespace)


def _trees_below(url: str, options: Mapping[str, object]) -> _TreeAt:
    """What makes the tree at a folder below `url`."""
    import fsspec.core  # type: ignore[import-untyped]  # fsspec ships no types; imported late, for it is slow

    protocol, path = fsspec.core.split_protocol(url)
    if "::" in url or protocol in _WRAPPERS or ".." in path.split("/"):
        raise ConfigError(f"{url!r} is a chain, a wrapper or has '..' in it; give the plain URL of the place itself")
    try:
        kind = fsspec.core.get_filesystem_class(protocol or "file")
    except (ImportError, ValueError) as error:
        raise ConfigError(f"cannot use {url!r}: {error}; install what serves it, or check the URL") from error
    root = str(kind._strip_protocol(url)).rstrip("/")
    if protocol is None or protocol in _LOCAL:
        return lambda below: LocalTree(Path(root or "/").absolute().joinpath(*below))
    # Neither an instance nor a listing that fsspec remembers: others write here too.
    settings = {**kind._get_kwargs_from_urls(url), **options, "skip_instance_cache": True, "use_listings_cache": False}
    connections = _Connections(partial(kind, **settings), shared=kind.async_impl)
    return lambda below: FsspecTree(connections.get, protocol, "/".join((root, *below)))


class _Connections:
    """Instances of a filesystem class: one if threads may share it, else one a thread."""

    def __init__(self, make: Callable[[], Store], *, shared: bool) -> None:
        self._make = make
        self._kept = SimpleNamespace() if shared else threading.local()

    def get(self) -> Store:
        """The instance to use here and now; a forked child makes its own. Raises `FilesystemError`."""
        pid, store = getattr(self._kept, "store", (0, None))
        if store is None or pid != os.getpid():
            store = self._connect()
            self._kept.store = (os.getpid(), store)
        return store

    def _connect(self) -> Store:
        try:
            return self._make()
        except Exception as error:
            raise FilesystemError(f"cannot reach the store ({type(error).__name__}); check its options") from error
