"""A `Tree` on a local disk that no link leads out of.

Each folder of a path is opened below the one before it, by name and without following links, and
the file then by its name in the last of them. So what was checked is what is used: a link that is
swapped in at any moment is refused like one that was there from the start.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from harness.errors import FilesystemError, PathRefused, PersistenceError, RemovalUnfinished, SessionBusy
from harness.filesystem import disk
from harness.filesystem.locks import FileLock
from harness.filesystem.lowlevel import (
    FILE_MODE,
    FOLDER_MODE,
    advice,
    sync_descriptor,
    temporary_name,
    write_all,
    write_and_close,
)
from harness.filesystem.namespaces import AGENTS, REMOVAL_LOCK
from harness.filesystem.paths import Parts, join
from harness.filesystem.trees import Node, in_the_way, missing, taken, too_large
from harness.ids import timestamp

__all__ = ["LocalTree"]

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Without O_NONBLOCK, opening a named pipe would wait for a writer.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_TURN_TIMEOUT = 5.0  # seconds

_log = logging.getLogger("harness.filesystem")
T = TypeVar("T")


class LocalTree:
    """Files below `root`, which itself may be reached through links. Made on the first write."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.place = f"file:{root}"

    def stat(self, parts: Parts) -> Node | None:
        """See `Tree`."""
        try:
            with _translated(parts), self._folder(parts[:-1]) as folder:
                return _node(parts, _look(folder, parts))
        except FileNotFoundError:
            return None

    def children(self, parts: Parts) -> list[Node]:
        """See `Tree`."""
        try:
            with _translated(parts), self._folder(parts) as folder, os.scandir(folder) as entries:
                return [node for entry in entries if (node := _listed(parts, entry))]
        except FileNotFoundError:
            if not parts:
                return []
            raise (in_the_way(parts, is_dir=False) if self.stat(parts) else missing(parts)) from None

    def load(self, parts: Parts, limit: int) -> bytes:
        """See `Tree`."""
        try:
            with _translated(parts), self._folder(parts[:-1]) as folder:
                _node(parts, _look(folder, parts))  # a link or a pipe is refused by what it is
                descriptor = os.open(parts[-1], _READ, dir_fd=folder)
                try:
                    _check_loadable(parts, os.fstat(descriptor), limit)
                    return _read_all(descriptor)
                finally:
                    os.close(descriptor)
        except FileNotFoundError:
            raise missing(parts) from None

    def store(self, parts: Parts, data: bytes, *, exclusive: bool) -> None:
        """See `Tree`."""
        try:
            with _translated(parts), self._folder(parts[:-1], make=True) as folder:
                _check_storable(folder, parts, exclusive)
                with _temporary(folder, data) as temporary:
                    _give_name(folder, temporary, parts, exclusive)
        except FileNotFoundError:
            raise FilesystemError(f"the folder of {join(parts)} was removed meanwhile; repeat the call") from None

    def extend(self, parts: Parts, data: bytes, limit: int) -> int:
        """See `Tree`."""
        try:
            with _translated(parts), self._folder(parts[:-1], make=True) as folder:
                _check_storable(folder, parts, exclusive=False)
                descriptor = os.open(parts[-1], _APPEND, FILE_MODE, dir_fd=folder)
                try:
                    return _add(descriptor, parts, data, limit)
                finally:
                    os.close(descriptor)
        except FileNotFoundError:
            raise FilesystemError(f"the folder of {join(parts)} was removed meanwhile; repeat the call") from None

    def discard(self, parts: Parts) -> bool:
        """See `Tree`."""
        if not parts:
            return self._discard_all()
        try:
            with _translated(parts), self._folder(parts[:-1]) as folder:
                if stat.S_ISDIR(_look(folder, parts).st_mode):
                    shutil.rmtree(parts[-1], dir_fd=folder)
                else:
                    os.unlink(parts[-1], dir_fd=folder)
        except FileNotFoundError:
            return False
        return True

    def shift(self, source: Parts, target: Parts) -> None:
        """See `Tree`."""
        try:
            with _translated(source), self._folder(source[:-1]) as old:
                _node(source, _look(old, source))
                with self._folder(target[:-1], make=True) as new:
                    _check_storable(new, target, exclusive=False)
                    os.rename(source[-1], target[-1], src_dir_fd=old, dst_dir_fd=new)
        except FileNotFoundError:
            raise missing(source) from None

    async def turn(self, work: Callable[[], T]) -> T:
        """See `Tree`; holds between processes as well."""
        agents = self.root / AGENTS
        lock = FileLock(agents / "edit.lock", barrier=agents / REMOVAL_LOCK)
        try:
            return await lock.run(_TURN_TIMEOUT, work)
        except SessionBusy as error:
            raise FilesystemError("these files are being changed elsewhere for a long time; try again later") from error
        except RemovalUnfinished as error:
            raise FilesystemError(
                "the files of this tenant were being removed when that was cut off; an administrator has to finish it"
            ) from error
        except PersistenceError as error:
            _log.error("%s", error)
            raise FilesystemError("the files of this tenant cannot be locked; an administrator has to look") from error

    @contextmanager
    def _folder(self, parts: Parts, *, make: bool = False) -> Iterator[int]:
        """A descriptor of a folder, reached from the root without following a link."""
        if make:
            self._make_root()
        descriptor = os.open(self.root, _FOLDER)
        try:
            for depth in range(len(parts)):
                below = _step(descriptor, parts[: depth + 1], make=make)
                os.close(descriptor)
                descriptor = below
            yield descriptor
        finally:
            os.close(descriptor)

    def _discard_all(self) -> bool:
        if disk.is_link(self.root):
            raise _is_link(())  # what it leads to would stay
        try:
            return disk.remove_tree(self.root)
        except PersistenceError as error:
            _log.error("%s", error)
            raise FilesystemError(
                "the folder of this tenant cannot be removed; an administrator has to look"
            ) from error

    def _make_root(self) -> None:
        try:
            disk.make_folder(self.root)
        except PersistenceError as error:
            # Not shown as it is: it names the place on this machine.
            _log.error("%s", error)
            raise FilesystemError("the folder of this tenant cannot be made; an administrator has to look") from error


