"""How pieces become turns: results behind their calls, in call order, however late they were written.

A result whose call is not there stands alone. Nothing that a reader recognised is dropped without a
warning. A format whose lines depend on each other in ways of their own derives from `Assembly`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from harness.transcripts.blocks import BlockDict
from harness.transcripts.branches import Branches, Path
from harness.transcripts.drafts import Draft, Said, Turns, is_left, with_aside
from harness.transcripts.lines import TranscriptWarning
from harness.transcripts.pieces import TORN, Piece
from harness.transcripts.stats import Counts, Tokens
from harness.transcripts.turns import Kind, Turn

__all__ = ["Assembly", "Draft", "Said", "Span", "with_aside"]

_RESULTS = frozenset({"results", "orphan"})


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
    results_grow = False
    """Whether a later line may add to a result."""
    state_mark = b""
    """What stands in every line whose word holds for those behind it until the next of its kind."""

    def __init__(self) -> None:
        self.warnings: list[TranscriptWarning] = []
        self.added = Counts()
        self._drafts: list[Said] = []
        self._grown: list[Draft] = []
        self._keyed: dict[str, Draft] = {}
        self._said: dict[Any, Piece] = {}
        self._again: dict[Any, set[bytes]] = {}
        self._calls: dict[str, BlockDict] = {}
        self._results: dict[str, Said] = {}
        self.branches = Branches()
        self._ties: list[Span] = []

    def add(self, pieces: Iterable[Piece]) -> None:
        """Take in pieces in the order of the file."""
        entries, torn = self.branches.growing()
        for piece in pieces:
            kind = piece.kind
            if piece.entry is not None:
                (torn if piece.note == TORN else entries)[piece.entry] = piece
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

    def message(self, piece: Piece) -> Said:
        """A message of one piece; a format where more may be told of it keeps a draft."""
        self._drafts.append(piece)
        return piece

    def answer(self, piece: Piece) -> None:
        """A model's message, or one more piece of it."""
        if piece.key is None:
            blocks = self.unseen(piece)
            self._drafts.append(piece if blocks is piece.blocks else piece.replaced(blocks=blocks))
        else:
            draft = self.keyed(piece)
            if piece.data is None or not self._is_repeated(piece):
                draft.blocks += self.unseen(piece)

    def result(self, piece: Piece) -> None:
        """One result, by itself until its call is known to be there or not.

        A second one of the same id answers nothing; what it says beyond the first is kept as a remark.
        """
        key = piece.blocks[0]["id"]
        if key in self._results:
            self.warn("duplicate_result", piece.line, f"result of {key[:80]} again; the first is kept")
            again, first = piece.blocks[0].get("content"), self._results[key].blocks[0].get("content")
            if again and again != first:
                self._drafts.append(piece.replaced(kind="meta", blocks=again))
            return
        said = self._results[key] = Draft(piece) if self.results_grow else piece
        if key not in self._calls:  # else it will not stand alone, whatever comes
            self._drafts.append(said)

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
        self._grown.append(draft)
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
        made = self._placed()
        if followed:
            made.end_answer()
        return tuple(made.turns)

    def tokens(self) -> Tokens:
        """What the messages cost, each once."""
        usages = [usage for said in self._drafts if (usage := said.usage) is not None]
        return Tokens.of(usages, sum(draft.gained for draft in self._grown), sum(draft.more for draft in self._grown))

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

    def resume(self, state: Iterable[Piece]) -> None:
        """In a window: what the last line of `state_mark` in front of it says."""

    def path(self) -> Path:
        """In a tree: which entries lead from the last one back to the first."""
        return self.branches.path(self.meant)

    def start_from(self, tip: str | None) -> None:
        """In a window of a tree that others follow: where the active path enters it."""
        self.branches.start = tip

    def meant(self, link: str) -> str | None:
        """In a tree: the entry that a link leads to which names none."""
        return None

    def unseen(self, piece: Piece) -> list[BlockDict]:
        """The blocks of a piece, without calls that were there before; from now on its calls are there."""
        known, found = self._calls, piece.blocks
        for block in found:
            if block["type"] == "toolUse" and known.setdefault(block["id"], block) is not block:
                return [block for block in found if not self._is_again(block, piece)]
        return found

    def _is_again(self, block: BlockDict, piece: Piece) -> bool:
        """Whether a block is a call that was there before; said if so."""
        if block["type"] != "toolUse" or self._calls.setdefault(block["id"], block) is block:
            return False
        self.warn("duplicate_call", piece.line, f"call {block['id'][:80]} again; the first is kept")
        return True

    def _is_repeated(self, piece: Piece) -> bool:
        """Exactly the same line once more; its own id makes sure that it was not said twice."""
        first = self._said.setdefault(piece.data, piece)
        if first is piece:
            return False
        again = self._again.setdefault(piece.data, {_content(first)})
        before = len(again)
        again.add(_content(piece))
        return len(again) == before

    def _is_orphan(self, draft: Said) -> bool:
        return draft.kind in _RESULTS and draft.blocks[0]["id"] not in self._calls

    def _span(self, draft: Said) -> Span:
        calls = [block["id"] for block in draft.blocks if block["type"] == "toolUse"]
        found = [self._results[key] for key in calls if key in self._results]
        first = min([draft.offset, *(result.offset for result in found)])
        last = max([draft.until, *(result.until for result in found)])
        kind: Any = "orphan" if self._is_orphan(draft) else draft.kind
        if kind == "prompt" and draft.aside:
            kind = "context"  # what a sub-agent is told ends nothing
        return Span(kind, first, last, len(found) < len(calls))

    def _left(self) -> Mapping[str, object]:
        """In a tree: the entries that are not on the path from the last one to the first; what is lost is told."""
        if not self.is_tree:
            return {}
        left, _, lost = self.path()
        for link, piece in lost.items():
            self._warn_of(link, piece)
        return left

    def _warn_of(self, link: str, piece: Piece | None) -> None:
        if piece is not None:
            text = f"follows {link[:80]!r}, which is not in the file; read as if it followed the entry in front of it"
            self.warn("missing_entry", piece.line, text)

    def _placed(self) -> Turns:
        """The turns, in order; what stands on entries that were left is put aside."""
        made, left = Turns(), self._left()
        results, known, add = self._results, self._calls, made.add
        for said in self._drafts:
            kind: Any = said.kind
            blocks = said.blocks
            if kind in _RESULTS:
                if blocks[0]["id"] in known:
                    continue
                kind = "orphan"
            elif not blocks:
                continue
            aside = said.aside
            if left and aside is None and (said.entry in left if type(said) is Piece else is_left(said, left)):
                aside = "abandoned"
            add(kind, said, blocks, aside)
            if kind == "answer" and results:
                made.answered(blocks, results, aside)
        return made


def _content(piece: Piece) -> bytes:
    """What tells two pieces of one name apart."""
    return sha256(repr((piece.blocks, piece.usage, piece.at)).encode("utf-8", "surrogatepass")).digest()
