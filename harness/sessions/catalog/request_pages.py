"""The requests of one ledger, a page at a time: no more of the file is read than the page needs.

A page is the requests that begin in [start, end), in bytes of the file; pages that abut lose none and give none twice.
Which branch a request is on is known from what comes behind it: a page that was reached from the end knows it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from harness.errors import ConfigError, SessionNotFound
from harness.filesystem import disk
from harness.sessions.catalog.prices import find_price
from harness.sessions.catalog.usage import RequestUsage, requests_in
from harness.sessions.ledger.reading import scan
from harness.sessions.lines.entries import MAX_LINE, Entry, Position, parse_line
from harness.text import dumps

__all__ = ["MOST", "RequestPage", "Side", "request_line", "request_page"]

Side: TypeAlias = Literal["tail", "head", "before", "after", "around"]

MOST = 100
"""Requests of a page."""
_WINDOW = 256 * 1024
_CEILING = 16 * 1024 * 1024
"""Bytes that are looked through for a page, and no more: one without enough requests leads on from there."""
_BLOCK = 4 * 1024 * 1024
_HEAD = 100
"""Bytes in front of its id with which a line begins, at most: its type."""
_CURSOR = re.compile(r"(?P<side>[ab])(?P<at>\d{1,18})(~(?P<tip>[0-9a-f]{32}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class RequestPage:
    """Requests in the order in which they went out.

    before   the cursor of the page in front; None at the beginning
    after    the cursor of the page behind; None at the end of the ledger
    unknown  ids of those of which is not known whether they are on the active branch
    """

    rows: Sequence[RequestUsage]
    before: str | None
    after: str | None
    unknown: frozenset[str] = frozenset()

    def to_dict(self) -> dict[str, Any]:
        """As JSON; `active` is absent where it is not known."""
        rows = [row.to_dict() for row in self.rows]
        for row in rows:
            if row["request"] in self.unknown:
                del row["active"]
        made = {"requests": rows, "before": self.before, "after": self.after}
        return {name: value for name, value in made.items() if value is not None}


class _Lines(NamedTuple):
    """The lines of [start, end); `sound` says that each of them could be read."""

    entries: list[Entry]
    start: int
    end: int
    sound: bool

    @property
    def begun(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.kind == "request_begin"]


def request_page(
    ledger: Path, session: str, side: Side = "tail", cursor: str | None = None, *, most: int = MOST
) -> RequestPage:
    """At most `most` requests of a ledger: its last or first ones, those beside a cursor, or around a request's id.

    Blocking, so in a worker. Raises `FileMissing`, `ConfigError` for a cursor that is none, `SessionNotFound` for an
    id that is no request's.
    """
    size = _size(ledger)
    if side == "tail":
        return _before(ledger, session, size, size, None, most)
    if side == "head":
        return _after(ledger, session, 0, size, most)
    if side == "around":
        return _around(ledger, session, request_line(ledger, cursor or "").offset, size, most)
    place = _CURSOR.fullmatch(cursor or "")
    if place is None or place["side"] != side[0]:
        raise ConfigError(f"{(cursor or '')[:80]!r} is no cursor of a page of requests; begin again without one")
    at = min(int(place["at"]), size)
    if side == "before":
        return _before(ledger, session, at, size, place["tip"], most)
    return _after(ledger, session, at, size, most)


def request_line(ledger: Path, request_id: str) -> Entry:
    """The line with which a request begins. Blocking. Raises `FileMissing`, `SessionNotFound`."""
    line = _line_of(ledger, request_id, _size(ledger))
    if line is None or line.kind != "request_begin":
        raise SessionNotFound("there is no such request in this ledger; its page lists those there are")
    return line


def _size(ledger: Path) -> int:
    found = disk.mark(ledger)
    return found.size if found else len(disk.read(ledger))  # raises for a ledger that is not there


def _before(ledger: Path, session: str, end: int, size: int, tip: str | None, most: int) -> RequestPage:
    lines = _back(ledger, end, most)
    return _page(ledger, session, lines, _path(lines, tip or _end_tip(lines, end == size)), size)


def _after(ledger: Path, session: str, start: int, size: int, most: int) -> RequestPage:
    return _behind(ledger, session, _forth(ledger, start, size, most), size)


def _around(ledger: Path, session: str, place: int, size: int, most: int) -> RequestPage:
    """The page with the request that begins there, and with those in front of it for which there is room."""
    start = _back(ledger, place, most // 2).start if most > 1 else place
    lines = _forth(ledger, start, size, most)
    if lines.end <= place:
        lines = _forth(ledger, place, size, most)
    return _behind(ledger, session, lines, size)


def _behind(ledger: Path, session: str, lines: _Lines, size: int) -> RequestPage:
    return _page(ledger, session, lines, _path(lines, _end_tip(lines, lines.end == size)), size)


def _end_tip(lines: _Lines, is_end: bool) -> str | None:
    return _tip(lines.entries[-1].id) if is_end and lines.entries else None


def _tip(entry_id: str) -> str:
    """How a cursor names a line: whoever wrote the ledger, its ids may be of any length and characters."""
    return hashlib.blake2b(entry_id.encode(), digest_size=16).hexdigest()


class _Path(NamedTuple):
    """What is known of the active branch on some lines: those on it, and where it goes on before them (`_tip`)."""

    active: frozenset[str]
    tip: str | None
    known: bool


def _path(lines: _Lines, tip: str | None) -> _Path:
    named = {_tip(entry.id): entry for entry in lines.entries} if tip else {}
    active: set[str] = set()
    at = tip
    while at in named and named[at].id not in active:
        active.add(named[at].id)
        parent = named[at].data.get("parentId")
        at = None if parent is None else _tip(parent)
    # A line that names a lost one hides where the branch came from.
    is_known = tip is not None and lines.sound and (at is not None or lines.start == 0)
    return _Path(frozenset(active), at if is_known else None, is_known)


def _page(ledger: Path, session: str, lines: _Lines, path: _Path, size: int) -> RequestPage:
    bound = _bindings(ledger, lines)
    rows = requests_in(session, [entry.data for entry in (*bound, *lines.entries)], find_price)
    marked = [replace(row, active=row.request in path.active) for row in rows]
    tip = f"~{path.tip}" if path.tip else ""
    return RequestPage(
        rows=marked,
        before=f"b{lines.start}{tip}" if lines.start > 0 else None,
        after=f"a{lines.end}" if lines.end < size else None,
        unknown=frozenset() if path.known else frozenset(row.request for row in rows if not path.active),
    )


def _back(ledger: Path, end: int, most: int) -> _Lines:
    """The lines in front of `end` from the last `most` requests on; all of them where there are no more."""
    window = _WINDOW
    while True:
        lines = _lines(ledger, max(0, end - window), end)
        begun = lines.begun
        if len(begun) > most:
            return _from(lines, begun[-most].offset)
        if lines.start == 0 or (window >= _CEILING and lines.start < end):
            return lines
        window *= 2


def _forth(ledger: Path, start: int, size: int, most: int) -> _Lines:
    """The lines from `start` on, up to where one request more would begin."""
    window = _WINDOW
    while True:
        end = min(size, start + window)
        lines = _lines(ledger, start, end)
        begun = lines.begun
        if len(begun) > most:
            return _to(lines, begun[most].offset)
        if end == size or (window >= _CEILING and lines.end > start):
            return lines
        window *= 2


def _lines(ledger: Path, low: int, high: int) -> _Lines:
    """The whole lines in some bytes; the last of the file may lack its end."""
    before = min(low, 1)
    data = disk.read(ledger, low - before, high - low + before)
    start = 0 if low == 0 else data.find(b"\n") + 1 or len(data)
    is_last = len(data) < high - low + before or disk.read(ledger, high, 1) == b""
    end = len(data) if is_last else max(start, data.rfind(b"\n") + 1)
    first = low - before + start
    entries, damage, _ = scan(data[start:end], Position(1, first))
    return _Lines(entries, first, low - before + end, sound=not damage)


def _from(lines: _Lines, start: int) -> _Lines:
    return lines._replace(entries=[each for each in lines.entries if each.offset >= start], start=start)


def _to(lines: _Lines, end: int) -> _Lines:
    return lines._replace(entries=[each for each in lines.entries if each.offset < end], end=end)


def _bindings(ledger: Path, lines: _Lines) -> Iterator[Entry]:
    """The lines in front of these that say which model their requests went to."""
    there = {entry.id for entry in lines.entries}
    named = dict.fromkeys(str(entry.data.get("binding")) for entry in lines.begun)
    for binding in named:
        line = None if binding in there else _line_of(ledger, binding, lines.start)
        if line is not None:
            yield line


def _line_of(ledger: Path, entry_id: str, end: int) -> Entry | None:
    """The line of that id in front of `end`, looked for from there back."""
    wanted = b'"id":' + dumps(entry_id)
    while end > 0:
        low = max(0, end - _BLOCK)
        data = disk.read(ledger, low, end - low + len(wanted) - 1)
        at = data.rfind(wanted)
        while at >= 0:
            line = _line_at(ledger, low + at)
            if line is not None and line.id == entry_id:
                return line
            at = data.rfind(wanted, 0, at)
        end = low
    return None


def _line_at(ledger: Path, place: int) -> Entry | None:
    """The line around a place, which is near its beginning if it is that of its id."""
    low = max(0, place - _HEAD)
    start = low + (disk.read(ledger, low, place - low).rfind(b"\n") + 1)
    if start == low > 0:
        return None
    data = disk.read(ledger, start, MAX_LINE)
    raw = data.partition(b"\n")[0]
    entry = parse_line(raw)
    return Entry(entry, 1, start, len(raw)) if entry is not None else None
