"""How a rollout's items become messages, and its running totals the tokens of each.

Items that follow each other until a result or a prompt comes are one message of the model. Token
totals start from zero when a rollout is resumed. A fork begins with its parent's history, totals
included: what those say was spent by the parent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from operator import add
from typing import Any

from harness.transcripts.assembly import Assembly, Draft, Said, Span
from harness.transcripts.blocks import BlockDict, counts, integer, usage_dict
from harness.transcripts.pieces import Piece
from harness.transcripts.stats import Tokens
from harness.transcripts.turns import Turn

__all__ = ["CodexAssembly", "TokenTotals"]

_FIELDS = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
)
_NONE = (0,) * len(_FIELDS)
_OUTPUT = _FIELDS.index("output_tokens")
_MIRROR = "mirror:"
_PAUSE = 1.0


class TokenTotals:
    """Adds up the processes that wrote one rollout; each counts from zero."""

    def __init__(self) -> None:
        self._ended = self._running = _NONE
        self.is_known = False

    def count(self, info: object) -> dict[str, int] | None:
        """Take in one `token_count`; the usage of its request, or None if it repeats the one before."""
        total = _tokens(info, "total_token_usage")
        if total is None or total == self._running:
            return None
        self.is_known = True
        if total[_OUTPUT] < self._running[_OUTPUT]:
            self._ended = tuple(map(add, self._ended, self._running))
        self._running = total
        request = _tokens(info, "last_token_usage")
        return _usage(request) if request else None

    def forget(self) -> None:
        """What was counted so far was spent by another session, and the totals go on from there."""
        self._ended = tuple(-value for value in self._running)

    def usage(self) -> dict[str, int]:
        """The tokens of this rollout. Fresh input leaves cached tokens out."""
        return _usage(tuple(max(0, total) for total in map(add, self._ended, self._running)))


class CodexAssembly(Assembly):
    """See the module."""

    state_mark = b'"turn_context"'

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[Piece] = []
        self._spoken: set[str] = set()
        self._exits: dict[str, int] = {}
        self._totals = TokenTotals()
        self._provider = "openai"
        self._model: str | None = None
        self._open: Draft | None = None
        self._last: Draft | None = None
        self._opening: int | None = None
        self._opened: dict[int, int] = {}
        self._first_meta: Piece | None = None

    def add(self, pieces: Iterable[Piece]) -> None:
        """Which events are needed is only known when all items are."""
        self._waiting += pieces

    def turns(self, *, followed: bool = True) -> tuple[Turn, ...]:
        """See `Assembly`."""
        self._settle()
        return super().turns(followed=followed)

    def spans(self) -> list[Span]:
        """See `Assembly`. A prompt begins where its task does: its settings stand in front of it."""
        self._settle()
        return [replace(span, offset=self._opened.get(span.offset, span.offset)) for span in super().spans()]

    def prime(self, head: Iterable[Piece]) -> None:
        """See `Assembly`: who speaks in items at the beginning does so to the end; whose rollout it is stands there."""
        pieces = list(head)
        self._spoken |= {piece.note for piece in pieces if piece.kind != "note"}
        self._first_meta = next((piece for piece in pieces if piece.note == "meta"), None)

    def resume(self, state: Iterable[Piece]) -> None:
        """See `Assembly`."""
        self._hear(state)

    def tokens(self) -> Tokens:
        """The totals of every process that wrote this rollout, added up."""
        return Tokens.total(self._totals.usage()) if self._totals.is_known else Tokens()

    def note(self, piece: Piece) -> None:
        """State, totals, and what the screen showed."""
        data: Any = piece.data
        if self._opening is None and piece.note in ("task", "state"):
            self._opening = piece.offset
        if piece.note == "usage":
            self._count(data)
        elif piece.note in ("state", "meta"):
            self._hear([piece])
        elif piece.note.startswith(_MIRROR):
            self._mirrored(piece, piece.note.removeprefix(_MIRROR))

    def message(self, piece: Piece) -> Said:
        """A prompt, context or compaction ends what the model was saying."""
        self._open = None
        if piece.kind == "prompt" and self._opening is not None:
            self._opened[piece.offset] = self._opening
        return super().message(piece)

    def result(self, piece: Piece) -> None:
        """See `Assembly`."""
        self._open = self._opening = None
        block = piece.blocks[0]
        code = self._exits.get(block["id"]) if piece.data == "unknown" else None
        if code is None:
            super().result(piece)
            return
        told = {**block, "isError": bool(code), "exitCode": code}
        super().result(Piece("results", piece.line, piece.offset, piece.at, [told]))

    def answer(self, piece: Piece) -> None:
        """One more piece of the open message, or the first of a new one."""
        self._opening, draft = None, self._open
        if draft is None:
            draft = self._open = self._last = self.keep(Draft(piece))
            draft.fields = {"provider": self._provider, **({"model": self._model} if self._model else {})}
            draft.blocks = []
        draft.until = piece.offset
        said = self.unseen(piece)
        draft.blocks += [self._attributed(block) for block in said] if piece.note == "reasoning" else said

    def _hear(self, told: Iterable[Piece]) -> None:
        """Which model speaks from here on, and whose it is."""
        for piece in told:
            data: Any = piece.data
            self._model = data.get("model") or self._model
            self._provider = data.get("provider") or self._provider

    def _settle(self) -> None:
        """Put everything together, once."""
        waiting, self._waiting = self._waiting, []
        for piece in waiting:
            if piece.kind != "note":
                self._spoken.add(piece.note)
            elif piece.note == "exit" and isinstance(piece.data[0], str) and isinstance(piece.data[1], int):
                self._exits[piece.data[0]] = piece.data[1]
        inherited = _inherited(waiting, self._first_meta)
        super().add(waiting[:inherited])
        if inherited:
            self._totals.forget()
            for draft in self._drafts:
                if isinstance(draft, Draft):
                    draft.fields = {name: value for name, value in (draft.fields or {}).items() if name != "usage"}
        super().add(waiting[inherited:])

    def _count(self, info: object) -> None:
        """Add one request's tokens to the message it made."""
        usage = self._totals.count(info)
        if usage and self._last is not None:
            known = (self._last.fields or {}).get("usage")
            if known is not None:
                usage = {name: integer(known[name] + value) for name, value in usage.items()}
            self._last.tell({"usage": usage})

    def _mirrored(self, piece: Piece, role: str) -> None:
        if role in self._spoken:
            return
        content = piece.blocks
        if role == "user":
            self.added.prompts_lt += not content[0]["text"].lstrip().startswith("<")
            self.message(Piece("prompt", piece.line, piece.offset, piece.at, content))
            return
        self.added.assistant_msgs += role == "assistant"
        shown = [{"type": "thinking", "text": content[0]["text"]}] if role == "reasoning" else content
        self.answer(Piece("answer", piece.line, piece.offset, piece.at, shown))

    def _attributed(self, block: BlockDict) -> BlockDict:
        """Reasoning, under the names of the provider and model that alone can read its record."""
        if "opaque" not in block:
            return block
        model = {"model": self._model} if self._model else {}
        return {**block, "opaque": {"provider": self._provider, **model, "data": block["opaque"]["data"]}}


