"""How pieces become turns: results behind their calls, in call order, however late they were written.

A result whose call is not there stands alone. Nothing that a reader recognised is dropped without a
warning. A format whose lines depend on each other in ways of their own derives from `Assembly`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import compress, count
from operator import attrgetter, itemgetter
from typing import Any

from harness.transcripts.blocks import BlockDict
from harness.transcripts.lines import TranscriptWarning
from harness.transcripts.pieces import Piece
from harness.transcripts.stats import Counts, Tokens
from harness.transcripts.turns import Aside, Kind, Turn

__all__ = ["Assembly", "Draft", "Span"]

_RESULTS = frozenset({"results", "orphan"})
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
    """A turn that may still grow, from its first piece.

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
        kind: Any
        kind, self.line, offset, self.at, self.blocks, self.fields, _, usage, self.aside, self.entry, _, _, _ = piece
        self.kind, self.usage = kind, usage
        self.offset = self.until = offset
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


@dataclass(frozen=True, slots=True)
class Span:
    """The lines a turn stands on, for choosing where a window may end.

    is_open  a later line may still belong to it: calls without a result
    is_tie   no turn, but lines that are to be read together
    """

    kind: Kind
    offset: int
    until: int
    is_open: bool
    is_tie: bool = False


class Assembly:
    """Puts the pieces of one session, or of one window, together. Use once: `add`, then `turns`.

    `added` counts what only became known here; it is added to the counts of the reader.
    """

    is_tree = False

    def __init__(self) -> None:
        self.warnings: list[TranscriptWarning] = []
        self.added = Counts()
        self._drafts: list[Draft] = []
        self._keyed: dict[str, Draft] = {}
        self._said: dict[Any, Piece] = {}
        self._again: dict[Any, list[Piece]] = {}
        self._calls: dict[str, BlockDict] = {}
        self._results: dict[str, Draft] = {}
        self._tips: dict[str, str | None] = {}
        self._from: str | None = None
        self._ties: list[Span] = []

    def add(self, pieces: Iterable[Piece]) -> None:
        """Take in pieces in the order of the file."""
        for piece in pieces:
            kind, entry = piece[0], piece[9]
            if entry is not None:
                self._tips[entry] = piece.parent
            if kind == "answer":
                self.answer(piece)
            elif kind == "results":
                self.result(piece)
            elif kind == "note":
                self.note(piece)
            elif piece.blocks:
                self.message(piece)

    def note(self, piece: Piece) -> None:
        """A line that changes how others are put together; for formats that have such."""

    def message(self, piece: Piece) -> Draft:
        """A message of one piece."""
        return self.keep(Draft(piece))

    def answer(self, piece: Piece) -> None:
        """A model's message, or one more piece of it."""
        if piece.key is None:
            draft = Draft(piece)
            self._drafts.append(draft)
            draft.blocks = self.unseen(piece)
        else:
            draft = self.keyed(piece)
            if piece.data is None or not self._is_repeated(piece):
                draft.blocks += self.unseen(piece)

    def result(self, piece: Piece) -> None:
        """One result, in a draft of its own until its call is known to be there or not.

        A second one of the same id answers nothing; what it says beyond the first is kept as a remark.
        """
        key = piece.blocks[0]["id"]
        if key in self._results:
            self.warn("duplicate_result", piece.line, f"result of {key[:80]} again; the first is kept")
            again, first = piece.blocks[0].get("content"), self._results[key].blocks[0].get("content")
            if again and again != first:
                self.keep(Draft(piece._replace(kind="meta", blocks=again)))
            return
        draft = self._results[key] = Draft(piece)
        self._drafts.append(draft)

    def keyed(self, piece: Piece) -> Draft:
        """The draft of a piece's key; a new one where it is the first."""
        key, fields = str(piece.key), piece.fields
        draft = self._keyed.get(key)
        if draft is None:
            draft = self._keyed[key] = self.keep(Draft(piece))
            draft.blocks = []
            return draft
        if piece.usage is not None:
            draft.show(piece.usage)
        draft.until = piece.offset
        if fields is not None:
            draft.tell(fields)
        if piece.entry is not None:
            draft.also += (piece.entry,)
        return draft

    def keep(self, draft: Draft) -> Draft:
        """Give a draft its place in the file's order; it may still grow."""
        self._drafts.append(draft)
        return draft

    def warn(self, kind: str, line: int, text: str) -> None:
        """Keep something a reader should be told; see `TranscriptWarning`."""
        self.warnings.append(TranscriptWarning(kind, line, text))

    def finish(self) -> None:
        """Called once behind the last piece; for formats that have something left to decide."""

    def turns(self, *, followed: bool = True) -> tuple[Turn, ...]:
        """Everything said, in order, once all pieces are in.

        `followed` says that nothing comes behind, or a prompt: then the last answer can be final.
        """
        self.finish()
        self._mark_abandoned()
        turns = _named(self._placed())
        _mark_final(turns, followed=followed)
        return tuple(turns)

    def tokens(self) -> Tokens:
        """What the messages cost, each once."""
        shown = [draft for draft in self._drafts if draft.usage is not None]
        usages, gained, more = (map(attrgetter(name), shown) for name in ("usage", "gained", "more"))
        return Tokens.of(list(usages), sum(gained), sum(more))

    def spans(self) -> list[Span]:
        """The lines of each turn, in order, then ties. Not behind `turns`, which puts results together."""
        turns = [self._span(draft) for draft in self._drafts if draft.kind != "results" or self._is_orphan(draft)]
        return turns + self._ties

    def tie(self, first: int, last: int) -> None:
        """Let no window begin or end between two lines, the offsets of which are given."""
        self._ties.append(Span("meta", first, last, is_open=False, is_tie=True))

    def tie_in_front(self, offset: int) -> None:
        """The same of a line, and one that is not known here and stands somewhere in front."""
        self._ties.append(Span("orphan", offset, offset, is_open=False, is_tie=True))

    def prime(self, head: Iterable[Piece]) -> None:
        """In a window: what the beginning of the file tells about how to read its lines."""

    def tip(self) -> str | None:
        """In a tree: the entry at which the active path goes on in front of what is known here."""
        return self._path()[1]

    def start_from(self, tip: str | None) -> None:
        """In a window of a tree that others follow: where the active path enters it."""
        self._from = tip

    def meant(self, link: str) -> str | None:
        """In a tree: the entry that a link leads to which names none."""
        return None

    def unseen(self, piece: Piece) -> list[BlockDict]:
        """The blocks of a piece, without calls that were there before; from now on its calls are there."""
        known, found = self._calls, piece.blocks
        again: list[BlockDict] = []
        for block in found:
            if block["type"] == "toolUse" and known.setdefault(block["id"], block) is not block:
                self.warn("duplicate_call", piece.line, f"call {block['id'][:80]} again; the first is kept")
                again.append(block)
        return [block for block in found if not any(block is one for one in again)] if again else found

    def _is_repeated(self, piece: Piece) -> bool:
        """Exactly the same line once more; its own id makes sure that it was not said twice."""
        first = self._said.setdefault(piece.data, piece)
        if first is piece:
            return False
        again = self._again.setdefault(piece.data, [first])
        again.append(piece)
        return any(_same(piece, other) for other in again[:-1])

    def _is_orphan(self, draft: Draft) -> bool:
        return draft.kind in _RESULTS and draft.blocks[0]["id"] not in self._calls

    def _span(self, draft: Draft) -> Span:
        calls = [block["id"] for block in draft.blocks if block["type"] == "toolUse"]
        found = [self._results[key] for key in calls if key in self._results]
        first = min([draft.offset, *(result.offset for result in found)])
        last = max([draft.until, *(result.until for result in found)])
        kind: Kind = "orphan" if self._is_orphan(draft) else draft.kind
        if kind == "prompt" and draft.aside:
            kind = "context"  # what a sub-agent is told ends nothing
        return Span(kind, first, last, len(found) < len(calls))

    def _path(self) -> tuple[dict[str, str | None], str | None]:
        """The entries that are not on the active path, and the first one on it that is not known here."""
        rest = self._tips.copy()
        here = self._from if self._from is not None else next(reversed(rest), None)
        while here is not None:
            if here in rest:
                here = rest.pop(here)  # what is taken out of it is on the path
            elif (meant := self.meant(here)) in rest:
                here = meant
            else:
                break
        return rest, here

    def _mark_abandoned(self) -> None:
        """In a tree: what is not on the path from the last entry to the first was left."""
        left, _ = self._path() if self.is_tree and self._tips else ({}, None)
        for draft in self._drafts if left else ():
            named = {draft.entry, *draft.also} - {None}
            if named and left.keys() >= named:
                draft.aside = draft.aside or "abandoned"

    def _placed(self) -> Iterator[Draft]:
        results, known = self._results, self._calls
        for draft in self._drafts:
            kind = draft.kind
            if kind in _RESULTS:
                if draft.blocks[0]["id"] not in known:
                    draft.kind = "orphan"
                    yield draft
            elif draft.blocks:
                yield draft
                answered: Draft | None = None
                for block in draft.blocks if kind == "answer" else ():
                    if block["type"] == "toolUse" and (result := results.get(block["id"])) is not None:
                        answered = _answered(block, result, answered)
                if answered is not None:
                    answered.aside = draft.aside
                    yield answered


