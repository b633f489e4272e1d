"""What to compact, decided from sizes alone: no model is asked, nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.hooks.compaction_config import CompactionConfig, TruncateArgsConfig
from harness.messages import MessageDict
from harness.models.tokens import estimate_tokens
from harness.sessions import Entry, Turn, View
from harness.sessions.view.metering import ContextSize, answer_reserve
from harness.sessions.view.truncating import has_long_arguments

__all__ = [
    "Plan",
    "has_steps",
    "held_back",
    "last_to_truncate",
    "make_plan",
    "token_limit",
    "trigger",
    "truncation_due",
]

_GROWTH = 1.25
"""How much larger a context must be before a compaction that gained nothing is tried again."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What goes: whole turns from the oldest, and of the open turn its finished steps."""

    turns: tuple[Turn, ...]
    steps_of: Turn | None = None

    @property
    def gone(self) -> tuple[Turn, ...]:
        """The turns that the summary stands for, wholly or in part."""
        return (*self.turns, *([self.steps_of] if self.steps_of else []))

    @property
    def messages(self) -> list[MessageDict]:
        """All messages that the summary stands for."""
        return [message for turn in self.gone for message in turn.messages]


def token_limit(config: CompactionConfig, window: int | None) -> int | None:
    """Tokens at which to compact: what is configured, and what leaves room for an answer in the window."""
    limits = [config.trigger_tokens] if config.trigger_tokens else []
    if window:
        limits.append(window - answer_reserve(window))
    return min(limits) if limits else None


def trigger(config: CompactionConfig, size: ContextSize, view: View, limit: int | None) -> str | None:
    """Why it is time to compact: `tokens`, `messages`, `turns`; None if it is not."""
    if limit is not None and size.tokens >= limit:
        return "tokens"
    if config.trigger_messages and size.messages >= config.trigger_messages:
        return "messages"
    if config.trigger_turns and sum(turn.closed for turn in view.turns) >= config.trigger_turns:
        return "turns"
    return None


def truncation_due(rule: TruncateArgsConfig, size: ContextSize) -> bool:
    """Whether a conversation is large enough to cut arguments in it."""
    by_messages = bool(rule.trigger_messages) and size.messages >= rule.trigger_messages
    return by_messages or (bool(rule.trigger_tokens) and size.tokens >= rule.trigger_tokens)


def last_to_truncate(rule: TruncateArgsConfig, view: View) -> str | None:
    """The newest turn that has long arguments and may lose them; None where no turn has any."""
    cut = _cut(view.turns, [0] * len(view.turns), rule.keep_messages, 0)
    for turn in reversed(view.turns[:cut]):
        if any(has_long_arguments(message, rule.max_arg_length) for message in turn.messages):
            return turn.id
    return None


def held_back(path: Sequence[Entry], size: ContextSize, turn: str | None) -> bool:
    """Whether the last compaction came to nothing and nothing has changed since.

    One that found no summary is tried again with the next turn, one that would not have shrunk the
    context when the context has grown.
    """
    for entry in reversed(path):
        if entry.kind == "compaction" and entry.data.get("boundary") is True:
            return False
        if entry.kind == "event" and entry.data.get("kind") == "compaction_end":
            return _still(entry.data.get("data"), entry.data.get("turnId"), size, turn)
    return False


def _still(data: Any, then: Any, size: ContextSize, turn: str | None) -> bool:
    status = data.get("status") if isinstance(data, dict) else None
    if status == "failed":
        return turn is not None and then == turn
    if status != "useless":
        return False
    tokens, messages = int(data.get("tokens", 0)), int(data.get("messages", 0))
    return size.tokens < _GROWTH * tokens and size.messages < _GROWTH * messages


def make_plan(
    view: View, config: CompactionConfig, size: ContextSize, limit: int | None, *, pressed: bool
) -> Plan | None:
    """What goes; None if nothing can.

    `pressed` says that tokens are the matter: then the steps of an open turn go too, if without them
    it would still be too much.
    """
    costs = [size.real(_estimate(turn)) for turn in view.turns]
    keep_tokens = config.keep_tokens or (limit // 2 if limit else 0)
    cut = _cut(view.turns, costs, config.keep_messages, keep_tokens)
    closed = len(view.turns) - (view.open_turn is not None)
    if pressed and has_steps(view.open_turn) and _still_too_much(size, sum(costs[:cut]), limit, cut):
        return Plan(view.turns[:closed], view.open_turn)
    return Plan(view.turns[:cut]) if cut else None


def _still_too_much(size: ContextSize, gone: int, limit: int | None, cut: int) -> bool:
    return size.tokens - gone > limit * 3 // 4 if limit else cut == 0


def has_steps(turn: Turn | None) -> bool:
    """Whether an open turn has finished steps, and stands at the end of one."""
    if turn is None or turn.open_calls:
        return False
    return any(message["role"] == "tool" for message in turn.messages)


def _cut(turns: Sequence[Turn], costs: Sequence[int], keep_messages: int, keep_tokens: int) -> int:
    """How many turns go, from the oldest. The newest stays if it is open or if there are others that go."""
    messages = tokens = 0
    cut = len(turns)
    while cut:
        messages += len(turns[cut - 1].messages)
        tokens += costs[cut - 1]
        if messages > keep_messages or (keep_tokens and tokens > keep_tokens):
            break
        cut -= 1
    if cut == len(turns) and cut and (cut > 1 or not turns[-1].closed):
        cut -= 1
    return cut


def _estimate(turn: Turn) -> int:
    return sum(estimate_tokens(message) for message in turn.messages)
