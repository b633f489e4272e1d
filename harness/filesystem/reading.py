"""A file that stays open while it is read, so that what takes its name meanwhile is not taken for it."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Self

from harness.filesystem.appending import FileMark
from harness.filesystem.confined import open_confined
from harness.filesystem.lowlevel import translated

__all__ = ["ReadFile", "only_grew"]


class ReadFile:
    """A file opened for reading, a piece at a time. Blocks. Raises what `disk.read` raises."""

    __slots__ = ("_file", "_path")

    def __init__(self, path: Path) -> None:
        self._path = path
        with translated("read", path):
            self._file = open(path, "rb", buffering=0, opener=open_confined)  # noqa: SIM115 - `close` ends it

    def mark(self) -> FileMark:
        """What it is now."""
        found = os.fstat(self._file.fileno())
        return FileMark(found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns)

    def read(self, start: int, length: int) -> bytes:
        """The bytes from `start` on, at most `length` of them; fewer at the end."""
        parts = []
        with translated("read", self._path):
            while length > 0 and (part := os.pread(self._file.fileno(), length, start)):
                parts.append(part)
                start += len(part)
                length -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Close it."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def only_grew(known: FileMark, now: FileMark) -> bool:
    """Whether a file is the one it was, with no change but what was added at its end.

    As far as size and time tell: of one that has grown they do not say whether that is all.
    """
    return now.inode == known.inode and (now.size > known.size or now[:3] == known[:3])
