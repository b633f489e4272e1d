"""Where the lines of a session come from: a file, or rows that were put together.

Both are addressed by bytes, so that windows work on either. A line begins at an offset, and the next
one where it ends; between two line starts nothing is lost and nothing counted twice.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol
from zlib import crc32

from harness.errors import FileMissing, PersistenceError
from harness.filesystem import disk
from harness.filesystem.disk import FileMark
from harness.filesystem.reading import ReadFile, only_grew
from harness.transcripts.lines import Line, parsed_lines

__all__ = ["FileSource", "JoinedSource", "Source", "file_mark", "is_folder", "neighbours", "small_file"]

# Small enough to be still in the processor's cache when its lines are parsed, and to reuse one piece of memory.
_CHUNK = 128 * 1024
_STEP = 64 * 1024
_MARKED = 4 * 1024
_log = logging.getLogger("harness.transcripts")


class Source(Protocol):
    """Lines in order, addressed by bytes."""

    @property
    def rewritten(self) -> bool:
        """Whether what was read cannot be of one state: it was written anew, cut or replaced since it was opened."""
        ...

    @property
    def size(self) -> int:
        """The bytes behind the last whole line; a line that is still being written is not counted."""
        ...

    @property
    def total(self) -> int:
        """All bytes, those of an unfinished line included."""
        ...

    def lines(self, start: int = 0, end: int | None = None) -> Iterator[Line]:
        """The lines that begin in [start, end); `start` is a line's. Numbers count from 1 at `start`."""
        ...

    def following(self, offset: int, end: int) -> int | None:
        """The first line start at or behind `offset` and before `end`."""
        ...

    def preceding(self, offset: int) -> int:
        """The start of the line that holds the byte in front of `offset`; 0 at the beginning."""
        ...

    def count(self, start: int, end: int) -> int:
        """How many lines begin in [start, end), blank ones too; both are line starts."""
        ...

    def holding(self, sign: bytes, offset: int, reach: int) -> Iterator[Line]:
        """The lines in front of `offset` that hold some bytes, the nearest first, of the last `reach` bytes or so.

        Only of those is more looked at than whether they do. None in rows, which have no bytes.
        """
        ...

    def mark(self, offset: int) -> str:
        """What tells whether other lines stand before `offset` than did; empty where lines are only added."""
        ...


def file_mark(path: Path) -> FileMark:
    """Size and time of a file. Raises `FileMissing`."""
    found = disk.mark(path)
    if found is None:
        disk.read(path, 0, 0)  # raises what is wrong
        return FileMark(0, 0, 0)
    return found


def is_folder(path: Path) -> bool:
    """Whether a path leads to a folder. Raises `FileMissing` where there is nothing."""
    try:
        disk.read(path, 0, 0)
    except PersistenceError as error:
        return isinstance(error.__cause__, IsADirectoryError)
    return False


def neighbours(folder: Path) -> list[Path]:
    """The files in a folder beside a session, for what they tell of it; none where it is no folder, or a link."""
    if disk.is_link(folder):
        return []
    try:
        return [folder / item.name for item in disk.list_folder(folder) if item.is_file]
    except PersistenceError as error:
        _log.debug("what lies beside a session is left out: %s", error)
        return []


def small_file(path: Path) -> bytes | None:
    """The content of a small file beside a session; None where there is none, or a link, or it cannot be read."""
    if disk.is_link(path) or disk.is_link(path.parent):
        return None
    try:
        return disk.read(path, 0, _STEP)
    except FileMissing:
        return None
    except PersistenceError as error:
        _log.debug("what lies beside a session is left out: %s", error)
        return None


