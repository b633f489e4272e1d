"""What a call that was cut off had chosen to show, for the call that goes on with its turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.messages import MessageDict
from harness.sessions import Entry
from harness.sessions.selection.packets import packet_message
from harness.sessions.selection.selecting import Selected
from harness.sessions.tree.past_turns import PastTurn, PastTurns
from harness.sessions.view.cards import cards_message

__all__ = ["earlier_selections", "full_turns", "shown_before"]


def earlier_selections(path: Sequence[Entry], turn: str) -> dict[tuple[str, str], list[Selected]]:
    """What the newest request of this turn to each (provider, model) showed before the turn itself.

    Nothing of what was chosen before a compaction, or before the model refused it.
    """
    bindings = {entry.id: entry.data for entry in path if entry.kind == "binding"}
    found: dict[tuple[str, str], list[Selected]] = {}
    for entry in path:
        data = entry.data
        if entry.kind == "compaction" and data.get("checkpoint") is not True:
            found.clear()
        elif entry.kind == "event" and data.get("kind") == "overflow" and isinstance(data.get("data"), dict):
            found.pop(_place(data["data"]), None)
        elif entry.kind == "request_begin" and data.get("purpose") == "execute" and data.get("turnId") == turn:
            *before, last = data.get("select") or [None]
            if last == turn and (bound := bindings.get(str(data.get("binding")))):
                found[_place(bound)] = before
    return found


def full_turns(select: Sequence[Selected], past: PastTurns) -> list[PastTurn]:
    """The turns that these items show in full."""
    ranges = [item["full"] for item in select if isinstance(item, dict) and "full" in item]
    return [turn for ends in ranges for turn in _between(ends, past.turns)]


def shown_before(
    select: Sequence[Selected], past: PastTurns, records: Mapping[str, Sequence[MessageDict]]
) -> list[MessageDict] | None:
    """The messages of these items; None where one of them is not known any more."""
    messages: list[MessageDict] = []
    for item in select:
        found = [*_messages(item, past, records)] if isinstance(item, dict) else []
        if not found:
            return None
        messages.extend(found)
    return messages


def _messages(
    item: Mapping[str, Any], past: PastTurns, records: Mapping[str, Sequence[MessageDict]]
) -> Iterator[MessageDict]:
    if "packet" in item or "gap" in item:
        packet = next((packet for packet in past.packets if packet.id == item.get("packet")), None)
        if packet or "packet" not in item:
            yield packet_message(packet.id if packet else "", packet.text if packet else "", item.get("gap") or ())
    elif "cards" in item and (turns := _between(item["cards"], past.turns)):
        yield cards_message(turns[0].id, [turn.line for turn in turns])
    elif "full" in item:
        turns = _between(item["full"], past.turns)
        if all(turn.id in records for turn in turns):
            yield from (message for turn in turns for message in records[turn.id])


def _between(ends: Any, turns: Sequence[PastTurn]) -> list[PastTurn]:
    """The turns from one id to another; nothing where they are not there."""
    ids = [turn.id for turn in turns]
    if not isinstance(ends, list) or len(ends) != 2 or any(end not in ids for end in ends):
        return []
    return [*turns[ids.index(ends[0]) : ids.index(ends[1]) + 1]]


def _place(data: Mapping[str, Any]) -> tuple[str, str]:
    return str(data.get("provider")), str(data.get("model"))
