"""How pieces become turns: results behind their calls, in call order, however late they were written.

A result whose call is not there stands alone. Nothing that a reader recognised is dropped without a
warning. A format whose lines depend on each other in ways of their own derives from `Assembly`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from harness.transcripts.blocks import BlockDict
from harness.transcripts.lines import TranscriptWarning
from harness.transcripts.pieces import Piece
from harness.transcripts.stats import Counts, Tokens
from harness.transcripts.turns import Aside, Kind, Turn

__all__ = ["Assembly", "Draft", "Span"]

_RESULTS = frozenset({"results", "orphan"})
_ROLES = {"prompt": "user", "queued": "user", "answer": "assistant", "results": "tool", "orphan": "tool"}


class Draft:
    """A turn that may still grow, from its first piece.

    Its blocks and fields may be those of the piece, which other windows read too: they are replaced, never changed.

    fields  those of the message beside role and content
    until   the offset of the last line that says something of it, its results included
    usage   the largest tokens its lines showed, as streams write stubs first; `first` and `naive` are the
            output of the first line and of all lines
    """

    __slots__ = (
        *("aside", "at", "blocks", "entries", "fields", "first"),
        *("kind", "line", "naive", "offset", "until", "usage"),
    )

    def __init__(self, piece: Piece) -> None:
        kind: Any
        kind, self.line, self.offset, self.at, self.blocks, fields, _, usage, aside, entry, _, _, _ = piece
        self.kind: Kind = kind
        self.fields: dict[str, Any] = {} if fields is None else fields
        self.aside: Aside | None = aside
        self.entries: tuple[str, ...] = () if entry is None else (entry,)
        self.until = self.offset
        self.usage: dict[str, int] | None = usage
        self.first = self.naive = 0 if usage is None else usage.get("output", 0)

    def show(self, usage: dict[str, int]) -> None:
        """Note the tokens that a line shows for it."""
        known, out = self.usage, usage.get("output", 0)
        self.naive += out
        if known is None:
            self.usage, self.first = usage, out
        elif usage is not known and usage != known:
            self.usage = {**known, **{name: value for name, value in usage.items() if value > known.get(name, -1)}}


@dataclass(frozen=True, slots=True)
class Span:
    """The lines a turn stands on, for choosing where a window may end.

    `is_open` says that a later line may still belong to it: calls without a result.
    """

    kind: Kind
    offset: int
    until: int
    is_open: bool


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

    def add(self, pieces: Iterable[Piece]) -> None:
        """Take in pieces in the order of the file."""
        for piece in pieces:
            if piece.entry is not None:
                self._tips[piece.entry] = piece.parent
            kind = piece.kind
            if kind == "answer":
                self.answer(piece)
            elif kind in _RESULTS:
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
        if fields is not None and fields is not draft.fields:
            draft.fields = {**draft.fields, **fields}
        if piece.entry is not None:
            draft.entries += (piece.entry,)
        return draft

    def extend(self, draft: Draft, piece: Piece) -> None:
        """Give a draft the blocks of a piece; the same call again is not another one."""
        draft.blocks += self.unseen(piece)

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
        return Tokens.of((one.usage, one.first, one.naive) for one in self._drafts if one.usage is not None)

    def spans(self) -> list[Span]:
        """The lines of each turn, in order. Not behind `turns`, which puts results together."""
        return [self._span(draft) for draft in self._drafts if draft.kind != "results" or self._is_orphan(draft)]

    def prime(self, head: Iterable[Piece]) -> None:
        """In a window: what the beginning of the file tells about how to read its lines."""

    def tip(self) -> str | None:
        """In a tree: the entry at which the active path goes on in front of what is known here."""
        return self._path()[1]

    def start_from(self, tip: str | None) -> None:
        """In a window of a tree that others follow: where the active path enters it."""
        self._from = tip

    def unseen(self, piece: Piece) -> list[BlockDict]:
        """The blocks of a piece, without calls that were there before; from now on its calls are there."""
        known, found = self._calls, piece.blocks
        again: list[int] = []
        for number, block in enumerate(found):
            if block["type"] == "toolUse" and known.setdefault(block["id"], block) is not block:
                self.warn("duplicate_call", piece.line, f"call {block['id'][:80]} again; the first is kept")
                again.append(number)
        return [block for number, block in enumerate(found) if number not in again] if again else found

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
        found = [self._results[key].until for key in calls if key in self._results]
        kind: Kind = "orphan" if self._is_orphan(draft) else draft.kind
        return Span(kind, draft.offset, max([draft.until, *found]), len(found) < len(calls))

    def _path(self) -> tuple[set[str], str | None]:
        """The entries of the active path that are known here, and the first one that is not."""
        path: set[str] = set()
        here = self._from if self._from is not None else next(reversed(self._tips), None)
        while here is not None and here in self._tips and here not in path:
            path.add(here)
            here = self._tips[here]
        return path, here

    def _mark_abandoned(self) -> None:
        """In a tree: what is not on the path from the last entry to the first was left."""
        if not self.is_tree or not self._tips:
            return
        path, _ = self._path()
        for draft in self._drafts:
            if draft.entries and path.isdisjoint(draft.entries):
                draft.aside = draft.aside or "abandoned"

    def _placed(self) -> Iterator[Draft]:
        results, known = self._results, self._calls
        for draft in self._drafts:
            if draft.kind in _RESULTS:
                if draft.blocks[0]["id"] not in known:
                    draft.kind = "orphan"
                    yield draft
            elif draft.blocks:
                yield draft
                answered: Draft | None = None
                for block in draft.blocks:
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
    turns = []
    for draft in drafts:
        kind, offset = draft.kind, draft.offset
        name = f"r{offset}" if kind == "results" else f"b{offset}"
        if name in parts:
            parts[name] += 1
            name = f"{name}-{parts[name]}"
        else:
            parts[name] = 0
        message: Any = {"id": name, "role": _ROLES.get(kind, "system"), "content": draft.blocks}
        if draft.fields:
            message.update(draft.fields)
        if draft.usage is not None:
            message["usage"] = draft.usage.copy()
        # As in `lines.parsed_lines`.
        values = (kind, message, draft.line, draft.at, draft.aside, offset, name, False)
        turns.append(tuple.__new__(Turn, values))
    return turns


def _mark_final(turns: list[Turn], *, followed: bool) -> None:
    """Mark the last answer that has text in front of each prompt.

    A queued prompt is written down while the model still works, so it ends nothing.
    """
    is_wanted = followed
    for index in range(len(turns) - 1, -1, -1):
        turn = turns[index]
        kind = turn.kind
        if kind == "prompt":
            is_wanted = is_wanted or turn.aside is None
        elif is_wanted and kind == "answer" and turn.aside is None and turn.has_text():
            turns[index] = turn._replace(final=True)
            is_wanted = False
