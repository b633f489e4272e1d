r"""From bytes to numbered records, with the damage located.

A line that cannot be read costs itself and no neighbour. Lines end at the byte `\n` and nowhere
else: the other line ends that Unicode knows occur inside strings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from itertools import accumulate, count, repeat
from typing import Any, NamedTuple, TypeAlias

from orjson import loads

from harness.sessions.lines.parsing import values_of
from harness.text import clean, read_json

__all__ = ["BOM", "MAX_LINE", "Line", "Record", "TranscriptWarning", "parsed_line", "parsed_lines"]

Record: TypeAlias = dict[str, Any]

BOM = b"\xef\xbb\xbf"
MAX_LINE = 64 * 1024 * 1024
"""Bytes of the longest line that is read; a longer one is reported and stepped over."""
_SAMPLE = 12
_RECORDS = frozenset({dict})
_SHORT = 512
"""Mean bytes of lines that are parsed many at once, as for them the call itself counts."""


@dataclass(frozen=True, slots=True)
class TranscriptWarning:
    """Something in a transcript that a reader should be told.

    `kind` is a plain word: `bad_line`, `large_line`, `not_a_record`, `altered`, `unknown_record`, `unknown_block`,
    `unreadable_image`, `duplicate_call`, `duplicate_result`, `bad_time`, `newer_version`, `chain`,
    `missing_entry`, `missing_file`, `rewritten`, `truncated`, `subagent`, `no_messages`. `line` counts from 1 (in a
    database: the message); 0 stands for the whole file, or for a line of a window whose number is not known.
    """

    kind: str
    line: int
    text: str


class Line(NamedTuple):
    """One line that is not blank: where it is, and a record or what is wrong with it, or both.

    number  from 1 where reading began
    offset  the bytes in front of it
    raw     its bytes, with the end if it has one; empty for rows of a database
    """

    number: int
    offset: int
    raw: bytes
    record: Record | None
    warning: TranscriptWarning | None = None
    is_bad: bool = False


def parsed_lines(chunks: Iterable[bytes], offset: int = 0) -> Iterator[Line]:
    """The lines of a stream of chunks that begins at `offset`, read; blank ones are left out. Never raises."""
    kept, number = _Unfinished(), 0
    for chunk in chunks:
        parts = BytesIO(chunk).readlines()  # finds line ends three times as fast as `split`
        if kept.size and parts:
            kept.add(first := parts.pop(0))
            if not first.endswith(b"\n"):
                continue
            raw, size = kept.take()
            number += 1
            if (line := _alone(number, offset, raw, size - 1)) is not None:
                yield line
            offset += size
        last = parts.pop() if parts and not parts[-1].endswith(b"\n") else b""
        yield from _whole(parts, number, offset)
        number += len(parts)
        offset += sum(map(len, parts))
        kept.add(last)
    raw, size = kept.take()
    if (line := _alone(number + 1, offset, raw, size)) is not None:
        yield line


def parsed_line(raw: bytes, offset: int) -> Line | None:
    """One line that begins at `offset`, read by itself; None for a blank one. Never raises."""
    return _parsed(1, offset, raw)


def _whole(parts: list[bytes], before: int, start: int) -> Iterator[Line]:
    """The lines of a chunk that begins at `start`, behind `before` others."""
    values = _values(parts)
    numbers, offsets = count(before + 1), accumulate(map(len, parts), initial=start)
    found = zip(numbers, offsets, parts, values, repeat(None), repeat(False))
    if _RECORDS.issuperset(map(type, values)):
        # As nearly always. Not by the class's own call, which takes twice as long: there is one a line.
        yield from map(tuple.__new__, repeat(Line), found)
        return
    for number, offset, raw, value, _, _ in found:
        line = Line(number, offset, raw, value) if type(value) is dict else _parsed(number, offset, raw)
        if line is not None:
            yield line


def _values(parts: list[bytes]) -> list[Any]:
    """What stands in each line; None where that is damaged, and perhaps beside it."""
    if sum(map(len, parts)) < _SHORT * len(parts):
        return values_of(parts)
    try:
        return list(map(loads, parts))
    except ValueError:
        return [None] * len(parts)


def _alone(number: int, offset: int, raw: bytes, size: int) -> Line | None:
    """A line that was put together; None for a blank one."""
    return _too_large(number, offset, size) if size > MAX_LINE else _parsed(number, offset, raw)


class _Unfinished:
    """A line that goes on in the next chunk."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.size = 0

    def add(self, part: bytes) -> None:
        self.size += len(part)
        if self.size <= MAX_LINE + 1:  # with its end
            self._parts.append(part)
        else:
            self._parts.clear()

    def take(self) -> tuple[bytes, int]:
        """Its bytes, or none of a line that is too large, and its size."""
        raw, size = b"".join(self._parts), self.size
        self._parts, self.size = [], 0
        return raw, size


def _too_large(number: int, offset: int, size: int) -> Line:
    text = f"a line of {size:,} bytes, more than the {MAX_LINE:,} that are read"
    return Line(number, offset, b"", None, TranscriptWarning("large_line", number, text), is_bad=True)


def _parsed(number: int, offset: int, raw: bytes) -> Line | None:
    """What stands in a line; None for a blank one."""
    if offset == 0 and raw.startswith(BOM):
        raw = raw[len(BOM) :]
    try:
        value = loads(raw)
    except ValueError:
        return _lenient(number, offset, raw) if raw.strip() else None
    if isinstance(value, dict):
        return Line(number, offset, raw, value)
    return _not_a_record(number, offset, raw, value)


def _lenient(number: int, offset: int, raw: bytes) -> Line:
    try:
        value, marks = clean(read_json(raw))
    except ValueError as error:
        return _torn(number, offset, raw, str(error))
    if not isinstance(value, dict):
        return _not_a_record(number, offset, raw, value)
    changed = ", ".join(marks or ("number",))
    return Line(number, offset, raw, value, TranscriptWarning("altered", number, f"changed to be storable: {changed}"))


def _not_a_record(number: int, offset: int, raw: bytes, value: object) -> Line:
    text = f"a {type(value).__name__}, not an object"
    return Line(number, offset, raw, None, TranscriptWarning("not_a_record", number, text), is_bad=True)


def _torn(number: int, offset: int, raw: bytes, error: str) -> Line:
    """A bad line; a writer that died in it may have left the whole record behind the torn one."""
    start = raw.lstrip(b"\0 \t\r")[:_SAMPLE]
    again = raw.rfind(start, 1) if len(start) == _SAMPLE and start.startswith(b'{"') else -1
    if again > 0:
        try:
            record = loads(raw[again:])
        except ValueError:
            record = None
        if isinstance(record, dict):
            text = "no JSON: a torn record with a whole one behind it, which is kept"
            warning = TranscriptWarning("bad_line", number, text)
            return Line(number, offset, raw[again:], record, warning, is_bad=True)
    return Line(
        number, offset, raw, None, TranscriptWarning("bad_line", number, f"no JSON: {error[:120]}"), is_bad=True
    )
