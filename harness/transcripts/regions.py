"""A range of a session's lines, read: what a page is cut from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from harness.transcripts.assembly import Assembly, Span
from harness.transcripts.branches import Path
from harness.transcripts.cuts import cut_from
from harness.transcripts.lines import Line, TranscriptWarning
from harness.transcripts.memo import Memo
from harness.transcripts.opening import Session, reader_for
from harness.transcripts.pages import Page
from harness.transcripts.pieces import Piece, Reader
from harness.transcripts.source import Source
from harness.transcripts.turns import Turn

__all__ = ["Region", "View"]

_HEAD = 256 * 1024
_REACH = 64 * 1024 * 1024
"""Bytes in front of a window that are searched for what was in force where it begins: as many as a line may have."""
_ALL = 4 * _REACH
"""Bytes that one call looks through for lines that are not there."""
_heads = Memo(64)
_states = Memo(256)
_names = Memo(256)


class View:
    """One session as one call sees it: its lines, and how many characters of a block it keeps."""

    def __init__(self, session: Session, cap: int | None) -> None:
        self.session = session
        self.cap = cap
        self.source: Source = session.opened.source
        self.size = self.source.size
        self._searched = 0

    def region(self, start: int, end: int, tip: str | None = None) -> Region:
        """The lines that begin in [start, end), read."""
        region = Region(self, start, end)
        if start < end:
            reader = reader_for(self.session.format, self.session.opened, self.cap)
            reader.read(region.noted(self.source.lines(start, end)))
            region.take(reader)
            region.state = self.state(start)
        region.spans = region.assembled(end, tip).spans()
        return region

    def found_at_opening(self, start: int) -> Iterator[TranscriptWarning]:
        """What is wrong with the file itself, such as a missing end, for the page at its end; see `Page.warnings`."""
        for found in self.session.opened.warnings:
            where = f" (line {found.line:,} of the file)" if found.line and start > 0 else ""
            yield TranscriptWarning(found.kind, found.line if start == 0 else 0, found.text + where)

    def head(self) -> list[Piece]:
        """The pieces of the first lines of the session."""
        path, source = self.session.path, self.source
        name = (str(path), self.session.opened.session_id)
        end = min(_HEAD, self.size)

        def read() -> list[Piece]:
            reader = reader_for(self.session.format, self.session.opened, 0)
            reader.read(source.lines(0, end))
            return reader.pieces

        return _heads.get(name, (end, source.mark(end)), read)

    def state(self, start: int) -> list[Piece]:
        """What is in force at an offset, such as the model that speaks: by the first lines and the nearest in front."""
        sign, source = self.session.format.assembly.state_mark, self.source
        if not sign or start == 0:
            return []
        name = (str(self.session.path), self.session.opened.session_id, start)

        def look() -> list[Piece]:
            for line in source.holding(sign, start, _REACH):
                reader = reader_for(self.session.format, self.session.opened, 0)
                reader.read([line])
                if found := [piece for piece in reader.pieces if piece.kind == "note" and _tells(piece)]:
                    return found
            return []

        begun = [piece for piece in self.head() if piece.note == "meta" and piece.offset < start]
        return begun + _states.get(name, source.mark(start), look)

    def names(self, start: int, link: str) -> bool:
        """Whether a line in front of an offset is an entry of this name, or follows one; what is too far back may."""
        if not link.isascii() or not link.isprintable() or any(sign in link for sign in '"\\/'):
            return True  # there are several ways to write it
        name = (str(self.session.path), self.session.opened.session_id, start, link)

        def look() -> bool:
            if self._searched >= _ALL:
                return False  # so many lead nowhere that one more will, too
            for line in self.source.holding(f'"{link}"'.encode(), start, _REACH):
                reader = reader_for(self.session.format, self.session.opened, 0)
                reader.read([line])
                if any(_is_of(piece, link) for piece in reader.pieces):
                    return True
            self._searched += min(start, _REACH)
            return start > _REACH

        found: bool = _names.get(name, self.source.mark(start), look)
        return found


@dataclass(slots=True)
class Region:
    """See the module. `starts` are the offsets of its lines by their numbers, `state` what is in force at its start."""

    view: View
    start: int
    end: int
    pieces: list[Piece] = field(default_factory=list)
    warnings: list[TranscriptWarning] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    starts: dict[int, int] = field(default_factory=dict)
    state: list[Piece] = field(default_factory=list)

    def noted(self, lines: Iterator[Line]) -> Iterator[Line]:
        """The lines, remembered."""
        for line in lines:
            self.starts[line.number] = line.offset
            yield line

    def take(self, reader: Reader) -> None:
        """What a reader made of the lines."""
        self.pieces = reader.pieces
        self.warnings = reader.warnings

    def turns_from(self, cut: int) -> int:
        """How many turns begin at or behind an offset."""
        return sum(span.offset >= cut and not span.is_tie for span in self.spans)

    def turns_to(self, cut: int) -> int:
        """How many turns begin in front of an offset."""
        return sum(span.offset < cut and not span.is_tie for span in self.spans)

    def assembled(self, end: int, tip: str | None = None, start: int = 0) -> Assembly:
        """The lines of [start, end) put together; what stands in front of them in the window tells how to read them."""
        assembly = self.view.session.format.assembly()
        assembly.prime(self.view.head())
        assembly.resume(self.state)
        assembly.start_from(tip)
        self._place(assembly, max(start, self.start))
        assembly.add(piece for piece in self.pieces if start <= piece.offset < end)
        return assembly

    def _known(self, seen: int) -> Assembly:
        """The lines in front of `seen` as they were put together when there were no others."""
        assembly = self.view.session.format.assembly()
        assembly.prime(piece for piece in self.view.head() if piece.offset < seen)
        assembly.resume(self.state)
        self._place(assembly, self.start)
        assembly.add(piece for piece in self.pieces if piece.offset < seen)
        return assembly

    def _place(self, assembly: Assembly, start: int) -> None:
        if start > 0:
            assembly.branches.in_front = partial(self.view.names, start)

    def changed_from(self, seen: int, settled: int, *, is_last: bool) -> int | None:
        """Where to begin for who has read up to `seen`, so that they get all that reads otherwise now.

        That is no line behind `settled`. None where it may be further back than the window. `is_last` says that
        there will be no larger one: results then are taken for such as have no call.

        A message may go on behind its own results, however large: the window grows to its beginning. Behind another
        message, or a person's words, it is only looked for in the window, as no harness is known to write so.
        """
        if not self.pieces:
            return settled  # blank and damaged lines change nothing
        before, now = self._known(seen), self.assembled(self.end)
        is_left = before.is_tree and before.path().tip != now.path().tip
        had, has = before.turns(), now.turns()
        same = next((n for n, pair in enumerate(zip(had, has, strict=False)) if pair[0] != pair[1]), len(had))
        wanted = min([settled, *(turn.offset for turn in (*had[same:], *has[same:]))])
        spans = [span for span in self.spans if not is_last or span.kind != "orphan"]
        hangs = any(span.kind == "orphan" and span.until >= seen for span in spans)
        reaches = hangs or (not is_last and (_ends_what_began_in_front(had, has) or _left(had[same:], has)))
        found = None if is_left or reaches else cut_from(spans, wanted)
        return 0 if found is None and self.start == 0 else found

    def page(self, start: int, end: int, *, followed: bool, tip: str | None) -> Page:
        """The lines of [start, end) as a page."""
        view, session = self.view, self.view.session
        before = view.source.count(self.start, start)
        pieces = [piece for piece in self.pieces if start <= piece.offset < end]
        assembly = self.assembled(end, tip)
        turns = assembly.turns(followed=followed)
        path = self.assembled(end, tip, start).path() if assembly.is_tree else Path({}, None, {})
        told = (w for w in (*self.warnings, *assembly.warnings) if start <= self.starts.get(w.line, start) < end)
        moved = [TranscriptWarning(w.kind, w.line - before, w.text) for w in told]
        made = Page(
            format=session.format.name,
            session_id=session.opened.session_id,
            turns=tuple(turn for turn in turns if turn.offset >= start),
            start=start,
            end=end,
            warnings=tuple(sorted(moved, key=lambda warning: warning.line)),
            pieces=tuple(piece.replaced(line=piece.line - before) if before else piece for piece in pieces),
            lines=view.source.count(start, end),
            tip=path.tip,
            entry=tip,
            lost=tuple(path.lost),
            state=tuple(view.state(start)),
        )
        if start > 0:
            made.forget_lines({number - before: offset for number, offset in self.starts.items()})
        return made


def _tells(piece: Piece) -> bool:
    """Whether a note names the model; one that does not leaves it as it was."""
    return isinstance(piece.data, dict) and bool(piece.data.get("model"))


def _is_of(piece: Piece, link: str) -> bool:
    """Whether a line is what a link names, or has the same link; in some formats it names a call."""
    return link in (piece.entry, piece.parent) or any(block.get("id") == link for block in piece.blocks)


def _left(had: Sequence[Turn], has: Sequence[Turn]) -> bool:
    """Whether some were left since, and no person speaks in front of them here: who had the last word is not known."""
    now = {turn.key: turn for turn in has}
    left = next((turn.offset for turn in had if turn.key in now and turn.aside != now[turn.key].aside), None)
    begun = (turn.offset for turn in has if turn.kind == "prompt" and turn.aside is None)
    return left is not None and next(begun, left) >= left


def _ends_what_began_in_front(had: Sequence[Turn], has: Sequence[Turn]) -> bool:
    """Whether the last word of a turn is new, and the one that was the last stands in front of the window."""
    begins = any(turn.final or (turn.kind == "prompt" and turn.aside is None) for turn in had)
    return not begins and any(turn.final for turn in has)
