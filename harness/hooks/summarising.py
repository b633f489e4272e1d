"""Getting a summary out of a model that may answer with nothing, with tool calls, too late, or refuse the length."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.errors import ContextOverflow, ModelError, ModelMalformed, ModelTimeout
from harness.hooks.compaction_config import CompactionConfig
from harness.hooks.record import split_record
from harness.hooks.side import SideModel
from harness.memory import both_ends, conversation_text, fence, within_budget
from harness.messages import MessageDict, Msg
from harness.models.tokens import estimate_tokens
from harness.sessions import Turn
from harness.sessions.view.cards import card_line, turn_card
from harness.sessions.view.turns import FRAMES
from harness.text import error_text, without_tags

__all__ = ["Summary", "plain_summary", "summarise"]

SUMMARY_SYSTEM = "You summarise conversations so that nothing needed later is lost."
_AGAIN = (
    "\n\nYour last answer was no summary: it {wrong}. Answer with the text of the summary only, without calling tools."
)
_RESULT_CHARS = 2_000
_LEAST_ROOM = 400
_MOST_PIECES = 8
"""Requests for one summary."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A finished summary, and the model that made it (`provider:model`); None where none did."""

    text: str
    model: str | None = None


async def summarise(
    side: SideModel,
    config: CompactionConfig,
    previous: MessageDict | None,
    messages: Sequence[MessageDict],
    room: int | None,
) -> Summary:
    """A summary of the messages that takes over the previous one. Raises `ModelError` when no usable one came.

    `room` is how many estimated tokens of material one request may show; None for any number. What
    is more is shown as text, piece by piece, the summary so far in front of each.
    """
    asking = _Asking(side, config)
    shown = [*([previous] if previous else []), *messages]
    size = sum(estimate_tokens(message) for message in shown)
    while True:
        try:
            if room is None or size <= room:
                return await asking.usable(shown)
            return await _piecewise(asking, previous, messages, max(room, _LEAST_ROOM))
        except ContextOverflow:
            room = min(size, size if room is None else room) // 2
            if room < _LEAST_ROOM:
                raise


async def _piecewise(
    asking: _Asking, previous: MessageDict | None, messages: Sequence[MessageDict], room: int
) -> Summary:
    most = min(asking.config.max_summary_tokens, room // 3)
    # One that was made with a larger model must not fill the room of this one.
    before = split_record(_inner(previous))[0] if previous else ""
    so_far = Summary(within_budget(before, most, "the session's history") if before else "")
    for piece in _few_pieces(conversation_text(messages, _RESULT_CHARS), room - most):
        parts = [fence("context_summary", so_far.text)] if so_far.text else []
        shown = "\n\n".join([*parts, fence("conversation", piece)])
        answer = await asking.usable([Msg.user(shown).cleaned().to_dict()])
        so_far = Summary(within_budget(answer.text, most, "the session's history"), answer.model)
    return so_far


class _Asking:
    """One budget of failed attempts for all requests of one compaction."""

    def __init__(self, side: SideModel, config: CompactionConfig) -> None:
        self.config = config
        self._side = side
        self._left = config.attempts

    async def usable(self, messages: Sequence[MessageDict]) -> Summary:
        instruction = self.config.summary_prompt
        while True:
            reply = await self._once(messages, instruction)
            wrong = _fault(reply)
            if wrong is None:
                return Summary(without_tags(reply.text.strip(), FRAMES), f"{reply.provider}:{reply.model}")
            self._left -= 1
            if self._left <= 0:
                raise ModelMalformed(f"{reply.provider}:{reply.model} gave no summary: it {wrong}; try another model")
            instruction = self.config.summary_prompt + _AGAIN.format(wrong=wrong)

    async def _once(self, messages: Sequence[MessageDict], instruction: str) -> Msg:
        limit = asyncio.timeout(self.config.timeout)
        try:
            async with limit:
                return await self._side.ask("summarize", SUMMARY_SYSTEM, messages, instruction, self.config.model)
        except TimeoutError as error:
            if not limit.expired():
                raise ModelError(f"the request for a summary failed: {error_text(error)}") from error
            raise ModelTimeout(
                f"no summary came within {self.config.timeout:g} s; allow more, or another model"
            ) from None


def plain_summary(previous: str, turns: Sequence[Turn], tokens: int) -> Summary:
    """A summary that no model made: what the previous one said, and a line for each turn; at most so many tokens."""
    lines = [f"- {' '.join(card_line(turn_card(turn, 'unrecorded')).split())}" for turn in turns]
    kept = within_budget(previous, tokens // 2, "the session's history") if previous else ""
    newest = within_budget("\n".join(lines), tokens - estimate_tokens(kept) - 2, "the session's history", keep="end")
    return Summary("\n".join(part for part in (kept, newest) if part))


def _fault(reply: Msg) -> str | None:
    if reply.tool_uses:
        return "asked for a tool"
    return None if reply.text.strip() else "was empty"


def _inner(message: MessageDict) -> str:
    text = Msg.from_dict(message).text
    return text.removeprefix("<context_summary>\n").removesuffix("\n</context_summary>")


def _few_pieces(text: str, tokens: int) -> list[str]:
    """The text in pieces; of what would take too many the middle is left out, openly, for it can be recalled."""
    pieces, budget = [*_pieces(text, tokens)], tokens * _MOST_PIECES
    while len(pieces) > _MOST_PIECES:
        pieces = [*_pieces(both_ends(text, budget, "recall"), tokens)]
        budget = budget * 7 // 8
    return pieces


def _pieces(text: str, tokens: int) -> Iterator[str]:
    """The text in pieces of at most so many tokens, whole lines where they fit."""
    piece: list[str] = []
    used = 0
    for line in text.split("\n"):
        for part in _parts(line, tokens):
            cost = estimate_tokens(f"{part}\n")
            if piece and used + cost > tokens:
                yield "\n".join(piece)
                piece, used = [], 0
            piece.append(part)
            used += cost
    if piece:
        yield "\n".join(piece)


def _parts(line: str, tokens: int) -> Iterator[str]:
    """A line, or slices of it: no slice of so many characters can have more tokens, whatever its script."""
    width = max(tokens // 2, 1) if not line.isascii() else max(tokens * 3, 1)
    for start in range(0, max(len(line), 1), width):
        yield line[start : start + width]
