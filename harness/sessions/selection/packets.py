"""Packets: summaries that stand for the first turns of a conversation, kept so that each is made once.

An event of kind `packet` holds one: `{first?, last?, turns: [1, n], text, model?}`. It moves no
boundary and hides nothing: a request that shows these turns otherwise does not use it. The summary
of a boundary counts as a packet for all turns before the first one it keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.messages import MessageDict
from harness.models.tokens import estimate_tokens
from harness.sessions.ledger.numbering import turns_before
from harness.sessions.lines.entries import Entry, EntryDict
from harness.sessions.view.projection import summary_message
from harness.sessions.view.turns import FRAMES
from harness.text import without_tags

__all__ = ["PACKET", "Packet", "packet_data", "packet_message", "packet_of", "packet_text"]

PACKET = "packet"
"""The kind of the event that holds one."""


@dataclass(frozen=True, slots=True)
class Packet:
    """A summary of the turns up to number `last`, as the line `id` holds it.

    kind    `packet`; `boundary` for the summary of a compaction; `checkpoint` for that of a checkpoint
    seq     the number of its line
    tokens  what its message costs, estimated
    """

    id: str
    seq: int
    last: int
    text: str
    kind: str
    tokens: int


def packet_of(entry: Entry) -> Packet | None:
    """The packet in a line; None for any other line."""
    text = packet_text(entry.data)
    if not text:
        return None
    if entry.kind == "compaction":
        last = turns_before(entry)
        kind = "checkpoint" if entry.data.get("checkpoint") is True else "boundary"
    else:
        last, kind = _last(entry.data.get("data")), "packet"
    if not last:
        return None
    return Packet(entry.id, entry.seq, last, text, kind, estimate_tokens(packet_message(entry.id, text)))


def packet_text(data: EntryDict) -> str:
    """The text of the packet that a line holds; empty for any other line."""
    if data.get("type") == "compaction" and data.get("boundary") is True:
        return str(data.get("summary") or "")
    held = data.get("data")
    if data.get("type") != "event" or data.get("kind") != PACKET or not isinstance(held, dict):
        return ""
    return str(held.get("text") or "")


def packet_data(first: str | None, last: str | None, number: int, text: str, model: str | None) -> dict[str, Any]:
    """The data of the event that holds a packet for the turns 1 to `number`.

    `first` and `last` are the ids of those two, where they are known.
    """
    named = {"first": first, "last": last, "turns": [1, number], "text": without_tags(text, FRAMES), "model": model}
    return {key: value for key, value in named.items() if value is not None}


def packet_message(entry_id: str, text: str, gap: Sequence[int] = ()) -> MessageDict:
    """The message that shows a packet. `gap` are the first and last number of turns that nothing else shows."""
    return summary_message(entry_id or "gap", "\n\n".join([*([text] if text else []), *_gap(gap)]))


def _gap(gap: Sequence[int]) -> list[str]:
    if len(gap) != 2:
        return []
    first, last = gap
    return [f"[turns #{first} to #{last} are not shown; recall(turn=n) shows one whole, recall(query=…) finds one]"]


def _last(held: Any) -> int | None:
    turns = held.get("turns") if isinstance(held, dict) else None
    if not isinstance(turns, list) or len(turns) != 2:
        return None
    first, last = turns
    return last if first == 1 and type(last) is int and last > 0 else None