def _is_fork(meta: Piece) -> bool:
    data: Any = meta.data
    return bool(data["forked"])


def _inherited(pieces: list[Piece], first: Piece | None) -> int:
    """How many pieces of a fork are its parent's: they were all written at once, before anything else.

    A fork is known by its own first line and by its parent's behind it. The history ends where the
    writing paused, or where the newest task begins.
    """
    metas = [n for n, piece in enumerate(pieces) if piece.note == "meta"]
    if len(metas) < 2:
        return 0
    here = pieces[metas[0]]
    if not _is_fork(here) or (first is not None and first.offset != here.offset):
        return 0
    last: datetime | None = None
    for number, piece in enumerate(pieces[metas[1] :], start=metas[1]):
        now = datetime.fromisoformat(piece.at) if piece.at else last
        if last and now and (now - last).total_seconds() > _PAUSE:
            return number
        last = now
    return max((n for n, piece in enumerate(pieces) if piece.note == "task"), default=0)


def _tokens(info: object, name: str) -> tuple[int, ...] | None:
    """Counts in the order of `_FIELDS`."""
    found = info.get(name) if isinstance(info, dict) else None
    if not isinstance(found, dict):
        return None
    told = tuple(map(found.get, _FIELDS, _NONE))
    return told if counts(told) else tuple(map(integer, told))


def _usage(tokens: tuple[int, ...]) -> dict[str, int]:
    given, cached, written, out, reasoning = tokens
    return usage_dict(given - cached, cached, written, out, reasoning)
