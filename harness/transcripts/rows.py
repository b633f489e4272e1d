"""Records that no file holds as lines of its own: rows of a database, members of a document.

Only what they are called is in memory; what they say is read when somebody asks for it, a few at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias
from zlib import crc32

from harness.transcripts.lines import Line, Record, TranscriptWarning

__all__ = ["Damaged", "ReadRows", "RowSource"]


class Damaged(NamedTuple):
    """A record in which something cannot be read, with what can be; `text` says what, and where it stands."""

    record: Record
    text: str


ReadRows: TypeAlias = Callable[[int, int], Iterable[Record | Damaged | None]]
"""The records from one place to in front of another; None for one that is not there any more."""

_new = tuple.__new__
_ROW = 4 * 1024
_BATCH = 64
_SUMMED = 1024


class RowSource:
    """A `Source` of records.

    Each counts as 4 096 bytes, whatever it holds: their harness writes old rows again, and what
    stands behind them must keep its place. `names` say which record each is.
    """

    rewritten = False
    """See `Source`. Who reads rows sees to that."""

    def __init__(self, read: ReadRows, names: Sequence[object]) -> None:
        self._read = read
        self._names = names
        self._sums = [0]
        self.size = self.total = len(names) * _ROW

    @classmethod
    def of(cls, records: Sequence[Record], names: Sequence[object]) -> RowSource:
        """From records that are in memory anyway."""
        return cls(lambda first, stop: records[first:stop], names)

    def lines(self, start: int = 0, end: int | None = None) -> Iterator[Line]:
        """See `Source`."""
        first, stop = self._at(start), self._at(self.size if end is None else end)
        for at in range(first, stop, _BATCH):
            for index, record in enumerate(self._read(at, min(at + _BATCH, stop)), start=at):
                if type(record) is Damaged:
                    warning = TranscriptWarning("bad_line", index - first + 1, record.text)
                    yield Line(index - first + 1, index * _ROW, b"", record.record, warning, is_bad=True)
                elif record is not None:
                    # As in `lines.parsed_lines`.
                    yield _new(Line, (index - first + 1, index * _ROW, b"", record, None, False))

    def following(self, offset: int, end: int) -> int | None:
        """See `Source`."""
        found = self._at(offset) * _ROW
        return found if found < min(end, self.size) else None

    def preceding(self, offset: int) -> int:
        """See `Source`."""
        return max(0, min(self._at(offset), len(self._names)) - 1) * _ROW

    def count(self, start: int, end: int) -> int:
        """See `Source`."""
        return self._at(end) - self._at(start)

    def holding(self, sign: bytes, offset: int, reach: int) -> Iterator[Line]:
        """See `Source`."""
        return iter(())

    def mark(self, offset: int) -> str:
        """See `Source`."""
        stop = self._at(offset)
        while len(self._sums) <= stop // _SUMMED:
            self._sums.append(self._sum(len(self._sums) * _SUMMED))
        return f"{self._sum(stop):x}"

    def _sum(self, stop: int) -> int:
        """Of the names in front of a place; the sums of a thousand are kept."""
        known = (stop - 1) // _SUMMED if stop else 0
        told = " ".join(map(str, self._names[known * _SUMMED : stop]))
        return crc32(told.encode(), self._sums[known])

    def _at(self, offset: int) -> int:
        """Which record is the first that begins at or behind an offset; one past the last where none does."""
        return min(max(0, -(-offset // _ROW)), len(self._names))
