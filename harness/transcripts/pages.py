"""What a window of a session holds, and how windows are put together again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from harness.errors import ConfigError
from harness.transcripts.formats import format_named
from harness.transcripts.lines import TranscriptWarning
from harness.transcripts.pieces import Piece
from harness.transcripts.stitching import stitched
from harness.transcripts.turns import Turn

__all__ = ["Page", "join"]


@dataclass(slots=True)
class Page:
    """The turns on the lines of [start, end), in bytes of the file.

    before    the cursor of the page in front; None at the beginning
    after     the cursor of the page behind, or, `at_end`, for following the session as it grows
    size      bytes of the session that are there so far; of one that is rows, 4 096 for each
    resent    how many leading turns stand on lines that a follower had; all they have from `start` on gives way
    gap       a follower was too far behind, or what it had was taken back or left: this is the end, no more
    blocked   a line was too large to be read; the cursors lead past it
    split     a turn is so long that the page begins or ends within it
    lines     how many lines there are, blank ones too
    warnings  and `Turn.line` count lines only in a page that begins with the file; else they are 0
    """

    format: str
    session_id: str
    turns: tuple[Turn, ...]
    start: int
    end: int
    warnings: tuple[TranscriptWarning, ...] = ()
    lines: int = 0
    size: int = 0
    before: str | None = None
    after: str = ""
    at_end: bool = False
    resent: int = 0
    gap: bool = False
    split: bool = False
    tip: str | None = None
    entry: str | None = None
    lost: tuple[str, ...] = ()
    pieces: tuple[Piece, ...] = field(default=(), repr=False)
    state: tuple[Piece, ...] = field(default=(), repr=False)

    @property
    def blocked(self) -> bool:
        """See the class."""
        return any(warning.kind == "large_line" for warning in self.warnings)

    def forget_lines(self, starts: Mapping[int, int]) -> None:
        """Within a file no line's number is known; say near which byte a warning stands instead."""
        self.turns = tuple(turn._replace(line=0) for turn in self.turns)
        near = [(w, starts.get(w.line)) for w in self.warnings]
        self.warnings = tuple(
            TranscriptWarning(w.kind, 0, w.text if at is None else f"{w.text} (at byte {at:,})") for w, at in near
        )

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, results inside their calls: camelCase, absent for what is not known."""
        made: dict[str, Any] = {
            "format": self.format,
            "sessionId": self.session_id,
            "turns": stitched(self.turns),
            "start": self.start,
            "end": self.end,
            "size": self.size,
            "before": self.before,
            "after": self.after,
            "atEnd": self.at_end,
            "resent": self.resent,
            "gap": self.gap,
            "blocked": self.blocked,
            "split": self.split,
            "warnings": [{"kind": w.kind, "line": w.line, "text": w.text} for w in self.warnings],
        }
        return {name: value for name, value in made.items() if value is not None}


def join(pages: Sequence[Page]) -> tuple[Turn, ...]:
    """The turns of pages that abut, in their order: what one page over all their lines would have.

    From the first page of a session to the last these are the turns that `read` gives with the same
    `cap`. Raises `ConfigError` where a page does not begin where the one in front ends.
    """
    if not pages:
        return ()
    for one, other in pairwise(pages):
        if one.end != other.start or (one.format, one.session_id) != (other.format, other.session_id):
            raise ConfigError(f"a page that ends at {one.end:,} and one that begins at {other.start:,} do not abut")
    assembly = format_named(pages[0].format).assembly()
    assembly.resume(pages[0].state)
    assembly.start_from(pages[-1].entry)
    if pages[0].start > 0:
        lost = {link for page in pages for link in page.lost}
        assembly.branches.in_front = lambda link: link not in lost
    before = 0
    for page in pages:
        assembly.add([piece.replaced(line=piece.line + before) for piece in page.pieces])
        before += page.lines
    turns = assembly.turns(followed=pages[-1].at_end)
    return turns if pages[0].start == 0 else tuple(turn._replace(line=0) for turn in turns)
