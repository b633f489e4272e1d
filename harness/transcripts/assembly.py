"""How pieces become turns: results behind their calls, in call order, however late they were written.

A result whose call is not there stands alone. Nothing that a reader recognised is dropped without a
warning. A format whose lines depend on each other in ways of their own derives from `Assembly`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from harness.transcripts.blocks import BlockDict
from harness.transcripts.lines import TranscriptWarning
from harness.transcripts.pieces import Piece
from harness.transcripts.stats import Counts, Tokens
from harness.transcripts.turns import Aside, Kind, Turn

__all__ = ["Assembly", "Draft", "Span"]

_RESULTS = frozenset({"results", "orphan"})
_ROLES = {"prompt": "user", "queued": "user", "answer": "assistant", "results": "tool", "orphan": "tool"}


@dataclass(slots=True, eq=False)
class Draft:
    """A turn that may still grow; `fields` are those of the message beside role and content.

    `fields` may be those of a piece, which other windows read too: they are replaced, never changed.

    until  the offset of the last line that says something of it, its results included
    usage  the largest tokens its lines showed, as streams write stubs first; `first` and `naive` are the
           output of the first line and of all lines
    """

    kind: Kind
    line: int
    offset: int
    at: str | None = None
    aside: Aside | None = None
    blocks: list[BlockDict] = field(default_factory=list)
    fields: dict[str, Any] = field(default_factory=dict)
    entries: tuple[str, ...] = ()
    until: int = 0
    usage: dict[str, int] | None = None
    first: int = 0
    naive: int = 0

    def show(self, usage: dict[str, int]) -> None:
        """Note the tokens that a line shows for it."""
        known, out = self.usage, usage.get("output", 0)
        self.naive += out
        if known is None:
            self.usage, self.first = usage, out
        elif usage != known:
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
        return self.keep(self.draft(piece))

    def answer(self, piece: Piece) -> None:
        """A model's message, or one more piece of it."""
        draft = self.keyed(piece)
        if piece.usage is not None:
            draft.show(piece.usage)
        if piece.data is None or not self._is_repeated(piece):
            self.extend(draft, piece)

    def result(self, piece: Piece) -> None:
        """One result, in a draft of its own until its call is known to be there or not.

        A second one of the same id answers nothing; what it says beyond the first is kept as a remark.
        """
        key = piece.blocks[0]["id"]
        if key in self._results:
            self.warn("duplicate_result", piece.line, f"result of {key[:80]} again; the first is kept")
            again, first = piece.blocks[0].get("content"), self._results[key].blocks[0].get("content")
            if again and again != first:
                self.keep(self.draft(replace(piece, kind="meta", blocks=again)))
            return
        self._results[key] = self.keep(self.draft(piece))

    def keyed(self, piece: Piece) -> Draft:
        """The draft of a piece's key; a new one where it is the first."""
        draft = self._keyed.get(piece.key) if piece.key is not None else None
        if draft is None:
            draft = self.keep(Draft("answer", piece.line, piece.offset, piece.at, piece.aside, [], piece.fields or {}))
            if piece.key is not None:
                self._keyed[piece.key] = draft
        draft.until = piece.offset
        if piece.fields is not None and piece.fields is not draft.fields:
            draft.fields = {**draft.fields, **piece.fields}
        if piece.entry is not None:
            draft.entries += (piece.entry,)
        return draft

    def extend(self, draft: Draft, piece: Piece) -> None:
        """Give a draft the blocks of a piece; the same call again is not another one."""
        for block in piece.blocks:
            if block["type"] == "toolUse":
                if block["id"] in self._calls:
                    self.warn("duplicate_call", piece.line, f"call {block['id'][:80]} again; the first is kept")
                    continue
                self._calls[block["id"]] = block
            draft.blocks.append(block)

    def draft(self, piece: Piece) -> Draft:
        """A draft of one piece."""
        kind: Any = piece.kind
        made = Draft(kind, piece.line, piece.offset, piece.at, piece.aside, piece.blocks, piece.fields or {})
        made.until = piece.offset
        if piece.entry is not None:
            made.entries = (piece.entry,)
        return made

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
        return tuple(_marked(list(_named(self._placed())), followed=followed))

    def tokens(self) -> Tokens:
        """What the messages cost, each once."""
        return Tokens.of((one.usage, one.first, one.naive) for one in self._drafts if one.usage is not None)

    def spans(self) -> list[Span]:
        """The lines of each turn, in order; for `turns`, before or after."""
        return [self._span(draft) for draft in self._drafts if draft.kind != "results" or self._is_orphan(draft)]

    def prime(self, head: Iterable[Piece]) -> None:
        """In a window: what the beginning of the file tells about how to read its lines."""

    def tip(self) -> str | None:
        """In a tree: the entry at which the active path goes on in front of what is known here."""
        return self._path()[1]

    def start_from(self, tip: str | None) -> None:
        """In a window of a tree that others follow: where the active path enters it."""
        self._from = tip

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
        results = self._results
        for draft in self._drafts:
            if draft.kind in _RESULTS:
                if draft.blocks[0]["id"] not in self._calls:
                    draft.kind = "orphan"
                    yield draft
            elif draft.blocks:
                yield draft
                calls = [block for block in draft.blocks if block["type"] == "toolUse" and block["id"] in results]
                if calls:
                    yield _answered(draft, calls, [results[call["id"]] for call in calls])


def _answered(draft: Draft, calls: list[BlockDict], results: list[Draft]) -> Draft:
    """The results of a message's calls as one draft, in the order of the calls."""
    first = results[0] if len(results) == 1 else min(results, key=lambda result: result.offset)
    named = [{**result.blocks[0], "name": call["name"]} for call, result in zip(calls, results, strict=True)]
    return Draft("results", first.line, first.offset, first.at, draft.aside, named)


def _same(one: Piece, other: Piece) -> bool:
    return one.blocks == other.blocks and one.usage == other.usage and one.at == other.at


def _named(drafts: Iterable[Draft]) -> Iterator[Turn]:
    """The turns, each under a key that a window gives it too: its place, and a part where one line has several."""
    parts: dict[str, int] = {}
    for draft in drafts:
        name = f"r{draft.offset}" if draft.kind == "results" else f"b{draft.offset}"
        part = parts[name] = parts.get(name, -1) + 1
        if part:
            name = f"{name}-{part}"
        role = _ROLES.get(draft.kind, "system")
        message: Any = {"id": name, "role": role, "content": draft.blocks, **draft.fields}
        if draft.usage is not None:
            message["usage"] = dict(draft.usage)
        yield Turn(draft.kind, message, draft.line, draft.at, draft.aside, draft.offset, name)


def _marked(turns: list[Turn], *, followed: bool) -> Iterator[Turn]:
    """The turns, with the last answer that has text in front of each prompt marked as final.

    A queued prompt is written down while the model still works, so it ends nothing.
    """
    final: set[int] = set()
    is_wanted = followed
    for index in range(len(turns) - 1, -1, -1):
        turn = turns[index]
        if turn.aside is not None:
            continue
        if turn.kind == "prompt":
            is_wanted = True
        elif is_wanted and turn.kind == "answer" and turn.has_text():
            final.add(index)
            is_wanted = False
    for index, turn in enumerate(turns):
        yield turn._replace(final=True) if index in final else turn
