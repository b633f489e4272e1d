"""Blocking file primitives. Call them through `pool.run`, never on an event loop.

Every function translates the errors of the operating system once, here: a missing file is
`FileMissing`, anything else `PersistenceError`, with the path, the system's words and what to do.
New files are 0600 and new folders 0700. `sync=True` means: on return the bytes, and where the name
is new its folder too, have been handed to the device.

Writers of one file take turns by a lock of their own (`locks.FileLock`); nothing here locks.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.errors import FileMissing
from harness.filesystem.appending import AppendFile, FileMark, append, append_to, mark
from harness.filesystem.confined import open_confined
from harness.filesystem.lowlevel import (
    FILE_MODE,
    FOLDER_MODE,
    TEMPORARY,
    open_and_look,
    open_regular,
    sync_descriptor,
    sync_folder,
    temporary_name,
    translated,
    translation,
    write_all,
    write_and_close,
)

__all__ = [
    "NO_HARD_LINKS",
    "AppendFile",
    "DirItem",
    "FileMark",
    "append",
    "append_to",
    "create",
    "has_file",
    "is_file_or_nothing",
    "is_leftover",
    "is_link",
    "list_folder",
    "make_folder",
    "mark",
    "overwrite",
    "read",
    "read_blocks",
    "remove",
    "remove_empty",
    "remove_leftovers",
    "remove_tree",
    "rename",
    "replace",
    "set_aside",
    "stands_in_the_way",
    "sync_folder",
    "temporary_folder",
    "write_block",
]

_DAMAGED = ".damaged-"
# A file that we write is never a link: following one would write outside the root.
_WRITE = os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
NO_HARD_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
"""What a file system without hard links answers to `os.link`."""


@dataclass(frozen=True, slots=True)
class DirItem:
    """One entry of a folder. A link is neither followed nor a folder nor a file; size in bytes, time in ns."""

    name: str
    is_dir: bool
    size: int
    mtime_ns: int
    is_file: bool


def make_folder(path: Path, *, sync: bool = False) -> None:
    """Make a folder and its missing parents, each 0700; fine if it is there already.

    With `sync` the folders that hold the new names are synced.
    """
    if path.is_dir():
        return
    if path.parent != path:
        make_folder(path.parent, sync=sync)
    with translated("make the folder", path):
        try:
            os.mkdir(path, FOLDER_MODE)
        except FileExistsError:
            if not path.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from None
    if sync:
        sync_folder(path.parent)


def read(path: Path, start: int = 0, length: int | None = None) -> bytes:
    """The bytes from `start` on, at most `length` of them; empty beyond the end."""
    with translated("read", path), open(path, "rb", buffering=0, opener=open_confined) as file:
        if start:
            file.seek(start)
        if length is None:
            return file.readall()
        return _read_some(file.fileno(), length)


def read_blocks(path: Path, size: int = 1024 * 1024, *, length: int = sys.maxsize) -> Iterator[bytes]:
    """The first `length` bytes of a file, to which a writer may be adding, a block of at most `size` at a time."""
    with translated("read", path), open(path, "rb", buffering=0, opener=open_confined) as file:
        while block := file.read(min(size, length)):
            length -= len(block)
            yield block


def replace(path: Path, data: bytes, *, sync: bool) -> None:
    """Put new content under a name: readers see the whole old or the whole new file, never a mixture."""
    with translated("replace", path), _temporary_file(path.parent, data, sync) as temporary:
        os.replace(temporary, path)
    if sync:
        sync_folder(path.parent)


def write_block(path: Path, data: bytes, *, sync: bool = False) -> None:
    """Overwrite the beginning of a file in place, making the file if it is not there.

    For small blocks with a check sum of their own: readers may see a mixture.
    """
    try:
        write_and_close(open_regular(path, _WRITE | os.O_CREAT), data, sync=sync)
    except OSError as error:
        raise translation("write", path, error) from error


def overwrite(path: Path, data: bytes, *, sync: bool = False) -> bool:
    """Overwrite a file that has just as many bytes, in place; False, with nothing written, where there is none.

    For blocks with a check sum of their own, as `write_block`.
    """
    try:
        descriptor, found = open_and_look(path, _WRITE)
        try:
            if found.st_size != len(data):
                return False
            write_all(descriptor, data)
            if sync:
                sync_descriptor(descriptor)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise translation("write", path, error) from error
    return True


def create(path: Path, data: bytes, *, sync: bool) -> bool:
    """Make a file with this content unless the name is taken; False when it is.

    The name appears with the whole content or not at all. With `sync` a file that was there already
    is synced too: its writer may not have come so far.
    """
    made = False
    with translated("create", path):
        if not os.path.lexists(path):
            made = _create_linked(path, data, sync)
        if sync and not made:
            _sync_file(path)
    if sync:
        sync_folder(path.parent)
    return made


def set_aside(path: Path) -> Path:
    """Rename a damaged file, so that its bytes stay for a person, and return its new path."""
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    with translated("set aside", path):
        while True:
            target = path.with_name(f"{path.name}{_DAMAGED}{stamp}-{os.urandom(2).hex()}")
            if not os.path.lexists(target):
                os.rename(path, target)
                return target


def rename(path: Path, target: Path) -> bool:
    """Give a file another name in its folder; what had that name is gone. False when there was nothing."""
    try:
        with translated("rename", path):
            os.replace(path, target)
    except FileMissing:
        return False
    return True


def has_file(path: Path) -> bool:
    """Whether there is a file to read; a link is what it leads to."""
    return os.path.isfile(path)


def stands_in_the_way(path: Path, *, of_folder: bool = False) -> bool:
    """Whether something else is where a file, or a folder, belongs; a link is what it leads to."""
    is_right = os.path.isdir if of_folder else os.path.isfile
    return os.path.lexists(path) and not is_right(path)


def is_file_or_nothing(path: Path) -> bool:
    """False for a folder, a link or whatever else stands where a file of ours belongs."""
    with translated("look at", path):
        try:
            return stat.S_ISREG(os.lstat(path).st_mode)
        except FileNotFoundError:
            return True


def is_link(path: Path) -> bool:
    """Whether a link stands there, wherever it leads."""
    with translated("look at", path):
        try:
            return stat.S_ISLNK(os.lstat(path).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False


def remove(path: Path) -> bool:
    """Remove a file or a link, not what it points to; False when there was nothing."""
    try:
        with translated("remove", path):
            os.unlink(path)
    except FileMissing:
        return False
    return True


def remove_tree(path: Path) -> bool:
    """Remove a folder with all that is in it; links are removed, never followed. False when absent."""
    try:
        with translated("remove", path):
            if stat.S_ISDIR(os.lstat(path).st_mode):
                shutil.rmtree(path)
            else:
                os.unlink(path)
    except FileMissing:
        return False
    return True


def remove_empty(path: Path) -> bool:
    """Remove a folder in which there is nothing; False where there is something, or no folder."""
    try:
        with translated("remove", path):
            try:
                os.rmdir(path)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                    raise
                return False
    except FileMissing:
        return False
    return True


def list_folder(path: Path) -> list[DirItem]:
    """The entries of a folder in the order of their names; empty when there is no such folder."""
    items = []
    try:
        with translated("list", path), os.scandir(path) as entries:
            items = [item for entry in entries if (item := _dir_item(entry))]
    except FileMissing:
        return []
    return sorted(items, key=lambda item: item.name)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A new folder below the machine's temporary one, for notes of this process; gone when the block ends."""
    with TemporaryDirectory(prefix="harness-") as name:
        yield Path(name)


