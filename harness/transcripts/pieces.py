"""What one line of a file says, before it is known what the other lines say.

A reader turns each line into pieces by looking at that line alone. Everything that needs more than one
line (one message on many lines, results far from their calls, what a later line takes back) is the
work of `assembly`. So a window of a file is read exactly like the whole of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, ClassVar, Literal, TypeAlias

from harness.text import clean, read_json
from harness.transcripts import blocks
from harness.transcripts.blocks import BlockDict, is_odd
from harness.transcripts.lines import Line, Record, TranscriptWarning
from harness.transcripts.stats import Counts
from harness.transcripts.times import stamp
from harness.transcripts.torn import members_of
from harness.transcripts.turns import Aside, Kind

__all__ = ["TORN", "About", "Piece", "PieceKind", "Reader", "Subagent", "shorten"]

_bare = object.__new__
_END = b"\n"
PieceKind: TypeAlias = Kind | Literal["note"]
TORN = "torn"
"""The note of a damaged line of a tree of which name and parent can still be read."""


class Piece:
    """A part of a message, or a `note` that changes how other parts are put together. Never changed once it is made.

    key     pieces of one key are one message; without a key a piece is a message of its own
    usage   the tokens this line shows for its message
    entry   the line's own name, and `parent` the line it follows, where the format is a tree
    note    what a note is about; `data` what it says

    One that is a whole message stands for it as it is: what a `Draft` tells beside, it tells too.
    """

    # No tuple with names: there is one a line, and what stands in a slot is read in a third of the time.
    __slots__ = (
        *("kind", "line", "offset", "at", "blocks", "fields", "key", "usage"),
        *("aside", "entry", "parent", "note", "data"),
    )

    also: ClassVar[tuple[str, ...]] = ()
    gained: ClassVar[int] = 0
    more: ClassVar[int] = 0

    def __init__(
        self,
        kind: PieceKind,
        line: int,
        offset: int,
        at: str | None,
        blocks: list[BlockDict],
        fields: dict[str, Any] | None = None,
        key: str | None = None,
        usage: dict[str, int] | None = None,
        aside: Aside | None = None,
        entry: str | None = None,
        parent: str | None = None,
        note: str = "",
        data: Any = None,
    ) -> None:
        self.kind = kind
        self.line = line
        self.offset = offset
        self.at = at
        self.blocks = blocks
        self.fields = fields
        self.key = key
        self.usage = usage
        self.aside = aside
        self.entry = entry
        self.parent = parent
        self.note = note
        self.data = data

    @property
    def until(self) -> int:
        """The offset of the last line that says something of it."""
        return self.offset

    def replaced(self, **changes: Any) -> Piece:
        """Another one that differs in some fields."""
        return Piece(**{**dict(zip(Piece.__slots__, self._values(), strict=True)), **changes})

    def __eq__(self, other: object) -> bool:
        return self._values() == other._values() if isinstance(other, Piece) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # its blocks are lists

    def __reduce__(self) -> tuple[type[Piece], tuple[Any, ...]]:
        """Pickled by what it says: pages go from process to process, and most of a piece is not set."""
        values = self._values()
        given = next(n for n in range(len(values), 0, -1) if n <= _GIVEN or values[n - 1] != _DEFAULTS[n - 1 - _GIVEN])
        return Piece, values[:given]

    def _values(self) -> tuple[Any, ...]:
        return _values_of(self)


_values_of: Callable[[Piece], tuple[Any, ...]] = attrgetter(*Piece.__slots__)
_DEFAULTS: tuple[Any, ...] = Piece.__init__.__defaults__ or ()
_GIVEN = len(Piece.__slots__) - len(_DEFAULTS)


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
    links: tuple[str, str] | None = None
    """In a tree: the fields in which a line has its name and that of the line it follows."""

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
        for line in lines:
            taken += 1
            # By places, which takes half as long as by names: there is a line at every turn.
            if line[4] is not None:
                self._warned(line)
            if (found := line[3]) is None:
                continue
            self._line = line
            record(found)
            if cap is not None:
                while done < len(pieces):
                    shorten(pieces[done].blocks, cap)
                    done += 1
        self.counts.lines += taken

    def _warned(self, line: Line) -> None:
        """Keep what is wrong with a line."""
        if line.warning is not None:
            self.warnings.append(line.warning)
        self.counts.bad_lines += line.is_bad
        if line.record is None and self.links is not None:
            self._torn(line, *self.links)

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
        made, line = _bare(Piece), self._line  # a call of the class takes half as long again
        made.kind = kind
        made.line = line[0]
        made.offset = line[1]
        made.at = at if at is self._stamped else stamp(at)
        made.blocks = content
        made.fields = fields
        made.key = key
        made.usage = usage
        made.aside = aside
        made.entry = self._entry
        made.parent = self._parent
        made.note = note
        made.data = data
        self.pieces.append(made)

    def note(self, note: str, data: Any = None, at: object = None, content: list[BlockDict] | None = None) -> None:
        """Add a note of the line in hand."""
        self.piece("note", [] if content is None else content, at, None, None, None, None, note, data)

    def link(self, entry: object, parent: object) -> None:
        """In a tree, once a record: the name of the line in hand and of the one it follows, for its pieces."""
        before = self._entry
        self._entry = entry if type(entry) is str and entry.strip() else None
        if parent == before:  # as mostly: one text for both, which was looked at already
            self._parent = before
        else:
            self._parent = parent if type(parent) is str and parent.strip() else None

    def _torn(self, line: Line, name: str, before: str) -> None:
        """A damaged line of a tree: where it stood there, if that can still be read."""
        told = members_of(line.raw)
        self.link(told.get(name), told.get(before))
        if self._entry is not None and before in told:
            self._line = line
            self.note(TORN)

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
            if counts.first and at >= counts.last:  # as nearly every time is
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
    """Cut every block to `cap` characters in place and say under `more` how many were dropped.

    And that all there is to read was `said` in those, where blanks are kept.
    """
    for block in content:
        if "opaque" in block:
            del block["opaque"]
        if _left(block, cap) >= 0:
            continue
        kept = _Kept(cap)
        whole = block.get("text")
        for name, value in block.items():
            if name not in ("type", "id", "media"):
                block[name] = kept.value(value)
        if kept.dropped:
            block["more"] = {"characters": kept.dropped}
            if type(whole) is str and whole.strip() and not blocks.says(block):
                block["more"]["said"] = True


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
