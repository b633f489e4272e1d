"""Appending to a file whose one writer holds its lock."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from harness.errors import FileMissing, PersistenceError
from harness.filesystem.lowlevel import (
    open_and_look,
    sync_descriptor,
    sync_folder,
    translated,
    translation,
    write_all,
)

__all__ = ["AppendFile", "FileMark", "append", "append_to", "mark"]

_OPENING = "open for appending"
_LEFT = ", and a part of the data could not be taken back"
# A file that we write is never a link: following one would write outside the root.
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


class FileMark(NamedTuple):
    """What tells whether a file is the one seen before: size in bytes, inode, times of change in ns.

    An inode is given to another file once its own is removed. Anybody can set `mtime_ns`; `ctime_ns` is the system's.
    """

    size: int
    inode: int
    mtime_ns: int
    ctime_ns: int = 0


def mark(path: Path) -> FileMark | None:
    """What is at `path` now, for comparing later; None when there is nothing."""
    try:
        return _mark_of(os.stat(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise translation("look at", path, error) from error


def append(path: Path, data: bytes, *, sync: bool, expect_size: int | None = None, create: bool = False) -> int:
    """Add bytes to the end of a file and return its new size.

    All or nothing: what a full disk let through is taken back. Raises `FileMissing` if the file is
    not there, unless `create`: a file that vanished must not come back as a fragment. Raises
    `PersistenceError`, with nothing written, if the size is not `expect_size`.
    """
    file = AppendFile.open(path, create=create)
    try:
        if expect_size is not None and file.size != expect_size:
            raise _size_differs(path, file.size, expect_size)
        return file.add(data, sync)
    finally:
        file.close()


def append_to(path: Path, known: FileMark, data: bytes, *, sync: bool) -> FileMark | None:
    """Add bytes to the end of the very file of a mark, all or nothing, and return its new mark.

    None, with nothing written, where another file is there, or one that somebody wrote to.
    """
    try:
        file = AppendFile.open(path, create=False)
    except FileMissing:
        return None
    try:
        if _mark_of(file.found) != known:
            return None
        file.add(data, sync)
        return file.mark()
    finally:
        file.close()


class AppendFile:
    """A file kept open for appending by the one writer that holds its lock."""

    __slots__ = ("_descriptor", "_folder_unsynced", "found", "inode", "path", "size")

    def __init__(self, path: Path, descriptor: int, found: os.stat_result, *, new: bool) -> None:
        """Private: use `open`."""
        self.path = path
        self._descriptor = descriptor
        # An empty one may be what is left of a first append that failed.
        self._folder_unsynced = new or not found.st_size
        self.found = found
        """What the system said of the file when it was opened."""
        self.size = found.st_size
        """Bytes in the file, as far as this writer knows."""
        self.inode = found.st_ino

    @classmethod
    def open(cls, path: Path, create: bool = True, *, named: bool = True) -> AppendFile:
        """Open for appending, making the file if `create`; otherwise a missing one is `FileMissing`.

        named   False where whoever made the file may have been stopped before its folder was synced
        """
        try:
            return cls(path, *open_and_look(path, _APPEND), new=not named)
        except OSError as error:
            if not (create and isinstance(error, FileNotFoundError)):
                raise translation(_OPENING, path, error) from error
        # Two first writers are both "new": each syncs the folder, which is harmless.
        with translated(_OPENING, path):
            return cls(path, *open_and_look(path, _APPEND | os.O_CREAT), new=True)

    def append(self, data: bytes, sync: bool) -> int:
        """Add bytes and return the new size; all or nothing, as the function `append`.

        Raises `FileMissing` if the file was removed, moved or replaced since it was opened, and
        `PersistenceError` if another writer changed its size.
        """
        self._check_still_there()
        return self.add(data, sync)

    def add(self, data: bytes, sync: bool) -> int:
        """As `append`, for who has just looked whether the file is as it must be."""
        try:
            write_all(self._descriptor, data)
            if sync:
                sync_descriptor(self._descriptor)
        except OSError as error:
            raise translation("append to", self.path, self._taken_back(error)) from error
        if sync and self._folder_unsynced:
            self._sync_name()
        self.size += len(data)
        return self.size

    def _sync_name(self) -> None:
        """Sync the folder of a new file; where that fails, nothing of this append stays either."""
        try:
            sync_folder(self.path.parent)
        except PersistenceError as error:
            left = self._cut()
            raise PersistenceError(f"{error}{_LEFT if left else ''}") from error
        self._folder_unsynced = False

    def sync(self) -> None:
        """Make durable what earlier calls appended without `sync`."""
        with translated("sync what was already written to", self.path):
            sync_descriptor(self._descriptor)
        if self._folder_unsynced:
            sync_folder(self.path.parent)
            self._folder_unsynced = False

    def mark(self) -> FileMark:
        """What the open file is now, as the function `mark` says it of a path."""
        try:
            return _mark_of(os.fstat(self._descriptor))
        except OSError as error:
            raise translation("look at", self.path, error) from error

    def close(self) -> None:
        """Close the descriptor; closing twice is fine."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _check_still_there(self) -> None:
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            raise self._gone() from None
        except OSError as error:
            raise translation("look at", self.path, error) from error
        if found.st_ino != self.inode:
            raise self._gone()
        if found.st_size != self.size:
            raise _size_differs(self.path, found.st_size, self.size)

    def _gone(self) -> FileMissing:
        return FileMissing(
            f"{self.path} was removed or replaced while it was in use; nothing was written: open the session again"
        )

    def _taken_back(self, error: OSError) -> OSError:
        """Cut off what a failed append left, so that no torn line is of our own making; the error to tell of."""
        left = self._cut()
        return OSError(left.errno, f"{left.strerror}{_LEFT}") if left else error

    def _cut(self) -> OSError | None:
        """Cut the file to what it was; why that could not be."""
        try:
            os.ftruncate(self._descriptor, self.size)
        except OSError as error:
            return error
        return None


def _mark_of(found: os.stat_result) -> FileMark:
    return FileMark(found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns)


def _size_differs(path: Path, real: int, expected: int) -> PersistenceError:
    return PersistenceError(
        f"{path} has {real} bytes where its writer expected {expected}; nothing was written: open the session again"
    )
