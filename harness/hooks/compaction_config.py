"""When and how a conversation is compacted, as one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.errors import ConfigError
from harness.models.base import Model

__all__ = ["SUMMARY_PROMPT", "CompactionConfig", "TruncateArgsConfig"]

SUMMARY_PROMPT = """\
Summarise the conversation so far, so that it can go on from your summary alone.
Use these headings: INTENT (what the person wants, in their words where it matters), FACTS (names,
numbers, decisions, preferences, and what tools found), FILES (paths written or read), OPEN (what
was asked and is not done). Take over what an earlier summary says and still holds.
Answer with the summary only. Do not call tools."""


@dataclass(frozen=True, slots=True)
class TruncateArgsConfig:
    """Long arguments of old tool calls are cut before anything is summarised.

    trigger_messages, trigger_tokens  when to look for some; 0 switches a trigger off
    keep_messages                     the newest messages are left as they are, rounded to whole turns
    max_arg_length                    characters an argument may have; a longer one keeps its first 20
    truncation_text                   what stands in place of the rest
    """

    trigger_messages: int = 25
    trigger_tokens: int = 40_000
    keep_messages: int = 20
    max_arg_length: int = 2_000
    truncation_text: str = "...(argument truncated)"

    def __post_init__(self) -> None:
        if min(self.trigger_messages, self.trigger_tokens, self.keep_messages) < 0 or self.max_arg_length < 20:
            raise ConfigError("truncate_args: numbers must be 0 or more, and max_arg_length 20 or more")


@dataclass(frozen=True, slots=True)
class CompactionConfig:
    """When and how a conversation is compacted.

    trigger_messages    compact when the model would see this many messages or more; 0 for never
    trigger_tokens      or this many tokens, system text and tools included; 0 for never. What the model takes is a
                        limit too where it is known: near it the conversation is compacted whatever stands here
    trigger_turns       or this many closed turns; 0 for never
    keep_messages       at most this many messages stay as they are, rounded to whole turns; the newest turn always does
    keep_tokens         and at most this many tokens; 0 for half of what triggers
    mode                `summarise`, or `discard`: without a model, at the end of a turn only
    summary_prompt      what the model is asked for
    max_summary_tokens  a longer summary is cut
    model               who summarises; None for the call's own model
    attempts            how often a model is asked that answers with nothing or with tool calls
    timeout             seconds one summary may take
    truncate_args       cuts long arguments of old tool calls first; None for never

    Raises `ConfigError` for numbers that cannot work together.
    """

    trigger_messages: int = 50
    keep_messages: int = 20
    summary_prompt: str = SUMMARY_PROMPT
    model: Model | None = None
    trigger_tokens: int = 80_000
    trigger_turns: int = 0
    keep_tokens: int = 0
    mode: Literal["summarise", "discard"] = "summarise"
    max_summary_tokens: int = 4_000
    attempts: int = 3
    timeout: float = 120.0
    truncate_args: TruncateArgsConfig | None = None

    def __post_init__(self) -> None:
        for name in ("keep_messages", "keep_tokens", "trigger_tokens", "trigger_turns", "trigger_messages"):
            if getattr(self, name) < 0 or (name == "trigger_messages" and self.trigger_messages == 1):
                least = "0, or 2 or more" if name == "trigger_messages" else "0 or more"
                raise ConfigError(f"compaction: {name} is {getattr(self, name)}; it can be {least}")
        self._check_pair("keep_messages", "trigger_messages")
        self._check_pair("keep_tokens", "trigger_tokens")
        if self.mode not in ("summarise", "discard"):
            raise ConfigError(f"compaction: mode is {self.mode!r}; it can be 'summarise' or 'discard'")
        if self.attempts < 1 or self.timeout <= 0 or self.max_summary_tokens < 50:
            raise ConfigError("compaction: attempts must be 1 or more, timeout above 0, max_summary_tokens 50 or more")

    def _check_pair(self, keep: str, trigger: str) -> None:
        kept, limit = getattr(self, keep), getattr(self, trigger)
        if limit and kept >= limit:
            raise ConfigError(
                f"compaction: {keep} ({kept}) must be smaller than {trigger} ({limit}), or nothing would ever be gained"
            )
