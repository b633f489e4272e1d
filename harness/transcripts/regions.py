"""A range of a session's lines, read: what a page is cut from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from harness.transcripts.assembly import Span
from harness.transcripts.lines import Line, TranscriptWarning
from harness.transcripts.memo import Memo
from harness.transcripts.opening import Session, reader_for
from harness.transcripts.pages import Page
from harness.transcripts.pieces import Piece, Reader
from harness.transcripts.source import Source

__all__ = ["Region", "View"]

_HEAD = 256 * 1024
_heads = Memo(64)


class View:
    """One session as one call sees it: its lines, and how many characters of a block it keeps."""

    def __init__(self, session: Session, cap: int | None) -> None:
        self.session = session
        self.cap = cap
        self.source: Source = session.opened.source
        self.size = self.source.size

    def region(self, start: int, end: int, tip: str | None = None) -> Region:
        """The lines that begin in [start, end), read."""
        region = Region(self, start, end)
        if start < end:
            reader = reader_for(self.session.format, self.session.opened, self.cap)
            reader.read(region.noted(self.source.lines(start, end)))
            region.take(reader)
        assembly = self.session.format.assembly()
        assembly.prime(self.head())
        assembly.start_from(tip)
        assembly.add(region.pieces)
        region.spans = assembly.spans()
        return region

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


@dataclass(slots=True)
class Region:
    """See the module. `starts` are the offsets of its lines by their numbers."""

    view: View
    start: int
    end: int
    pieces: list[Piece] = field(default_factory=list)
    warnings: list[TranscriptWarning] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    starts: dict[int, int] = field(default_factory=dict)

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
        return sum(span.offset >= cut for span in self.spans)

    def turns_to(self, cut: int) -> int:
        """How many turns begin in front of an offset."""
        return sum(span.offset < cut for span in self.spans)

    def page(self, start: int, end: int, *, followed: bool, tip: str | None) -> Page:
        """The lines of [start, end) as a page."""
        view, session = self.view, self.view.session
        before = view.source.count(self.start, start)
        pieces = [piece for piece in self.pieces if start <= piece.offset < end]
        if before:
            pieces = [piece._replace(line=piece.line - before) for piece in pieces]
        assembly = session.format.assembly()
        assembly.prime(view.head())
        assembly.start_from(tip)
        assembly.add(pieces)
        turns = assembly.turns(followed=followed)
        found = [warning for warning in self.warnings if start <= self.starts.get(warning.line, start) < end]
        moved = [TranscriptWarning(w.kind, w.line - before, w.text) for w in found] + assembly.warnings
        made = Page(
            format=session.format.name,
            session_id=session.opened.session_id,
            turns=turns,
            start=start,
            end=end,
            warnings=tuple(sorted(moved, key=lambda warning: warning.line)),
            pieces=tuple(pieces),
            lines=view.source.count(start, end),
            tip=assembly.tip() if assembly.is_tree else None,
            entry=tip,
        )
        if start > 0:
            made.forget_lines({number - before: offset for number, offset in self.starts.items()})
        return made
