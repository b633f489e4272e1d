"""Appending to a file whose one writer holds its lock."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from harness.errors import FileMissing, PersistenceError
from harness.filesystem.lowlevel import open_regular, sync_descriptor, sync_folder, translated, write_all

__all__ = ["AppendFile", "FileMark", "append", "append_to", "mark"]

# A file that we write is never a link: following one would write outside the root.
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


class FileMark(NamedTuple):
    """What tells whether a file is the one seen before: size in bytes, inode, time of change in ns."""

    size: int
    inode: int
    mtime_ns: int


def mark(path: Path) -> FileMark | None:
    """What is at `path` now, for comparing later; None when there is nothing."""
    with translated("look at", path):
        try:
            found = os.stat(path)
        except FileNotFoundError:
            return None
    return _mark_of(found)


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
        return file.append(data, sync)
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
        if file.mark() != known:
            return None
        file.add(data, sync)
        return file.mark()
    finally:
        file.close()


class AppendFile:
    """A file kept open for appending by the one writer that holds its lock."""

    def __init__(self, path: Path, descriptor: int, *, new: bool) -> None:
        """Private: use `open`."""
        self.path = path
        self._descriptor = descriptor
        self._folder_unsynced = new
        found = os.fstat(descriptor)
        self.size = found.st_size
        """Bytes in the file, as far as this writer knows."""
        self.inode = found.st_ino

    @classmethod
    def open(cls, path: Path, create: bool = True) -> AppendFile:
        """Open for appending, making the file if `create`; otherwise a missing one is `FileMissing`."""
        with translated("open for appending", path):
            try:
                return cls(path, open_regular(path, _APPEND), new=False)
            except FileNotFoundError:
                if not create:
                    raise
            # Two first writers are both "new": each syncs the folder, which is harmless.
            return cls(path, open_regular(path, _APPEND | os.O_CREAT), new=True)

    def append(self, data: bytes, sync: bool) -> int:
        """Add bytes and return the new size; all or nothing, as the function `append`.

        Raises `FileMissing` if the file was removed, moved or replaced since it was opened, and
        `PersistenceError` if another writer changed its size.
        """
        self._check_still_there()
        return self.add(data, sync)

    def add(self, data: bytes, sync: bool) -> int:
        """As `append`, for who has just looked whether the file is as it must be."""
        with translated("append to", self.path):
            try:
                write_all(self._descriptor, data)
                if sync:
                    sync_descriptor(self._descriptor)
            except OSError:
                self._take_back()
                raise
        self.size += len(data)
        if sync and self._folder_unsynced:
            sync_folder(self.path.parent)
            self._folder_unsynced = False
        return self.size

    def sync(self) -> None:
        """Make durable what earlier calls appended without `sync`."""
        with translated("sync", self.path):
            sync_descriptor(self._descriptor)
        if self._folder_unsynced:
            sync_folder(self.path.parent)
            self._folder_unsynced = False

    def mark(self) -> FileMark:
        """What the open file is now, as the function `mark` says it of a path."""
        with translated("look at", self.path):
            return _mark_of(os.fstat(self._descriptor))

    def close(self) -> None:
        """Close the descriptor; closing twice is fine."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _check_still_there(self) -> None:
        found = mark(self.path)
        if found is None or found.inode != self.inode:
            raise FileMissing(
                f"{self.path} was removed or replaced while it was in use; nothing was written: open the session again"
            )
        if found.size != self.size:
            raise _size_differs(self.path, found.size, self.size)

    def _take_back(self) -> None:
        """Cut off what a failed append left, so that no torn line is of our own making."""
        try:
            os.ftruncate(self._descriptor, self.size)
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror}, and a part of the data could not be taken back") from error


def _mark_of(found: os.stat_result) -> FileMark:
    return FileMark(found.st_size, found.st_ino, found.st_mtime_ns)


def _size_differs(path: Path, real: int, expected: int) -> PersistenceError:
    return PersistenceError(
        f"{path} has {real} bytes where its writer expected {expected}; nothing was written: open the session again"
    )
