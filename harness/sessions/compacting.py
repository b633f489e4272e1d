"""What the line of a boundary says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.sessions.conversation import Conversation
from harness.sessions.entries import START
from harness.sessions.turns import newest_boundary

__all__ = ["boundary_fields"]


def boundary_fields(
    conversation: Conversation,
    summary: str,
    first_turn: str,
    last_turn: str,
    model: str | None,
    tokens_before: int | None,
    keeps_open_turn: bool,
    cards: Sequence[Mapping[str, Any]] | None,
) -> dict[str, Any]:
    """The fields of a `compaction` that is a boundary; `keys` are the idempotency keys known behind it."""
    before, newest = conversation.boundary, newest_boundary(conversation.path)
    # Where only the open turn was made shorter, what was summarised before is summarised still.
    if not last_turn and newest is not None:
        last_turn = str(newest.data.get("lastTurn", ""))
    return {
        "boundary": True,
        "keepsOpenTurn": keeps_open_turn or None,
        "summary": summary,
        "firstTurn": first_turn,
        "lastTurn": last_turn,
        "model": model,
        "tokensBefore": tokens_before,
        "cards": list(cards) if cards else None,
        "keys": conversation.keys() or None,
        "prevBoundary": None if before == START else {"seq": before.seq, "offset": before.offset},
    }
