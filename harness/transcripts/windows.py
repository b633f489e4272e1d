"""A session page by page: from its end, from its start, around a turn, and on as it grows.

A page is a range of bytes between two line starts. Pages that abut lose no line and give none twice;
`join` puts them together to exactly what `read` gives. Memory is bounded by the page, not by the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias
from zlib import crc32

from harness.errors import ConfigError
from harness.transcripts.assembly import Span
from harness.transcripts.cuts import cut_after, cut_before, unsettled_from
from harness.transcripts.opening import mixture, open_session, settled
from harness.transcripts.pages import Page
from harness.transcripts.refusing import refusing
from harness.transcripts.regions import Region, View
from harness.transcripts.turns import MAX_TURNS

__all__ = ["CAP", "CEILING", "FLOOR", "Where", "page"]

Where: TypeAlias = Literal["tail", "head", "before", "after", "around"]

FLOOR = 4 * 1024
"""Bytes of the smallest window."""
CEILING = 8 * 1024 * 1024
"""Bytes to which a window grows to hold whole turns; also how far behind a follower may be."""
CAP = 20_000
"""Characters kept of a block."""
_MOST_LINES = 20_000
"""Lines of the largest window, whatever is in them: it takes a second to read so many damaged or blank ones."""
_MANY = 1_000
"""Turns with which a window is large enough, cut or not: a call may be answered at any distance."""
_SEARCHED = 2 * 1024 * 1024
"""Bytes in front of a line that are searched for what makes a turn of it, such as the first result of its call."""
_KEY = re.compile(r"[br](\d{1,18})(?:-\d{1,18})?", re.ASCII)

_PLACE = re.compile(r"[baf]\d{1,18}", re.ASCII)
_SEEN = re.compile(r"\d{0,18}", re.ASCII)


class _Cursor(NamedTuple):
    """A place between two lines. `seen` and `state`: how far a follower got, and of which state of the file.

    mark      of the lines in front of it, see `Source.mark`
    followed  a person speaks behind it, or nobody does
    tip       in a tree: the entry at which the active path goes on in front of it
    """

    kind: str
    offset: int
    followed: bool = False
    tip: str | None = None
    seen: int = 0
    state: str = ""
    mark: str = ""

    def text(self) -> str:
        parts = [
            f"{self.kind}{self.offset}",
            "p" if self.followed else "",
            self.tip or "",
            str(self.seen),
            self.state,
            self.mark,
        ]
        return "~".join(parts).rstrip("~")

    @classmethod
    def of(cls, text: str) -> _Cursor:
        parts = [*text.split("~"), "", "", "", "", ""]
        if not _PLACE.fullmatch(parts[0]) or not _SEEN.fullmatch(parts[3]):
            raise ConfigError(f"{text[:80]!r} is no cursor of a page; begin again without one")
        return cls(parts[0][0], int(parts[0][1:]), parts[1] == "p", parts[2] or None, int(parts[3] or 0), *parts[4:6])


def page(
    source: str | os.PathLike[str],
    session_id: str | None = None,
    *,
    where: Where = "tail",
    cursor: str | None = None,
    window: int = 128 * 1024,
    min_turns: int = 2,
    cap: int | None = CAP,
) -> Page:
    """A part of a session, of about `window` bytes: more where `min_turns` or a whole turn need it.

    `tail` and `head` begin; `before` and `after` go on from a page's cursor; `around` is given a turn's
    key. See `Page` for what it says.

    `after` with the cursor of a page that reached the end follows a session as it grows. Such a page stands for all
    that begins at or behind its `start`: drop what you have from there (`Turn.offset`, the number in a key) and put
    its turns in the place. Where nothing is new it begins at the end. For a later line may change what earlier ones
    say: a result comes late, a prompt that waited is taken, an event is said again as an item. Who does so has what a
    new reader gets; where the page begins in front of all they had, its `before` is theirs too. What a line goes on
    with, and it does not say how far back that is, is looked for in the last `window` bytes.

    Blocks while it reads: in a loop use `in_worker(page, ...)`. Raises what `read` raises, and
    `ConfigError` for a cursor or key that is none.
    """
    with refusing(Path(source)):
        return settled(lambda: _page(Path(source), session_id, where, cursor, window, min_turns, cap))


def _page(
    source: Path, session_id: str | None, where: Where, cursor: str | None, window: int, min_turns: int, cap: int | None
) -> Page:
    session = open_session(source, session_id)
    view = View(session, cap)
    made = _paged(_Pager(view, max(window, FLOOR), min_turns, _state(session.state)), view.size, where, cursor)
    made.warnings += mixture(view.source)
    return made


def _paged(pager: _Pager, size: int, where: Where, cursor: str | None) -> Page:
    if where == "tail":
        return pager.before(_Cursor("b", size, followed=True))
    if where == "head":
        return pager.after(0)
    if cursor is None:
        raise ConfigError(f"a page {where!r} needs a cursor: that of another page, or a turn's key for 'around'")
    if where == "around":
        return pager.around(cursor)
    found = _Cursor.of(cursor)
    if where == "before":
        return pager.before(found)
    return pager.follow(found, cursor) if found.kind == "f" else pager.after(found.offset)


class _Pager:
    """Finds the ranges of one call's page."""

    def __init__(self, view: View, window: int, min_turns: int, state: str) -> None:
        self._view = view
        self._source = view.source
        self._window = window
        self._min_turns = min_turns
        self._state = state

    def before(self, cursor: _Cursor) -> Page:
        """The page that ends at a cursor."""
        end = min(cursor.offset, self._view.size)
        window, region, cut, split = self._window, self._view.region(end, end), end, False
        ceiling = CEILING
        while end > 0:
            low = max(0, end - window)
            start = self._source.following(low, end)
            grows = low > 0 and window < ceiling
            if start is None:
                if grows:
                    window = min(window * 2, ceiling)
                    continue
                start = self._with_call(self._source.preceding(end))
            if self._is_crowded(start, end) and window > FLOOR:
                ceiling = window = max((end - start) // 2, FLOOR)
                continue
            region = self._view.region(start, end, tip=cursor.tip)
            if len(region.spans) > MAX_TURNS and window > FLOOR:
                ceiling = window = max((end - start) // 2, FLOOR)
                continue
            found = 0 if start == 0 else cut_before(region.spans)
            enough = found is not None and region.turns_from(found) >= self._min_turns
            if enough or not grows or len(region.spans) > _MANY:
                cut, split = (start, True) if found is None else (found, False)
                break
            window = min(window * 2, ceiling)
        made = self._page(region, cut, end, followed=cursor.followed, tip=cursor.tip)
        made.split = split
        return made

    def after(self, start: int, least: int = 0) -> Page:
        """The page that begins at an offset, and does not end in front of the line start `least`."""
        size, window, ceiling = self._view.size, self._window, CEILING
        region, cut, split = self._view.region(size, size), size, False
        while start < size:
            high = min(size, max(start + window, least))
            end = size if high == size else self._source.preceding(high + 1)
            grows = high < size and window < ceiling
            if end <= start:
                if grows:
                    window = min(window * 2, ceiling)
                    continue
                end = self._source.following(high, size) or size
            shrinks = window > FLOOR and end > least
            if self._is_crowded(start, end) and shrinks:
                ceiling = window = max((end - start) // 2, FLOOR)
                continue
            region = self._view.region(start, end)
            if len(region.spans) > MAX_TURNS and shrinks:
                ceiling = window = max((end - start) // 2, FLOOR)
                continue
            found = size if end == size else cut_after(region.spans)
            found = None if found is not None and found < least else found
            if found is None and not grows and end < high:
                least = self._source.following(high, size) or size  # the result, too large for the window, of a call
                continue
            enough = found is not None and region.turns_to(found) >= self._min_turns
            if enough or not grows or len(region.spans) > _MANY:
                cut, split = (end, True) if found is None else (found, False)
                break
            window = min(window * 2, ceiling)
        followed = cut == size or any(span.offset == cut and span.kind == "prompt" for span in region.spans)
        made = self._page(region, min(start, size), cut, followed=followed, tip=None)
        made.split = split
        return made

    def _with_call(self, line: int) -> int:
        """Where to begin for a line that is too large for the window: it may hold the result of a call in front."""
        found = self._source.following(max(0, line - self._window), line)
        return line if found is None else found

    def around(self, key: str) -> Page:
        """A page with a turn somewhere in its middle. What it is may be told by lines that stand far in front of it.

        Or by none: where a page begins or ends within a turn, its keys are those that the line has by itself.
        """
        size, reach = self._view.size, max(self._window // 2, FLOOR)
        line = min(self._source.preceding(min(_place(key), size) + 1), max(0, size - 1))
        end = self._source.following(line + 1, size) or size
        made = self._around(line, end, reach)
        while made.start > 0 and reach < _SEARCHED and not _has(made, key):
            reach = max(reach * 2, min(end - line, _SEARCHED))  # a large line is not read again for little
            made = self._around(line, end, reach)
        if not _has(made, key):
            alone = self._page(self._view.region(line, end), line, end, followed=end == size, tip=None)
            return alone if _has(alone, key) else made
        return made

    def _around(self, line: int, end: int, reach: int) -> Page:
        """A page with what stands on a line that ends there, and so much in front of it."""
        half = _Pager(self._view, reach, 1, self._state)
        start = half.before(_Cursor("b", line)).start if line > 0 else 0
        window = end - start + max(self._window // 2, FLOOR)
        return _Pager(self._view, window, self._min_turns, self._state).after(start, end)

    def follow(self, cursor: _Cursor, text: str) -> Page:
        """What is new since a page that reached the end."""
        size = self._view.size
        if size == cursor.seen and cursor.state == self._state:
            made = self._page(self._view.region(size, size), size, size, followed=True, tip=None)
            made.after, made.before, made.warnings = text, None, ()
            return made
        is_other = self._source.mark(cursor.offset) != cursor.mark
        is_behind = size - cursor.seen > CEILING or self._is_crowded(cursor.seen, size)
        if is_other or size < cursor.seen or is_behind:
            return self._end_anew()
        return self._since(cursor) or self._end_anew()

    def _since(self, cursor: _Cursor) -> Page | None:
        """From the first turn that a new reader gets otherwise on; None where that is too far back."""
        size, reach, grows = self._view.size, self._window, True
        while True:
            low = max(0, min(cursor.offset, cursor.seen - reach))
            first = self._source.preceding(low + 1) if low else 0
            if self._is_crowded(first, size) and reach > FLOOR:
                reach, grows = max(reach // 2, FLOOR), False
                continue
            region = self._view.region(first, size)
            is_last = region.start == 0 or reach >= CEILING or not grows
            start = region.changed_from(cursor.seen, cursor.offset, is_last=is_last)
            if start is not None:
                made = self._page(region, start, size, followed=True, tip=None)
                made.resent = sum(turn.offset < cursor.seen for turn in made.turns)
                return made if made.resent <= _MANY else None
            if is_last:
                return None
            reach *= 2

    def _is_crowded(self, start: int, end: int) -> bool:
        """Whether there are too many lines to read, blank ones too."""
        return start < end and self._source.count(start, end) > _MOST_LINES

    def _end_anew(self) -> Page:
        """The end, for a follower who has what is not so any more, or too little."""
        made = self.before(_Cursor("b", self._view.size, followed=True))
        made.gap = True
        return made

    def _page(self, region: Region, start: int, end: int, *, followed: bool, tip: str | None) -> Page:
        view, size = self._view, self._view.size
        made = region.page(start, end, followed=followed, tip=tip)
        inside = [span for span in region.spans if start <= span.offset < end]
        first = min(inside, key=lambda span: span.offset, default=None)
        made.size = view.size
        made.at_end = end >= size
        made.before = self._before(start, first, made.tip) if start > 0 else None
        if made.at_end and (start < end or size == 0):
            made.warnings += tuple(view.found_at_opening(start))
        if made.at_end:
            settled = unsettled_from(inside, size)
            mark = self._source.mark(settled)
            made.after = _Cursor("f", settled, seen=size, state=self._state, mark=mark).text()
        else:
            made.after = _Cursor("a", end).text()
        return made

    def _before(self, start: int, first: Span | None, tip: str | None) -> str:
        is_prompt = first is not None and first.offset == start and first.kind == "prompt"
        return _Cursor("b", start, followed=is_prompt, tip=tip).text()


def _has(made: Page, key: str) -> bool:
    return any(turn.key == key for turn in made.turns)


def _place(key: str) -> int:
    found = _KEY.fullmatch(key)
    if found is None:
        raise ConfigError(f"{key[:80]!r} is no key of a turn; take the `key` of one of a page")
    return int(found[1])


def _state(marks: Sequence[object]) -> str:
    """A short name for the state of the files of a session."""
    return f"{crc32(repr(marks).encode()):x}"
