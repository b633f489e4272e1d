"""A `Tree` on whatever fsspec reaches.

Only the calls of fsspec that take one path are used: the others read `*`, `?` and `[` in a path as
patterns. There is no lock and no rename to rely on; what a store can do is one whole write of one
key, so a file is written by that, and moved by a copy and a removal.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import ParamSpec, Protocol, TypeVar

from harness.errors import FilesystemError, PathRefused
from harness.filesystem import pool
from harness.filesystem.lowlevel import temporary_name
from harness.filesystem.paths import Parts, join
from harness.filesystem.trees import Node, in_the_way, loadable, missing, taken
from harness.ids import timestamp

__all__ = ["FsspecTree", "Store"]

_PAUSES = (0.05, 0.2)  # seconds before the second and the third try
_TURN_TIMEOUT = 5.0  # seconds
_TURN_POLL = 0.025
# Stores in which a key appears with its whole content or not at all.
_WHOLE_WRITES = frozenset({"abfs", "abfss", "az", "gcs", "gs", "memory", "oci", "oss", "r2", "s3", "s3a"})
_MISSING = (FileNotFoundError, NotADirectoryError)
# Errors that another try would only repeat.
_FINAL = (FileExistsError, ImportError, IsADirectoryError, NotImplementedError, PermissionError, TypeError, ValueError)
_TIMES = ("mtime", "LastModified", "last_modified", "updated", "created")

_log = logging.getLogger("harness.filesystem")
P = ParamSpec("P")
T = TypeVar("T")


class Store(Protocol):
    """The part of an fsspec filesystem that is used here; fsspec ships no types."""

    def info(self, path: str) -> Mapping[str, object]:
        """Name, type, size and times of a file or folder."""

    def ls(self, path: str, detail: bool) -> list[Mapping[str, object]]:
        """The same of all that is in a folder."""

    def cat_file(self, path: str) -> bytes:
        """A whole file."""

    def pipe_file(self, path: str, value: bytes) -> object:
        """Write a whole file."""

    def cp_file(self, path1: str, path2: str) -> object:
        """Copy a file onto a path."""

    def rm_file(self, path: str) -> object:
        """Remove a file."""

    def makedirs(self, path: str, exist_ok: bool) -> object:
        """Make a folder and those above it."""

    def rmdir(self, path: str) -> object:
        """Remove an empty folder."""

    def invalidate_cache(self) -> object:
        """Forget listings."""


class FsspecTree:
    """Keys below `root`; `connect` gives the fsspec filesystem to use in the current thread."""

    def __init__(self, connect: Callable[[], Store], protocol: str, root: str) -> None:
        self._connect = connect
        self._root = root.rstrip("/")
        self.place = f"{protocol}:{self._root}"
        self._writes_whole = protocol in _WHOLE_WRITES

    def stat(self, parts: Parts) -> Node | None:
        """See `Tree`."""
        try:
            return _node(parts, self._try("look at", parts, self._fs.info, self._key(parts)))
        except _MISSING:
            return None

    def children(self, parts: Parts) -> list[Node]:
        """See `Tree`."""
        if parts and (node := self.stat(parts)) and not node.is_dir:
            raise in_the_way(parts, is_dir=False)
        try:
            found = self._try("list", parts, self._list, self._key(parts))
        except _MISSING:
            if parts:
                raise missing(parts) from None
            return []
        return [node for one in found if (node := self._listed(parts, one))]

    def load(self, parts: Parts, limit: int) -> bytes:
        """See `Tree`."""
        loadable(self.stat(parts), parts, limit)
        try:
            return bytes(self._try("read", parts, self._fs.cat_file, self._key(parts)))
        except _MISSING:
            raise missing(parts) from None

    def store(self, parts: Parts, data: bytes, *, exclusive: bool) -> None:
        """See `Tree`. Two processes that make the same file at once both succeed, and the later one's stays."""
        self._check_folders(parts)
        self._check_storable(parts, exclusive)
        self._try("make the folder of", parts, self._fs.makedirs, self._key(parts[:-1]), exist_ok=True)
        if self._writes_whole:
            self._try("write", parts, self._fs.pipe_file, self._key(parts), data)
            return
        # Elsewhere a reader, or a crash, may meet a half written file: so it is written under another name.
        temporary = (*parts[:-1], temporary_name())
        self._try("write", parts, self._fs.pipe_file, self._key(temporary), data)
        self._move_file(temporary, parts)

    def extend(self, parts: Parts, data: bytes, limit: int) -> int:
        """See `Tree`. A store cannot append: the file is read and written whole."""
        before = b"" if self.stat(parts) is None else self.load(parts, limit)
        if len(before) + len(data) > limit:
            size = len(before) + len(data)
            raise FilesystemError(f"{join(parts)} would have {size} bytes, the most is {limit}; write less")
        self.store(parts, before + data, exclusive=False)
        return len(before) + len(data)

    def discard(self, parts: Parts) -> bool:
        """See `Tree`. Files first, so that a failure leaves a folder with less in it, but no loose file."""
        node = self.stat(parts)
        if node is None:
            return False
        if not node.is_dir:
            self._remove_file(parts)
            return True
        for child in self.children(parts):
            self.discard(child.parts)
        self._remove_folder(parts)
        return True

    def shift(self, source: Parts, target: Parts) -> None:
        """See `Tree`. A folder goes file by file, each copied before it is removed: a failure loses none."""
        node = self.stat(source)
        if node is None:
            raise missing(source)
        self._check_folders(target)
        self._check_storable(target, exclusive=False)
        self._try("make the folder of", target, self._fs.makedirs, self._key(target[:-1]), exist_ok=True)
        if not node.is_dir:
            self._move_file(source, target)
            return
        self._try("make", target, self._fs.makedirs, self._key(target), exist_ok=True)
        for child in self.children(source):
            self.shift(child.parts, (*target, child.parts[-1]))
        self._remove_folder(source)

    async def turn(self, work: Callable[[], T]) -> T:
        """See `Tree`; between the threads of this process only, since stores have no locks."""
        lock, deadline = _turns.of(self.place), time.monotonic() + _TURN_TIMEOUT
        while (done := await pool.run(_do_if_free, lock, work)) is None:
            if time.monotonic() >= deadline:
                raise FilesystemError("these files are being changed elsewhere for a long time; try again later")
            await asyncio.sleep(_TURN_POLL)
        return done[0]

    @property
    def _fs(self) -> Store:
        return self._connect()

    def _key(self, parts: Parts) -> str:
        if any("::" in part for part in parts):
            raise PathRefused(f"{join(parts)} contains '::', which fsspec reads as a chain of URLs; use another name")
        return "/".join((self._root, *parts))

    def _list(self, key: str) -> list[Mapping[str, object]]:
        self._fs.invalidate_cache()  # for those that keep one whatever they are told
        return self._fs.ls(key, detail=True)

    def _listed(self, folder: Parts, found: Mapping[str, object]) -> Node | None:
        key = str(found["name"]).rstrip("/")
        name = key.rsplit("/", 1)[-1]
        # Object stores list the marker of an empty folder in itself.
        if not name or "::" in name or key.strip("/") == self._key(folder).strip("/"):
            return None
        try:
            return _node((*folder, name), found)
        except PathRefused:
            return None

    def _check_folders(self, parts: Parts) -> None:
        """A store of keys would take `a/b` beside a file `a`."""
        for depth in range(1, len(parts)):
            node = self.stat(parts[:depth])
            if node is None:
                return
            if not node.is_dir:
                raise in_the_way(parts[:depth], is_dir=False)

    def _check_storable(self, parts: Parts, exclusive: bool) -> None:
        node = self.stat(parts)
        if node and node.is_dir:
            raise in_the_way(parts, is_dir=True)
        if node and exclusive:
            raise taken(parts)

    def _move_file(self, source: Parts, target: Parts) -> None:
        old, new = self._key(source), self._key(target)
        try:
            self._try("move", source, self._fs.cp_file, old, new)
        except NotImplementedError:
            data = self._try("read", source, self._fs.cat_file, old)
            self._try("write", target, self._fs.pipe_file, new, data)
        self._remove_file(source)

    def _remove_file(self, parts: Parts) -> None:
        try:
            self._try("remove", parts, self._fs.rm_file, self._key(parts))
        except _MISSING:
            _log.debug("%s was gone already", join(parts))  # removed elsewhere, or by a try whose answer was lost

    def _remove_folder(self, parts: Parts) -> None:
        try:
            self._try("remove", parts, self._fs.rmdir, self._key(parts))
        except (*_MISSING, NotImplementedError):
            _log.debug("%s went with its last file", join(parts))

    def _try(self, action: str, parts: Parts, call: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Call the store, up to three times. Errors of any library may come out, so all are translated here."""
        for pause in (*_PAUSES, None):
            try:
                return call(*args, **options)
            except (*_MISSING, NotImplementedError, FilesystemError):
                raise
            except Exception as error:
                if pause is None or isinstance(error, _FINAL):
                    raise _failed(action, parts, error) from error
                _log.warning("cannot %s %s (%s); trying again", action, join(parts), error)
                time.sleep(pause)
        raise AssertionError("the last try returns or raises")


class _Turns:
    """A few locks for any number of places; two places may share one. New in a forked child."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self._locks = [threading.Lock() for _ in range(64)]

    def of(self, place: str) -> threading.Lock:
        return self._locks[hash(place) % len(self._locks)]


_turns = _Turns()
os.register_at_fork(after_in_child=_turns.renew)


def _do_if_free(lock: threading.Lock, work: Callable[[], T]) -> tuple[T] | None:
    if not lock.acquire(blocking=False):
        return None
    try:
        return (work(),)
    finally:
        lock.release()


def _failed(action: str, parts: Parts, error: Exception) -> FilesystemError:
    # The store's own words may name hosts, buckets and keys, so they stay in the cause.
    return FilesystemError(f"cannot {action} {join(parts)}: the store failed ({type(error).__name__}); try again later")


def _node(parts: Parts, found: Mapping[str, object]) -> Node:
    kind = found.get("type")
    if found.get("islink") or kind not in ("file", "directory"):
        raise PathRefused(f"{join(parts)} is a link or something else than a file; give the path of a file")
    is_dir = kind == "directory"
    return Node(parts, is_dir, 0 if is_dir else _size(found), _modified(found))


def _size(found: Mapping[str, object]) -> int:
    size = found.get("size")
    return int(size) if isinstance(size, int | float) else 0


def _modified(found: Mapping[str, object]) -> str:
    value = next((found[key] for key in _TIMES if found.get(key)), None)
    if isinstance(value, int | float):
        value = datetime.fromtimestamp(value, UTC)
    if isinstance(value, datetime):
        return timestamp(value if value.tzinfo else value.replace(tzinfo=UTC))
    return value if isinstance(value, str) else ""
