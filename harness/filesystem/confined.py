"""Reading that cannot be led out of a folder.

A link may take the place of a file between the look at it and its opening: so it is the file that was
opened which is asked where it is, not its name.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import ParamSpec, TypeVar

from harness.filesystem.lowlevel import open_regular

__all__ = ["inside", "open_confined"]

P = ParamSpec("P")
T = TypeVar("T")

_folder: ContextVar[Path | None] = ContextVar("confined_to", default=None)


def inside(folder: Path, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """What `work` gives, while no file is read that does not lie in this folder, wherever its name leads.

    `folder` has no link on its way. A file outside makes `disk.read` raise `PersistenceError`.
    """
    token = _folder.set(folder)
    try:
        return work(*args, **kwargs)
    finally:
        _folder.reset(token)


def open_confined(path: str | Path, flags: int) -> int:
    """As `open_regular`; raises `OSError` for a file outside the folder that this work is confined to."""
    descriptor, folder = open_regular(path, flags), _folder.get()
    if folder is None:
        return descriptor
    try:
        if not _place_of(descriptor, path).is_relative_to(folder):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _place_of(descriptor: int, path: str | Path) -> Path:
    """Where an open file is; asked of the system, or of the name where the system does not tell."""
    if sys.platform == "darwin":
        import fcntl

        return Path(os.fsdecode(fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0")))
    try:
        return Path(os.readlink(f"/proc/self/fd/{descriptor}"))
    except OSError:
        place, found = Path(path).resolve(), os.fstat(descriptor)
        if not os.path.samestat(os.lstat(place), found):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        return place