class FileSource:
    """The lines of a file as it is now; what is appended later is not seen.

    `rewritten` is found out when pieces are read, and stays: see `Source`.
    """

    def __init__(self, path: Path, size: int | None = None) -> None:
        self.path = path
        self.rewritten = False
        self._known = file_mark(path)
        self._total = self._known.size if size is None else size
        self._size: int | None = None

    @property
    def total(self) -> int:
        """See `Source`."""
        return self._total

    @property
    def size(self) -> int:
        """See `Source`. A last line that can be read is whole, whether its end was written or not."""
        if self._size is None:
            self._size = self._whole()
        return self._size

    def lines(self, start: int = 0, end: int | None = None) -> Iterator[Line]:
        """See `Source`."""
        stop = self._total if end is None else end
        return parsed_lines(self._chunks(start, stop), start)

    def following(self, offset: int, end: int) -> int | None:
        """See `Source`."""
        if offset <= 0:
            return 0
        here = offset - 1
        while here < end:
            chunk = self._piece(here, min(_STEP, end - here))
            if not chunk:
                return None
            if (found := chunk.find(b"\n")) >= 0:
                start = here + found + 1
                return start if start < end else None
            here += len(chunk)
        return None

    def preceding(self, offset: int) -> int:
        """See `Source`."""
        stop = offset - 1
        while stop > 0:
            start = max(0, stop - _STEP)
            found = self._piece(start, stop - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            stop = start
        return 0

    def count(self, start: int, end: int) -> int:
        """See `Source`."""
        found, last = 0, b"\n"
        for chunk in self._chunks(start, end):
            found += chunk.count(b"\n")
            last = chunk[-1:]
        return found + (last != b"\n")

    def holding(self, sign: bytes, offset: int, reach: int) -> Iterator[Line]:
        """See `Source`."""
        stop, low = offset, max(0, offset - reach)
        while stop > low:
            start = max(low, stop - _CHUNK)
            # Its end may stand in the chunk behind, but not behind the offset.
            chunk = self._piece(start, min(stop - start + len(sign) - 1, offset - start))
            found = chunk.rfind(sign)
            if found < 0:
                stop = start
                continue
            stop = self.preceding(start + found + 1)
            yield from self.lines(stop, self.following(start + found, offset) or offset)

    def mark(self, offset: int) -> str:
        """See `Source`. Which file it is, and its first bytes and those in front of the offset."""
        size = min(offset, self._total, _MARKED)
        first, last = self._piece(0, size), self._piece(min(offset, self._total) - size, size)
        return f"{self._known.inode:x}.{crc32(last, crc32(first)):x}"

    def _chunks(self, start: int, stop: int) -> Iterator[bytes]:
        """The bytes of [start, stop), all of one open file: one that is replaced meanwhile is read to its end."""
        if start >= stop:
            return
        with ReadFile(self.path) as file:
            begun, first, chunk = start, b"", b""
            while start < stop and (chunk := file.read(start, min(_CHUNK, stop - start))):
                first = first or chunk[:_MARKED]
                yield chunk
                start += len(chunk)
            self._look(file, ((begun, first), (start - len(chunk[-_MARKED:]), chunk[-_MARKED:])))

    def _piece(self, start: int, length: int) -> bytes:
        """Some bytes of the file, looked up by its name."""
        with ReadFile(self.path) as file:
            self._look(file, ())
            return file.read(start, length)

    def _look(self, file: ReadFile, pieces: Iterable[tuple[int, bytes]]) -> None:
        """Note whether it is the file that was opened, with what was read of it at some places."""
        now = file.mark()
        if now[:3] == self._known[:3]:
            return
        if not only_grew(self._known, now) or any(file.read(at, len(piece)) != piece for at, piece in pieces):
            self.rewritten = True

    def _whole(self) -> int:
        if self._total == 0 or self._piece(self._total - 1, 1) == b"\n":
            return self._total
        start = self.preceding(self._total)
        last = next(self.lines(start), None)
        return start if last is not None and last.is_bad and last.record is None else self._total


class JoinedSource:
    """Several files, one behind the other."""

    @property
    def rewritten(self) -> bool:
        """See `Source`."""
        return any(source.rewritten for source in self._sources)

    def __init__(self, sources: Sequence[FileSource]) -> None:
        self._sources = sources
        self._starts = [0]
        for source in sources:
            self._starts.append(self._starts[-1] + source.total)
        self.total = self._starts[-1]
        last = sources[-1] if sources else None
        self.size = self.total - (last.total - last.size if last is not None else 0)

    def lines(self, start: int = 0, end: int | None = None) -> Iterator[Line]:
        """See `Source`."""
        stop, before = self.total if end is None else end, 0
        for base, source in zip(self._starts, self._sources, strict=False):
            if base + source.total <= start or base >= stop:
                continue
            first, last = max(0, start - base), min(source.total, stop - base)
            lines = source.lines(first, last)
            yield from _behind(lines, before, base) if base else lines
            before += source.count(first, last)

    def following(self, offset: int, end: int) -> int | None:
        """See `Source`."""
        for base, source in zip(self._starts, self._sources, strict=False):
            if offset < base + source.total and base < end:
                found = source.following(max(0, offset - base), min(source.total, end - base))
                if found is not None:
                    return base + found
        return None

    def preceding(self, offset: int) -> int:
        """See `Source`."""
        index = max(0, bisect_left(self._starts, offset) - 1)
        if index >= len(self._sources):
            return 0
        return self._starts[index] + self._sources[index].preceding(offset - self._starts[index])

    def count(self, start: int, end: int) -> int:
        """See `Source`."""
        parts = zip(self._starts, self._sources, strict=False)
        ranges = [(source, max(0, start - base), min(source.total, end - base)) for base, source in parts]
        return sum(source.count(first, last) for source, first, last in ranges if first < last)

    def holding(self, sign: bytes, offset: int, reach: int) -> Iterator[Line]:
        """See `Source`."""
        for base, source in reversed(list(zip(self._starts, self._sources, strict=False))):
            inside = min(offset - base, source.total)
            if inside > 0 and (left := reach - (offset - base - inside)) > 0:
                yield from _behind(source.holding(sign, inside, left), 0, base)

    def mark(self, offset: int) -> str:
        """See `Source`. That of the file with the byte in front of the offset: those in front of it do not grow."""
        index = max(0, min(bisect_left(self._starts, offset), len(self._sources)) - 1)
        return self._sources[index].mark(offset - self._starts[index]) if self._sources else ""


def _behind(lines: Iterable[Line], count: int, size: int) -> Iterator[Line]:
    """The lines of a file as they stand behind so many others, and so many bytes."""
    for number, offset, raw, record, warning, is_bad in lines:
        yield Line(count + number, size + offset, raw, record, warning, is_bad)
