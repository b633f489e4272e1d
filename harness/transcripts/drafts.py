"""What is to become a turn, and the turns that are made of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from harness.transcripts.blocks import BlockDict
from harness.transcripts.pieces import Piece
from harness.transcripts.turns import Aside, Kind, Turn

__all__ = ["Draft", "Said", "Turns", "is_left", "with_aside"]

_new = tuple.__new__
_ROLES = {
    "prompt": "user",
    "queued": "user",
    "answer": "assistant",
    "results": "tool",
    "orphan": "tool",
    "context": "system",
    "meta": "system",
    "compaction": "system",
}


class Draft:
    """A turn that may still grow, from its first piece. A piece that is all of its turn needs none: see `Said`.

    Its blocks and fields may be those of the piece, which other windows read too: they are replaced, never changed.

    fields  those of the message beside role and content
    until   the offset of the last line that says something of it, its results included
    entry   the name of its first line, in a tree, and `also` those of others
    usage   the largest tokens its lines showed, as streams write stubs first; `gained` is by how much its output
            is more than that of the first line, `more` the output of the other lines
    """

    __slots__ = (
        *("also", "aside", "at", "blocks", "entry", "fields", "gained"),
        *("kind", "line", "more", "offset", "until", "usage"),
    )

    kind: Kind
    fields: dict[str, Any] | None
    usage: dict[str, int] | None
    aside: Aside | None

    def __init__(self, piece: Piece) -> None:
        kind: Any = piece.kind
        self.kind = kind
        self.line = piece.line
        self.offset = self.until = piece.offset
        self.at = piece.at
        self.blocks = piece.blocks
        self.fields = piece.fields
        self.usage = piece.usage
        self.aside = piece.aside
        self.entry = piece.entry
        self.also: tuple[str, ...] = ()
        self.gained = self.more = 0

    def show(self, usage: dict[str, int]) -> None:
        """Note the tokens that a line shows for it."""
        known, out = self.usage, usage.get("output", 0)
        if known is None:
            self.usage = usage
            return
        self.more += out
        if usage is not known and usage != known:
            self.gained += max(0, out - known.get("output", 0))
            self.usage = {**known, **{name: value for name, value in usage.items() if value > known.get(name, -1)}}

    def tell(self, fields: dict[str, Any]) -> None:
        """Note what a line says of it beside its blocks."""
        known = self.fields
        if fields is not known:
            self.fields = {**known, **fields} if known else fields


Said: TypeAlias = Piece | Draft
"""What is to become a turn: a piece as it is, or a draft where more is known than one piece tells."""


class Turns:
    """Turns, each under a key that a window gives it too: its place, and a part where one line has several."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self._parts: dict[str, int] = {}
        self._ended = 0

    def add(self, kind: Kind, said: Said, blocks: list[BlockDict], aside: Aside | None) -> None:
        """One more."""
        # A queued prompt is written while the model still works, so it ends nothing.
        if kind == "prompt" and aside is None:
            self.end_answer()
        offset, parts = said.offset, self._parts
        name = f"r{offset}" if kind == "results" else f"b{offset}"
        if name in parts:
            parts[name] += 1
            name = f"{name}-{parts[name]}"
        else:
            parts[name] = 0
        message: Any = {"id": name, "role": _ROLES[kind], "content": blocks}
        if fields := said.fields:
            message |= fields
        if (usage := said.usage) is not None:
            message["usage"] = usage
        # As in `lines.parsed_lines`.
        self.turns.append(_new(Turn, (kind, message, said.line, said.at, aside, offset, name, False)))

    def answered(self, answer: list[BlockDict], results: Mapping[str, Said], aside: Aside | None) -> None:
        """The results of one message as one turn, in the order of the calls; it stands where the first was written."""
        first: Said | None = None
        blocks: list[BlockDict] = []
        for call in answer:
            if call["type"] == "toolUse" and (result := results.get(call["id"])) is not None:
                block = result.blocks[0].copy()
                block["name"] = call["name"]
                blocks.append(block)
                if first is None or result.offset < first.offset:
                    first = result
        if first is not None:
            self.add("results", first, blocks, aside)

    def end_answer(self) -> None:
        """Mark the last answer that has text since the last prompt; no more of it comes."""
        for at in range(len(self.turns) - 1, self._ended - 1, -1):
            turn = self.turns[at]
            if turn.kind == "answer" and turn.aside is None and turn.has_text():
                self.turns[at] = _new(Turn, (*turn[:-1], True))
                break
        self._ended = len(self.turns)


def is_left(said: Said, left: Mapping[str, object]) -> bool:
    """Whether all lines of a turn that have a name are among those that were left."""
    if not said.also:
        return said.entry in left
    return left.keys() >= {said.entry, *said.also} - {None}


def with_aside(said: Said, aside: Aside | None) -> Said:
    """The same, put aside or taken back."""
    if isinstance(said, Piece):
        return said.replaced(aside=aside)
    said.aside = aside
    return said
