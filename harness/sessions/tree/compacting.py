"""What the line of a boundary says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.sessions.ledger.conversation import Conversation
from harness.sessions.ledger.numbering import number_turns, openers, turns_before
from harness.sessions.lines.entries import START, Entry
from harness.sessions.view.turns import FRAMES, newest_boundary
from harness.text import without_tags

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
    checkpoint: bool,
) -> dict[str, Any]:
    """The fields of a `compaction` that is a boundary.

    `keys` are the idempotency keys known behind it, `turns` says how many turns lie before the first one it keeps.
    """
    before, newest = conversation.boundary, newest_boundary(conversation.path)
    # Where only the open turn was made shorter, what was summarised before is summarised still.
    if not last_turn and newest is not None:
        last_turn = str(newest.data.get("lastTurn", ""))
    return {
        "boundary": True,
        "keepsOpenTurn": keeps_open_turn or None,
        "checkpoint": checkpoint or None,
        "summary": without_tags(summary, FRAMES),
        "firstTurn": first_turn,
        "lastTurn": last_turn,
        "turns": _turns(conversation, newest, last_turn),
        "model": model,
        "tokensBefore": tokens_before,
        "cards": list(cards) if cards else None,
        "keys": conversation.keys() or None,
        "prevBoundary": None if before == START else {"seq": before.seq, "offset": before.offset},
    }


def _turns(conversation: Conversation, newest: Entry | None, last_turn: str) -> int | None:
    """None where an older boundary does not say what it is counted from."""
    before = turns_before(newest)
    if before is None:
        return None
    numbers = number_turns(conversation.view().turns, before, openers(conversation.path))
    return numbers.get(last_turn, before)