def _answered(call: BlockDict, result: Draft, answered: Draft | None) -> Draft:
    """The results of one message as one draft, in the order of the calls; from what it is so far to one more."""
    block = result.blocks[0].copy()
    block["name"] = call["name"]
    if answered is None:
        result.blocks = [block]  # its own draft serves as that of them all
        return result
    answered.blocks.append(block)
    if result.offset < answered.offset:
        answered.line, answered.offset, answered.at = result.line, result.offset, result.at
    return answered


def _same(one: Piece, other: Piece) -> bool:
    return one.blocks == other.blocks and one.usage == other.usage and one.at == other.at


def _named(drafts: Iterable[Draft]) -> list[Turn]:
    """The turns, each under a key that a window gives it too: its place, and a part where one line has several."""
    parts: dict[str, int] = {}
    turns: list[Turn] = []
    append, make = turns.append, tuple.__new__
    for draft in drafts:
        kind, offset = draft.kind, draft.offset
        name = f"r{offset}" if kind == "results" else f"b{offset}"
        if name in parts:
            parts[name] += 1
            name = f"{name}-{parts[name]}"
        else:
            parts[name] = 0
        message: Any = {"id": name, "role": _ROLES[kind], "content": draft.blocks}
        if (fields := draft.fields) is not None:
            message.update(fields)
        if (usage := draft.usage) is not None:
            message["usage"] = usage.copy()
        # As in `lines.parsed_lines`.
        append(make(Turn, (kind, message, draft.line, draft.at, draft.aside, offset, name, False)))
    return turns


def _mark_final(turns: list[Turn], *, followed: bool) -> None:
    """Mark the last answer that has text in front of each prompt.

    A queued prompt is written down while the model still works, so it ends nothing.
    """
    prompts = compress(count(), map("prompt".__eq__, map(itemgetter(0), turns)))  # most turns are none
    begun = [at for at in prompts if turns[at].aside is None]
    start = 0
    for end in [*begun, len(turns)] if followed else begun:
        answers = (at for at in range(end - 1, start - 1, -1) if _says_something(turns[at]))
        if (last := next(answers, None)) is not None:
            turns[last] = Turn(*turns[last][:-1], final=True)  # `_replace` takes twice as long
        start = end


def _says_something(turn: Turn) -> bool:
    return turn.kind == "answer" and turn.aside is None and turn.has_text()
