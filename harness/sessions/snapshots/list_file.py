"""One list of track 1 as a file of lines: counted without reading it again, appended, replaced.

Blocking functions; the writing ones are called by the holder of the folder's lock. How many items a
file has is remembered together with its mark: whoever else touched the file in between changed the
mark, and the items are counted anew.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from harness.errors import FileMissing, ListMoved
from harness.filesystem import disk
from harness.sessions.snapshots.state_json import Lines, decode_lines, encode_lines
from harness.state import State

__all__ = ["Known", "ListFile", "Recent", "keep_copy"]

T = TypeVar("T")
_log = logging.getLogger("harness.sessions")


class Recent(Generic[T]):
    """The values of the keys used most recently.

    Every step is one operation that the interpreter does not divide, so that threads may share it
    without a lock, which a forked child could inherit in a locked state.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: OrderedDict[Hashable, T] = OrderedDict()

    def get(self, key: Hashable) -> T | None:
        """The value, or None if it was never put or has been pushed out."""
        value = self._values.pop(key, None)
        if value is not None:
            self._values[key] = value
        return value

    def put(self, key: Hashable, value: T) -> None:
        """Keep a value; the one used longest ago makes room."""
        self._values[key] = value
        while len(self._values) > self._limit:
            self._values.popitem(last=False)

    def clear(self) -> None:
        """Drop everything."""
        self._values.clear()


@dataclass(slots=True)  # a frozen one takes three times as long to make
class Known:
    """What is known of a list's file while its mark stays the same; never changed."""

    mark: disk.FileMark | None
    count: int
    open_end: bool = False
    damaged: bool = False
    fragment: int = 0
    """Bytes of a torn last line."""


class ListFile:
    """The file of one list. Damaged lines do not count as items."""

    def __init__(self, path: Path, known: Recent[Known], *, sync: bool) -> None:
        self._path = path
        self._name = str(path)
        self._known = known
        self._sync = sync

    def read(self) -> list[State]:
        """The items; what cannot be read is left out and reported to the log."""
        mark = disk.mark(self._path)
        raw = self._bytes()
        lines = decode_lines(raw)
        if lines.damaged or lines.fragment:
            self._report(lines)
        # A writer that came between the mark and the bytes shows in one of the two.
        if mark and mark.size == len(raw) and disk.mark(self._path) == mark:
            self._remember(mark, lines)
        return lines.items

    def append(self, items: Sequence[State], expect_count: int) -> None:
        """Add items. Raises `ListMoved`, with nothing written, unless `expect_count` are there."""
        known = self._known.get(self._name)
        if known and known.count == expect_count and self._add_to(known, items):
            return
        now = self._look()
        if now.count != expect_count:
            raise ListMoved(
                f"{self._path} has {now.count} items where its writer expected {expect_count}; "
                "nothing was written: read the list again, then replace it",
                now.count,
            )
        if items:
            self._add(now, items)

    def replace(self, items: Sequence[State]) -> None:
        """Put these items in the place of all. A copy of a damaged file is kept beside it."""
        now = self._look()
        if now.damaged or now.fragment:
            _log.warning("the damaged list %s is replaced; its old bytes are in %s", self._path, self._keep())
        disk.replace(self._path, _joined(items), sync=self._sync)
        self._known.put(self._name, Known(disk.mark(self._path), len(items)))

    def _add_to(self, known: Known, items: Sequence[State]) -> bool:
        """Add items to the file that is known, if it is still the one that is there and ends in a whole line."""
        if known.mark is None or known.open_end or known.fragment or not items:
            return False
        mark = disk.append_to(self._path, known.mark, _joined(items), sync=self._sync)
        if mark is None:
            return False
        self._known.put(self._name, Known(mark, known.count + len(items), damaged=known.damaged))
        return True

    def _add(self, now: Known, items: Sequence[State]) -> None:
        data = _joined(items)
        if now.fragment:
            self._add_healed(now.fragment, data)
        else:
            size = now.mark.size if now.mark else 0
            data = b"\n" + data if now.open_end else data
            disk.append(self._path, data, sync=self._sync, expect_size=size, create=now.mark is None)
        count = now.count + len(items)
        self._known.put(self._name, Known(disk.mark(self._path), count, damaged=now.damaged))

    def _add_healed(self, fragment: int, data: bytes) -> None:
        raw = disk.read(self._path)
        kept = keep_copy(self._path, raw[-fragment:])
        _log.warning("the list %s ended in a torn line, which was moved to %s", self._path, kept)
        disk.replace(self._path, raw[:-fragment] + data, sync=self._sync)

    def _look(self) -> Known:
        """What is there now, read only if nobody here knows this very file."""
        mark = disk.mark(self._path)
        known = self._known.get(self._name)
        if known and known.mark == mark:
            return known
        return self._remember(mark, decode_lines(self._bytes()))

    def _remember(self, mark: disk.FileMark | None, lines: Lines) -> Known:
        damaged, fragment = bool(lines.damaged), len(lines.fragment)
        known = Known(mark, len(lines.items), lines.open_end, damaged, fragment)
        self._known.put(self._name, known)
        return known

    def _bytes(self) -> bytes:
        try:
            return disk.read(self._path)
        except FileMissing:
            return b""

    def _keep(self) -> Path:
        return keep_copy(self._path, self._bytes())

    def _report(self, lines: Lines) -> None:
        places = [f"line {number}" for number in lines.damaged[:10]]
        if len(lines.damaged) > 10:
            places.append(f"{len(lines.damaged) - 10} more lines")
        if lines.fragment:
            places.append(f"a torn line of {len(lines.fragment)} bytes at the end")
        _log.warning("%s is damaged and was read without %s", self._path, ", ".join(places))


def keep_copy(path: Path, raw: bytes) -> Path:
    """Keep bytes of a damaged file for a person, beside it under a name that nothing reads."""
    part = path.with_name(f"{path.name}.part")
    disk.replace(part, raw, sync=False)
    return disk.set_aside(part)


def _joined(items: Sequence[State]) -> bytes:
    return b"\n".join([*encode_lines(items), b""])
