"""The few calls to the operating system that the file primitives share, and the translation of its errors."""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path
from types import TracebackType

from harness.errors import FileMissing, PersistenceError

__all__ = [
    "FILE_MODE",
    "FOLDER_MODE",
    "TEMPORARY",
    "advice",
    "open_and_look",
    "open_regular",
    "sync_descriptor",
    "sync_folder",
    "temporary_name",
    "translated",
    "translation",
    "write_all",
    "write_and_close",
]

TEMPORARY = ".tmp-"
"""How names of temporary files begin."""
FILE_MODE = 0o600
FOLDER_MODE = 0o700

_FREE = "free space on the disk and repeat the call"
_ACCESS = "give this process access to it and repeat the call"
_LIMIT = "raise the limit of open files and repeat the call"
_ADVICE = {
    errno.ENOSPC: _FREE,
    errno.EDQUOT: _FREE,
    errno.EFBIG: "raise the limit of file sizes and repeat the call",
    errno.EACCES: _ACCESS,
    errno.EPERM: _ACCESS,
    errno.EROFS: "make the file system writable and repeat the call",
    errno.EISDIR: "move the folder away that stands where a file belongs",
    errno.ENOTDIR: "move the file away that stands where a folder belongs",
    errno.ELOOP: "remove the link that stands where a file belongs",
    errno.ENXIO: "move what is no regular file away that stands where one belongs",
    errno.ENAMETOOLONG: "use a shorter name",
    errno.EMFILE: _LIMIT,
    errno.ENFILE: _LIMIT,
}

_NO_FOLDER_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EBADF})
"""What a file system (CIFS, some of FUSE) answers that syncs files and no folders; the descriptor is right."""


def advice(error: OSError) -> str:
    """The system's words for the error, and after a semicolon what a person can do."""
    words = error.strerror or str(error) or type(error).__name__
    return f"{words}; {_ADVICE.get(error.errno or 0, 'check the disk and repeat the call')}"


class translated:  # noqa: N801 - used as a function; a class because every file operation pays for entering it
    """Turn the system's errors into `FileMissing` and `PersistenceError`, saying what was done to which path."""

    __slots__ = ("_action", "_path")

    def __init__(self, action: str, path: Path) -> None:
        self._action = action
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, OSError):
            raise translation(self._action, self._path, error) from error


def translation(action: str, path: Path, error: OSError) -> FileMissing | PersistenceError:
    """What `translated` raises; for the operations of every turn, where even entering a block is felt."""
    what = f"cannot {action} {path}"
    if isinstance(error, FileNotFoundError):
        return FileMissing(f"{what}: there is no such file or folder; check the path")
    return PersistenceError(f"{what}: {advice(error)}")


def open_regular(path: str | Path, flags: int, mode: int = FILE_MODE) -> int:
    """Open a file. Raises `OSError` for what is none: a pipe would keep its reader waiting for ever."""
    return open_and_look(path, flags, mode)[0]


def open_and_look(path: str | Path, flags: int, mode: int = FILE_MODE) -> tuple[int, os.stat_result]:
    """As `open_regular`, with what the system says of the open file."""
    descriptor = os.open(str(path), flags | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            error = errno.EISDIR if stat.S_ISDIR(found.st_mode) else errno.ENXIO
            raise OSError(error, os.strerror(error))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor, found


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything, since one call to the system may write less. Raises `OSError`."""
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, memoryview(data)[written:])


def write_and_close(descriptor: int, data: bytes, *, sync: bool) -> None:
    """Write everything to a descriptor, hand it to the device if `sync`, and close it. Raises `OSError`."""
    try:
        write_all(descriptor, data)
        if sync:
            sync_descriptor(descriptor)
    finally:
        os.close(descriptor)


def sync_descriptor(descriptor: int) -> None:
    """Return when the bytes are on the device. Raises `OSError`."""
    if sys.platform == "darwin":
        import fcntl

        # There fsync leaves the bytes in the cache of the drive.
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(descriptor)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable: after a create, a rename or a removal.

    Where a file system has no such thing, names are as durable as it makes them by itself.
    """
    with translated("sync the folder", path):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in _NO_FOLDER_SYNC:
                raise
        finally:
            os.close(descriptor)


def temporary_name() -> str:
    """A new name for a file that is going to be renamed; `is_leftover` knows it."""
    return f"{TEMPORARY}{os.urandom(8).hex()}"
