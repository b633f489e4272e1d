"""Checkpoints: boundaries that keep reading cheap and hide nothing from a request that selects what it shows.

Without them, opening a session would read all of it. The summary of one is put together from what is
there, without a model: it serves whoever goes on under another policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from harness.hooks.packet_summary import newest_packet, record_of_past, said_in
from harness.hooks.record import Record, split_record, with_record
from harness.memory import within_budget
from harness.sessions import SessionTree
from harness.sessions.selection.packets import Packet
from harness.sessions.tree.past_turns import PastTurn, PastTurns
from harness.sessions.view.metering import CAPACITY, capacities, capacity_events

__all__ = ["add_checkpoint", "checkpoint_due"]

_KEPT = 8
"""Closed turns that stay in view at least."""
_TOKENS = 6_000
"""Of which a third may be cards, and the rest what was said before them."""
_CARD = ("turn", "asked", "did", "answered", "outcome", "evidence", "tokens")


def checkpoint_due(tree: SessionTree, every: int) -> bool:
    """Whether so many closed turns are in view that the oldest `every` of them can go."""
    return sum(turn.closed for turn in tree.view().turns) >= every + _KEPT


def add_checkpoint(tree: SessionTree, past: PastTurns, count: int, tokens: int = _TOKENS) -> None:
    """Log a boundary behind the oldest `count` turns in view. It goes to disk with the next commit.

    Its summary has about `tokens` at most, estimated, and a record besides.
    """
    gone = tree.view().turns[:count]
    ids = {turn.id for turn in gone}
    turns = [turn for turn in past.turns if turn.id in ids]
    known = capacities(tree.path())
    tree.append_compaction(
        summary=_summary(past, turns, tokens),
        first_turn=gone[0].id,
        last_turn=gone[-1].id,
        model=None,
        tokens_before=None,
        cards=_cards(tree, ids),
        checkpoint=True,
    )
    for data in capacity_events(known):
        tree.add("event", {"kind": CAPACITY, "data": data})


def _summary(past: PastTurns, turns: Sequence[PastTurn], tokens: int) -> str:
    """The newest packet, and the cards of the turns that it does not stand for, the newest that have room."""
    last = turns[-1].number if turns else 0
    best = newest_packet([packet for packet in past.packets if packet.last <= last])
    rest = [turn for turn in past.turns if (best.last if best else 0) < turn.number <= last]
    record = split_record(best.text)[1] if best else Record()
    record.add(record_of_past(rest))
    cards = within_budget("\n".join(turn.line for turn in rest), tokens // 3, "the session's history", "end")
    parts = [_said(best, tokens - tokens // 3)] if best else []
    return with_record("\n\n".join([*parts, *([cards] if cards else [])]), record)


def _said(packet: Packet, most: int) -> str:
    # A list grows at its end; a summary says first what matters most.
    keep: Literal["start", "end"] = "end" if packet.kind == "checkpoint" else "start"
    return within_budget(said_in(packet), most, "the session's history", keep)


def _cards(tree: SessionTree, turns: set[str]) -> list[dict[str, Any]]:
    return [
        {key: entry.data[key] for key in _CARD if key in entry.data}
        for entry in tree.path()
        if entry.kind == "turn_card" and entry.data.get("turn") in turns
    ]
