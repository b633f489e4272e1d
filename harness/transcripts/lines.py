r"""From bytes to numbered records, with the damage located.

A line that cannot be read costs itself and no neighbour. Lines end at the byte `\n` and nowhere
else: the other line ends that Unicode knows occur inside strings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from harness.text import clean, loads, read_json

__all__ = ["BOM", "MAX_LINE", "Line", "Record", "TranscriptWarning", "parse_line", "split_lines"]

Record: TypeAlias = dict[str, Any]

BOM = b"\xef\xbb\xbf"
MAX_LINE = 64 * 1024 * 1024
"""Bytes of the longest line that is read; a longer one is reported and stepped over."""
_SAMPLE = 12


@dataclass(frozen=True, slots=True)
class TranscriptWarning:
    """Something in a transcript that a reader should be told.

    `kind` is a plain word: `bad_line`, `large_line`, `not_a_record`, `altered`, `unknown_record`, `unknown_block`,
    `unreadable_image`, `duplicate_call`, `duplicate_result`, `bad_time`, `newer_version`, `chain`,
    `truncated`, `subagent`, `no_messages`. `line` counts from 1 (in a database: the message); 0 stands
    for the whole file, or for a line of a window whose number is not known.
    """

    kind: str
    line: int
    text: str


class Line(NamedTuple):
    """One line that is not blank: where it is, and a record or what is wrong with it, or both.

    number  from 1 where reading began
    offset  the bytes in front of it
    raw     its bytes, without the end; empty for rows of a database
    """

    number: int
    offset: int
    raw: bytes
    record: Record | None
    warning: TranscriptWarning | None = None
    is_bad: bool = False


def split_lines(chunks: Iterator[bytes], offset: int = 0) -> Iterator[tuple[int, bytes, int]]:
    """Offset, bytes and size of each line in a stream of chunks; the last may lack its end.

    Of a line longer than `MAX_LINE` only the size is given.
    """
    kept = _Unfinished()
    for chunk in chunks:
        head, *rest = chunk.split(b"\n")
        kept.add(head)
        if not rest:
            continue
        raw, size = kept.take()
        yield offset, raw, size
        offset += size + 1
        *middle, last = rest
        for raw in middle:
            yield offset, raw, len(raw)
            offset += len(raw) + 1
        kept.add(last)
    raw, size = kept.take()
    if size:
        yield offset, raw, size


class _Unfinished:
    """A line that goes on in the next chunk."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= MAX_LINE:
            self._parts.append(part)
        else:
            self._parts.clear()

    def take(self) -> tuple[bytes, int]:
        raw, size = b"".join(self._parts), self._size
        self._parts, self._size = [], 0
        return raw, size


def parse_line(number: int, offset: int, raw: bytes, size: int) -> Line | None:
    """What stands in a line of `size` bytes; None for a blank one. Never raises."""
    if size > MAX_LINE:
        text = f"a line of {size:,} bytes, more than the {MAX_LINE:,} that are read"
        return Line(number, offset, b"", None, TranscriptWarning("large_line", number, text), is_bad=True)
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
