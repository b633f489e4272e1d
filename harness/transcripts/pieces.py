"""What one line of a file says, before it is known what the other lines say.

A reader turns each line into pieces by looking at that line alone. Everything that needs more than one
line (one message on many lines, results far from their calls, what a later line takes back) is the
work of `assembly`. So a window of a file is read exactly like the whole of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from harness.text import clean, read_json
from harness.transcripts import blocks
from harness.transcripts.blocks import BlockDict, is_odd
from harness.transcripts.lines import Line, Record, TranscriptWarning
from harness.transcripts.stats import Counts
from harness.transcripts.times import stamp
from harness.transcripts.turns import Aside, Kind

__all__ = ["About", "Piece", "PieceKind", "Reader", "Subagent", "shorten"]

_make = tuple.__new__
_END = b"\n"
PieceKind: TypeAlias = Kind | Literal["note"]


class Piece(NamedTuple):
    """A part of a message, or a `note` that changes how other parts are put together.

    key     pieces of one key are one message; without a key a piece is a message of its own
    usage   the tokens this line shows for its message
    entry   the line's own name, and `parent` the line it follows, where the format is a tree
    note    what a note is about; `data` what it says
    """

    kind: PieceKind
    line: int
    offset: int
    at: str | None
    blocks: list[BlockDict]
    fields: dict[str, Any] | None = None
    key: str | None = None
    usage: dict[str, int] | None = None
    aside: Aside | None = None
    entry: str | None = None
    parent: str | None = None
    note: str = ""
    data: Any = None

    def __reduce__(self) -> tuple[type[Piece], tuple[Any, ...]]:
        """Pickled by what it says: pages go from process to process, and most of a piece is not set."""
        given = next(n for n in range(len(self), 0, -1) if n <= _GIVEN or self[n - 1] != _DEFAULTS[n - 1 - _GIVEN])
        return Piece, self[:given]


_DEFAULTS = tuple(Piece._field_defaults.values())
_GIVEN = len(Piece._fields) - len(_DEFAULTS)


@dataclass(frozen=True, slots=True)
class Subagent:
    """Another session that was started from this one.

    call    the id of the tool call that started it, where the format tells
    source  where it is written, empty where that is not known
    """

    session_id: str
    source: str = ""
    call: str | None = None
    title: str = ""

    def to_dict(self) -> dict[str, str]:
        """The JSON form; absent for what is not known."""
        named = {"sessionId": self.session_id, "source": self.source, "call": self.call, "title": self.title}
        return {key: value for key, value in named.items() if value}


@dataclass(slots=True)
class About:
    """What a reader learns about the session as a whole, line by line; the last word counts."""

    session_id: str | None = None
    title: str | None = None
    weak_title: str | None = None
    cwd: str | None = None
    branch: str | None = None
    model: str | None = None
    parent: str | None = None
    forked_from: str | None = None
    subagents: list[Subagent] = field(default_factory=list)
    started: str | None = None
    usage: dict[str, int] | None = None
    harness: str | None = None
    verified: str | None = None
    agent: str = ""
    tenant: str = ""


class Reader:
    """Base of the readers: one a format, fed with the lines of one session or of one window of it.

    `cap` is the number of characters kept of a block; None keeps everything, bytes of pictures too.
    """

    provider = ""

    def __init__(self, cap: int | None = None) -> None:
        self.cap = cap
        self.pieces: list[Piece] = []
        self.counts = Counts()
        self.about = About()
        self.warnings: list[TranscriptWarning] = []
        self._line = Line(0, 0, b"", None)
        self._stamped: str | None = None
        self._entry: str | None = None
        self._parent: str | None = None

    def read(self, lines: Iterable[Line]) -> None:
        """Take lines in, in order, good and bad ones. Whatever they hold, it does not raise."""
        record, cap, taken = self.record, self.cap, 0
        pieces, done = self.pieces, len(self.pieces)
        for taken, line in enumerate(lines, 1):  # noqa: B007 - it is wanted behind the loop
            _, _, _, found, warning, is_bad = line
            if warning is not None:
                self.warnings.append(warning)
                self.counts.bad_lines += is_bad
            if found is None:
                continue
            self._line = line
            record(found)
            if cap is not None:
                while done < len(pieces):
                    shorten(pieces[done].blocks, cap)
                    done += 1
        self.counts.lines += taken

    def record(self, record: Record) -> None:
        """Turn one record into pieces: the work of a format."""
        raise TypeError(f"{type(self).__name__} reads no records")

    def finish(self) -> None:
        """Called once behind the last line; the work of a format that has any."""

    def warn(self, kind: str, text: str) -> None:
        """Report something about the line in hand; see `TranscriptWarning`."""
        self.warnings.append(TranscriptWarning(kind, self._line.number, text))

    def piece(
        self,
        kind: PieceKind,
        content: list[BlockDict],
        at: object = None,
        fields: dict[str, Any] | None = None,
        key: str | None = None,
        usage: dict[str, int] | None = None,
        aside: Aside | None = None,
        note: str = "",
        data: Any = None,
    ) -> None:
        """Add a piece of the line in hand."""
        line = self._line
        if at is not self._stamped:
            at = stamp(at)
        entry, parent = self._entry, self._parent
        # As in `lines.parsed_lines`.
        values = (kind, line[0], line[1], at, content, fields, key, usage, aside, entry, parent, note, data)
        self.pieces.append(_make(Piece, values))

    def note(self, note: str, data: Any = None, at: object = None, content: list[BlockDict] | None = None) -> None:
        """Add a note of the line in hand."""
        self.piece("note", [] if content is None else content, at, note=note, data=data)

    def link(self, entry: object, parent: object) -> None:
        """In a tree, once a record: the name of the line in hand and of the one it follows, for its pieces."""
        self._entry = entry if type(entry) is str and entry.strip() else None
        self._parent = parent if type(parent) is str and parent.strip() else None

    def place(self, part: int | str = 0) -> str:
        """A name for what stands in the line in hand and has none of its own."""
        return f"b{self._line.offset}-{part}" if part else f"b{self._line.offset}"

    def identity(self, name: str | None) -> str | None:
        """What tells the same line written twice from two lines: its own name, and its size."""
        raw = self._line.raw
        return f"{len(raw) - raw.endswith(_END)} {name}" if name is not None else None

    def image(self, block: BlockDict | None) -> BlockDict:
        """A picture, counted; what is none is reported and marked."""
        self.counts.images += 1
        if block is None:
            self.warn("unreadable_image", "an image whose data is neither base64 nor an address")
        return block or {"type": "unreadable_image"}

    def unknown(self, value: BlockDict) -> BlockDict:
        """A block of a kind nobody knows, kept and reported."""
        self.warn("unknown_block", f"block of type {str(value.get('type'))[:80]!r} kept as it is")
        return blocks.unknown(self.settled(value))

    def saw_time(self, value: object) -> str | None:
        """A record's time, counted among the session's."""
        at = self._stamped = stamp(value)
        if at is not None:
            counts = self.counts
            if at >= counts.last != "":  # as nearly every time is
                counts.last = at
            else:
                counts.saw_time(at)
        elif value is not None and value != "":
            self.warn("bad_time", f"{str(value)[:40]!r} is no time; it is left out")
        return at

    def settled(self, value: Any) -> Any:
        """A value of any shape, such that it can be stored: not too deep, and no integer rounded.

        The fast reader rounds integers over 64 bits without a word; where one may have been, the slow
        one reads the line again.
        """
        if not is_odd(value):
            return value
        exact = value
        if self._line.raw:
            again = read_json(self._line.raw)
            exact = _twin(self._line.record, again, value)
        cleaned, marks = clean(exact)
        if marks:
            self.warn("altered", f"changed to be storable: {', '.join(marks)}")
        return cleaned


def shorten(content: list[BlockDict], cap: int) -> None:
    """Cut every block to `cap` characters in place and say under `more` how many were dropped."""
    for block in content:
        if "opaque" in block:
            del block["opaque"]
        if _left(block, cap) >= 0:
            continue
        kept = _Kept(cap)
        for name, value in block.items():
            if name not in ("type", "id", "media"):
                block[name] = kept.value(value)
        if kept.dropped:
            block["more"] = {"characters": kept.dropped}


def _left(value: dict[str, Any] | list[Any], left: int) -> int:
    """What the texts of a value leave of an allowance, or less than nothing; a block's id and pictures are no texts."""
    for member in value.values() if type(value) is dict else value:
        if type(member) is str:
            left -= len(member)
        elif type(member) is dict or type(member) is list:
            left = _left(member, left)
        if left < 0:
            return left
    return left


class _Kept:
    """One walk over one block, with what is left of its allowance."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.dropped = 0

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return {name: member if name == "media" else self.value(member) for name, member in value.items()}
        return [self.value(member) for member in value] if isinstance(value, list) else value

    def _text(self, value: str) -> str:
        size = len(value)
        if size <= self.left:
            self.left -= size
            return value
        kept = value[: self.left]
        self.dropped += size - len(kept)
        self.left = 0
        return kept


def _twin(tree: Any, other: Any, wanted: Any) -> Any:
    """The value of `other` that stands where `wanted` stands in `tree`; `wanted` where there is none."""
    stack = [(tree, other)]
    while stack:
        here, there = stack.pop()
        if here is wanted:
            return there
        if isinstance(here, dict) and isinstance(there, dict):
            stack += [(member, there.get(name)) for name, member in here.items()]
        elif isinstance(here, list) and isinstance(there, list):
            stack += zip(here, there, strict=False)
    return wanted
