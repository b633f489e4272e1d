"""How a conversation is shown piece by piece, as one value."""

from __future__ import annotations

from dataclasses import dataclass

from harness.errors import ConfigError
from harness.hooks.common_words import REFERENCES
from harness.models.base import Model

__all__ = ["PACKET_PROMPT", "WorkingSet"]

PACKET_PROMPT = """\
Above are turns of one conversation, a line each, and perhaps a summary of the turns before them.
Make of them one summary, from which the conversation can go on: what the person wants, in their words
where it matters; names, numbers, decisions and preferences; what was done and found; what is still open.
Take over what the earlier summary says and still holds. Name turns by their numbers (#12) where details
may be needed again. Answer with the summary only. Do not call tools."""

_LEAST = {
    "max_full_tokens": 0,
    "batch": 1,
    "checkpoint_turns": 8,
    "max_boundaries": 1,
    "max_packet_tokens": 50,
    "attempts": 1,
}


@dataclass(frozen=True, slots=True)
class WorkingSet:
    """Closed turns are shown in full, as a line each, or behind a summary of those lines, request by request.

    max_full_tokens    tokens that closed turns may take in full; never more than half of what the model leaves
                       for them, once not all of them fit
    batch              turns that go behind the summary at once: the larger, the fewer summaries are made
    checkpoint_turns   closed turns after which the ledger gets a place to read from, so that opening a session
                       costs the same however long it is
    max_boundaries     how many such places are looked behind: turns before them are found by `recall` alone
    max_packet_tokens  a longer summary is cut
    model              who summarises; None for the call's own model
    packet_prompt      what that model is asked for
    references         words and phrases by which a directive points at the turn before it
    attempts           how often a model is asked that answers with nothing or with tool calls
    timeout            seconds one summary may take

    Raises `ConfigError` for numbers that cannot work.
    """

    max_full_tokens: int = 12_000
    batch: int = 8
    checkpoint_turns: int = 64
    max_boundaries: int = 8
    max_packet_tokens: int = 800
    model: Model | None = None
    packet_prompt: str = PACKET_PROMPT
    references: tuple[str, ...] = REFERENCES
    attempts: int = 2
    timeout: float = 60.0

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise ConfigError(f"working_set: {name} is {getattr(self, name)}; it must be {least} or more")
        if self.timeout <= 0:
            raise ConfigError(f"working_set: timeout is {self.timeout:g}; it must be above 0 seconds")
        if not self.packet_prompt.strip():
            raise ConfigError("working_set: packet_prompt is empty; leave it out to use the one that is built in")
        if isinstance(self.references, str):
            raise ConfigError("working_set: references is one text; give a tuple of words and phrases")
