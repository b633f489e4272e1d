"""The contract of every place where a tenant's files can be."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

__all__ = [
    "AbstractFilesystem",
    "EditResult",
    "FileInfo",
    "FileList",
    "FileText",
    "GrepMatch",
    "GrepResult",
]


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file or folder: its path, its size in bytes (0 for a folder), its time of change (RFC 3339) or ''."""

    path: str
    is_dir: bool
    size: int
    modified: str


@dataclass(frozen=True, slots=True)
class FileList:
    """Files in the order of their paths. `truncated`: there are more, or some could not be looked at."""

    items: tuple[FileInfo, ...]
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class FileText:
    """Lines of a file, with their line ends. `offset` lines stand before them, `total_lines` are in the file."""

    path: str
    text: str
    offset: int
    lines: int
    total_lines: int


@dataclass(frozen=True, slots=True)
class GrepMatch:
    """A line that contains the text; `line` counts from 1, `text` is cut where the line is very long."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class GrepResult:
    """Matching lines, file by file. `truncated`: there may be more than these."""

    matches: tuple[GrepMatch, ...]
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class EditResult:
    """How many places of a file were changed."""

    path: str
    replacements: int


class AbstractFilesystem(ABC):
    """Files below one root, for tools, hooks and memory.

    Paths are relative to the root, in POSIX notation, and so are the paths that come back: each can
    be given to any method as it is. Every method may raise `PathRefused` (the path leads outside, or
    to what belongs to the harness: `agents/`, `tenant.json`, temporary files), `FileMissing`, and
    `FilesystemError` for whatever else the place refuses. Links are not followed; deleting one
    removes the link. A file is whole or absent to its readers, never half written.
    """

    @abstractmethod
    def for_namespace(self, namespace: tuple[str, ...]) -> AbstractFilesystem:
        """The part that belongs to one tenant; a tenant's own part cannot be divided again (`ConfigError`).

        Makes nothing on disk. Raises `InvalidId` for a part of the namespace that cannot be stored.
        """

    @abstractmethod
    async def ls(self, path: str = "") -> FileList:
        """What is in a folder, not deeper. A root that was never written to is empty."""

    @abstractmethod
    async def read(self, path: str, offset: int = 0, limit: int = 0) -> FileText:
        """Text from line `offset` on (the first is 0), at most `limit` lines; 0 for all.

        Raises `FilesystemError` for a file that is no UTF-8 text, one that is larger than the limit of
        this place, and an offset beyond its end.
        """

    @abstractmethod
    async def write(self, path: str, content: str) -> FileInfo:
        """Make a new file and the folders above it. Raises `FileExists` if the name is taken."""

    @abstractmethod
    async def edit(self, path: str, old: str, new: str, replace_all: bool = False) -> EditResult:
        """Replace a text that occurs once, or with `replace_all` each time it occurs.

        Line ends need not be the same as in the file; the file keeps its own. Edits of one tenant's
        files take turns. Raises `FilesystemError` if `old` is empty, equal to `new`, absent, or there
        several times without `replace_all`.
        """

    @abstractmethod
    async def append(self, path: str, text: str) -> FileInfo:
        """Add text to the end of a file, which is made if there is none; at once, whoever else adds or edits.

        A reader sees all of the text or none. Costs what the text costs where the place can append.
        Raises `FilesystemError` if the file would become larger than the limit of this place.
        """

    @abstractmethod
    async def grep(self, pattern: str, path: str = "", glob: str | None = None) -> GrepResult:
        """Lines that contain `pattern` as it is, in a file or anywhere below a folder.

        `glob` restricts the files by path. Binary and very large files are passed over.
        """

    @abstractmethod
    async def glob(self, pattern: str, base: str = "") -> FileList:
        """Files anywhere below `base` whose path relative to it, or its end, matches (`*.md`, `docs/**`)."""

    @abstractmethod
    async def read_bytes(self, path: str) -> bytes:
        """A whole file. Raises `FilesystemError` if it is larger than the limit of this place."""

    @abstractmethod
    async def write_bytes(self, path: str, data: bytes) -> None:
        """Put this content under the name, whether or not there was a file."""

    @abstractmethod
    async def delete(self, path: str) -> bool:
        """Remove a file, or a folder with all that is in it; False when there was nothing."""

    @abstractmethod
    async def move(self, source: str, target: str) -> None:
        """Give a file or folder another path. A file there is replaced, a folder is not (`FilesystemError`)."""

    @abstractmethod
    async def exists(self, path: str) -> bool:
        """Whether there is a file or folder."""