def _step(folder: int, parts: Parts, *, make: bool) -> int:
    name = parts[-1]
    if make:
        with suppress(FileExistsError):
            os.mkdir(name, FOLDER_MODE, dir_fd=folder)
    try:
        return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
    except NotADirectoryError:
        # A link gives the same error as a file.
        if stat.S_ISLNK(_look(folder, parts).st_mode):
            raise _is_link(parts) from None
        if make:
            raise in_the_way(parts, is_dir=False) from None
        raise FileNotFoundError from None


def _look(folder: int, parts: Parts) -> os.stat_result:
    return os.stat(parts[-1] if parts else ".", dir_fd=folder, follow_symlinks=False)


def _node(parts: Parts, found: os.stat_result) -> Node:
    if stat.S_ISLNK(found.st_mode):
        raise _is_link(parts)
    is_dir = stat.S_ISDIR(found.st_mode)
    if not is_dir and not stat.S_ISREG(found.st_mode):
        raise PathRefused(f"{join(parts)} is a pipe, socket or device; give the path of a file")
    modified = timestamp(datetime.fromtimestamp(found.st_mtime, UTC))
    return Node(parts, is_dir, 0 if is_dir else found.st_size, modified)


def _listed(folder: Parts, entry: os.DirEntry[str]) -> Node | None:
    try:
        return _node((*folder, entry.name), entry.stat(follow_symlinks=False))
    except (PathRefused, FileNotFoundError):
        return None  # a link, a pipe, or removed meanwhile


def _check_loadable(parts: Parts, found: os.stat_result, limit: int) -> None:
    node = _node(parts, found)
    if node.is_dir:
        raise in_the_way(parts, is_dir=True)
    if node.size > limit:
        raise too_large(parts, node.size, limit)


def _read_all(descriptor: int) -> bytes:
    with open(descriptor, "rb", buffering=0, closefd=False) as file:
        return file.readall()


def _add(descriptor: int, parts: Parts, data: bytes, limit: int) -> int:
    """Add to an open file and sync it; what a full disk let through is taken back."""
    size = os.fstat(descriptor).st_size
    if size + len(data) > limit:
        raise FilesystemError(f"{join(parts)} would have {size + len(data)} bytes, the most is {limit}; write less")
    try:
        write_all(descriptor, data)
        sync_descriptor(descriptor)
    except OSError:
        os.ftruncate(descriptor, size)
        raise
    return size + len(data)


def _check_storable(folder: int, parts: Parts, exclusive: bool) -> None:
    try:
        node = _node(parts, _look(folder, parts))
    except FileNotFoundError:
        return
    if node.is_dir:
        raise in_the_way(parts, is_dir=True)
    if exclusive:
        raise taken(parts)


@contextmanager
def _temporary(folder: int, data: bytes) -> Iterator[str]:
    """A synced file in the folder, under a name of its own; removed if it still has that name afterwards."""
    name = temporary_name()
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE, dir_fd=folder)
    try:
        write_and_close(descriptor, data, sync=True)
        yield name
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)


def _give_name(folder: int, temporary: str, parts: Parts, exclusive: bool) -> None:
    if not exclusive:
        os.rename(temporary, parts[-1], src_dir_fd=folder, dst_dir_fd=folder)
        return
    try:
        os.link(temporary, parts[-1], src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        raise taken(parts) from None
    except OSError as error:
        if error.errno not in disk.NO_HARD_LINKS:
            raise
        # Safe enough: writers of new files have taken turns.
        os.rename(temporary, parts[-1], src_dir_fd=folder, dst_dir_fd=folder)


@contextmanager
def _translated(parts: Parts) -> Iterator[None]:
    """Errors without the root in them. A missing file is left to the caller, who knows what it means."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _is_link(parts) from None  # it was swapped in since the look
        raise FilesystemError(f"{join(parts)}: {advice(error)}") from error


def _is_link(parts: Parts) -> PathRefused:
    return PathRefused(f"{join(parts)} is a link, and links are not followed here; give the path of a file or folder")