def is_leftover(name: str) -> bool:
    """Whether a name is a temporary or a set-aside file of ours, which no listing should show as data."""
    return name.startswith(TEMPORARY) or _DAMAGED in name


def remove_leftovers(folder: Path, min_age: float = 3600.0) -> int:
    """Remove temporary files that a crash left in a folder, at least `min_age` seconds old; how many."""
    limit = time.time_ns() - int(min_age * 1e9)
    old = [i for i in list_folder(folder) if i.name.startswith(TEMPORARY) and not i.is_dir and i.mtime_ns <= limit]
    return sum(remove(folder / item.name) for item in old)


def _read_some(descriptor: int, length: int) -> bytes:
    parts = []
    while length > 0 and (part := os.read(descriptor, length)):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _sync_file(path: Path) -> None:
    descriptor = open_regular(path, os.O_RDONLY)
    try:
        sync_descriptor(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _temporary_file(folder: Path, data: bytes, sync: bool) -> Iterator[Path]:
    """A finished file under a name of its own, which the block renames or removes; removed if the block fails."""
    path = folder / temporary_name()
    descriptor = os.open(path, _WRITE | os.O_CREAT | os.O_EXCL, FILE_MODE)
    try:
        write_and_close(descriptor, data, sync=sync)
        yield path
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(path)
        raise


def _create_linked(path: Path, data: bytes, sync: bool) -> bool:
    with _temporary_file(path.parent, data, sync) as temporary:
        try:
            os.link(temporary, path)
        except FileExistsError:
            made = False
        except OSError as error:
            if error.errno not in NO_HARD_LINKS:
                raise
            return _create_claimed(path, temporary)
        else:
            made = True
        os.unlink(temporary)
    return made


def _create_claimed(path: Path, temporary: Path) -> bool:
    """The same where a file system has no hard links: readers may see an empty file for a moment."""
    try:
        os.close(os.open(path, _WRITE | os.O_CREAT | os.O_EXCL, FILE_MODE))
    except FileExistsError:
        os.unlink(temporary)
        return False
    os.replace(temporary, path)
    return True


def _dir_item(entry: os.DirEntry[str]) -> DirItem | None:
    try:
        found = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None  # removed since the folder was read
    is_dir, is_file = stat.S_ISDIR(found.st_mode), stat.S_ISREG(found.st_mode)
    return DirItem(entry.name, is_dir, found.st_size, found.st_mtime_ns, is_file)
