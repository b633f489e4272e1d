"""One file that holds several: written whole or not at all, and read with suspicion. Blocking, so for a worker.

The file is a ZIP. Its members have no times and no owners, so the same content gives the same bytes. A reader is given
the bytes of the members it names and nothing else: where they go is never decided by the file.
"""

from __future__ import annotations

import errno
import hashlib
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from harness.errors import FileExists, SessionDamaged
from harness.filesystem import disk
from harness.filesystem.lowlevel import (
    FILE_MODE,
    open_regular,
    sync_descriptor,
    sync_folder,
    temporary_name,
    translated,
    write_all,
)

__all__ = ["ArchiveReader", "ArchiveWriter", "Member", "move_into_place", "new_archive", "open_archive", "write_blocks"]

_BLOCK = 1024 * 1024
_NO_TIME = (1980, 1, 1, 0, 0, 0)
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# What zipfile raises for a file that is none, or no longer the one that was written.
_UNREADABLE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, KeyError, NotImplementedError),
    *(OSError, OverflowError, RuntimeError, ValueError),
)
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})


@dataclass(frozen=True, slots=True)
class Member:
    """One file within: its name there, its length and its digest."""

    path: str
    bytes: int
    sha256: str


class ArchiveWriter:
    """Takes members in, in the order in which they shall stand."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    def add(self, name: str, blocks: Iterable[bytes]) -> Member:
        """One more member with the bytes of all blocks."""
        info = zipfile.ZipInfo(name, _NO_TIME)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = (0o100000 | FILE_MODE) << 16
        size, seen = 0, hashlib.sha256()
        with self._archive.open(info, "w", force_zip64=True) as target:
            for block in blocks:
                target.write(block)
                seen.update(block)
                size += len(block)
        return Member(name, size, seen.hexdigest())


class ArchiveReader:
    """The members by name, with the length that each says it has."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self._path = path
        self._archive = archive
        self.sizes: dict[str, int] = {}
        for info in archive.infolist():
            if info.filename in self.sizes:
                raise SessionDamaged(f"{path} holds {info.filename[:200]!r} twice; get the file again from its source")
            if info.flag_bits & 1 or info.compress_type not in _METHODS:
                raise SessionDamaged(
                    f"{path} is encrypted or packed in a way nobody here reads; get it again unchanged"
                )
            self.sizes[info.filename] = info.file_size

    def blocks(self, name: str, limit: int) -> Iterator[bytes]:
        """The bytes of a member. Raises `SessionDamaged` if it has more than `limit`, or cannot be unpacked."""
        left = limit
        with _suspicious(self._path), self._archive.open(name) as source:
            while block := source.read(_BLOCK):
                left -= len(block)
                if left < 0:
                    raise SessionDamaged(f"{name!r} in {self._path} has more than {limit} bytes; get the file again")
                yield block

    def read(self, name: str, limit: int) -> bytes:
        """All of a member. Raises as `blocks`."""
        return b"".join(self.blocks(name, limit))


@contextmanager
def new_archive(path: Path) -> Iterator[ArchiveWriter]:
    """Write an archive: it is there, synced, when the block ends, and is not when the block raises.

    Raises `FileExists` if the name is taken.
    """
    if os.path.lexists(path):
        raise FileExists(f"{path} is there already; choose another name, or remove it first")
    temporary = path.parent / temporary_name()
    with translated("write", path), _new_file(temporary) as descriptor:
        with os.fdopen(os.dup(descriptor), "wb") as file, zipfile.ZipFile(file, "w") as archive:
            yield ArchiveWriter(archive)
        sync_descriptor(descriptor)
        move_into_place(temporary, path)
        sync_folder(path.parent)


@contextmanager
def open_archive(path: Path) -> Iterator[ArchiveReader]:
    """Read an archive. Raises `FileMissing`, and `SessionDamaged` for what is none."""
    with translated("read", path), open(path, "rb", opener=open_regular) as file:
        with _suspicious(path):
            archive = zipfile.ZipFile(file)
        with archive:
            yield ArchiveReader(path, archive)


def write_blocks(path: Path, blocks: Iterable[bytes]) -> Member:
    """Make a new file of these blocks, synced, with the folders above it. Raises `FileExists`."""
    disk.make_folder(path.parent)
    size, seen = 0, hashlib.sha256()
    with translated("write", path):
        descriptor = os.open(path, _NEW, FILE_MODE)
        try:
            for block in blocks:
                write_all(descriptor, block)
                seen.update(block)
                size += len(block)
            sync_descriptor(descriptor)
        finally:
            os.close(descriptor)
    return Member(path.name, size, seen.hexdigest())


def move_into_place(source: Path, target: Path) -> None:
    """Give a finished file its name. Raises `FileExists`; of two who try, one does not lose what the other wrote."""
    with translated("move into place", target):
        try:
            os.link(source, target)
        except FileExistsError:
            raise FileExists(f"{target} is there already; choose another name, or remove it first") from None
        except OSError as error:
            if error.errno not in disk.NO_HARD_LINKS:
                raise
            if os.path.lexists(target):
                raise FileExists(f"{target} is there already; choose another name, or remove it first") from None
            os.rename(source, target)
            return
        os.unlink(source)


@contextmanager
def _new_file(path: Path) -> Iterator[int]:
    descriptor = os.open(path, _NEW, FILE_MODE)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
        with suppress(FileNotFoundError):
            os.unlink(path)


@contextmanager
def _suspicious(path: Path) -> Iterator[None]:
    try:
        yield
    except _UNREADABLE as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise  # the disk's fault, not the file's; EINVAL comes of an offset that leads out of the file
        raise SessionDamaged(f"{path} is no bundle that can be read ({error}); get it again from its source") from error
