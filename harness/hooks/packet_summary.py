"""Packets: found among those that are there, or made from the turns' cards, and logged before they are shown.

The summariser reads cards and the longest packet there is, never the turns themselves. Behind its
text stands a record that no model makes: which turns it is about, which tools ran, which files were named.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.errors import ModelError
from harness.hooks.compaction_config import CompactionConfig
from harness.hooks.record import Record, split_record, with_record
from harness.hooks.side import Notices, SideModel
from harness.hooks.summarising import Summary, summarise
from harness.hooks.working_set_config import WorkingSet
from harness.memory import within_budget
from harness.messages import MessageDict
from harness.models.tokens import estimate_tokens
from harness.sessions import SessionTree
from harness.sessions.selection.packets import PACKET, Packet, packet_data, packet_message
from harness.sessions.tree.past_turns import PastTurn, PastTurns
from harness.sessions.view.cards import cards_message
from harness.text import error_text

__all__ = ["AROUND_TEXT", "FAILED", "Behind", "PacketMaker", "newest_packet", "record_of_past", "said_in"]

log = logging.getLogger("harness.hooks")

AROUND_TEXT = 400
"""Tokens that a packet may cost beyond its summary: its frame and its record."""
FAILED = "packet_failed"
"""The kind of the event that says that a packet could not be made."""
_FRAME = 60
_KINDS = ("checkpoint", "boundary", "packet")


@dataclass(frozen=True, slots=True)
class Behind:
    """What stands for the turns behind the packet: a packet if there is any, and turns that not even it names."""

    packet: Packet | None = None
    gap: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PacketMaker:
    """Gives one session its packets."""

    tree: SessionTree
    past: PastTurns
    side: SideModel
    notices: Notices
    config: WorkingSet
    tried: set[tuple[int, int]] = field(default_factory=set)
    """For which ends, and in what size, a packet was asked for in this call."""

    async def behind(self, end: int, most: int, large: int, room: int) -> Behind:
        """What stands for the turns up to number `end`, in at most `most` tokens.

        A summary of a compaction may take `large` tokens. Where no packet is exact one is made; if
        that fails, the longest there is does, and the turns it does not name are named beside it.
        `room` is how many tokens of material one request may show the summariser.
        """
        exact = self._exact(end, most, large)
        if exact is None and (end, most) not in self.tried and not self._failed(end):
            self.tried.add((end, most))
            exact = await self._made(end, most, room)
        if exact is not None:
            return Behind(exact)
        known = [packet for packet in self.past.packets if packet.last <= end and packet.tokens <= max(most, large)]
        best = newest_packet(known)
        if best is None or best.last < end:
            return Behind(best, ((best.last if best else 0) + 1, end))
        return Behind(best)

    def _exact(self, end: int, most: int, large: int) -> Packet | None:
        first = self.past.turns[0].number if self.past.turns else 1
        fit = [
            packet
            for packet in self.past.packets
            if packet.last == end
            # What was put in the place of secrets may have made it a little longer than it was meant to be.
            and packet.tokens <= (most + most // 4 if packet.kind == "packet" else max(most, large))
            # A checkpoint's is a list rather than a summary: it does where the cards themselves are not at hand.
            and (packet.kind != "checkpoint" or end < first)
        ]
        return newest_packet(fit)

    def _failed(self, end: int) -> bool:
        """Whether this was tried since the boundary, in vain: it is not asked for again with every step."""
        return any(
            entry.data["data"].get("turns") == [1, end]
            for entry in self.tree.path()
            if entry.kind == "event" and entry.data.get("kind") == FAILED and isinstance(entry.data.get("data"), dict)
        )

    async def _made(self, end: int, most: int, room: int) -> Packet | None:
        """A new packet, logged; None if no usable summary came."""
        seed = newest_packet([packet for packet in self.past.packets if packet.last <= end])
        begin = seed.last if seed else 0
        turns = [turn for turn in self.past.turns if begin < turn.number <= end]
        if not turns and seed is None:
            return None
        await self.notices.notice("packet_begin", {"turns": [1, end], "cards": len(turns)})
        try:
            made = await summarise(self.side, self._asking(most), *_material(seed, turns), room)
        except ModelError as error:
            log.warning("no summary of turns 1 to %d came (%s); the one before stands for them", end, error_text(error))
            await self.notices.notice(FAILED, {"turns": [1, end], "error": error_text(error)[:500]})
            return None
        text = self._text(made, seed, turns, end, most)
        ids = {turn.number: turn.id for turn in self.past.turns}
        await self.notices.notice(PACKET, packet_data(ids.get(1), ids.get(end), end, text, made.model))
        await self.past.refresh(self.tree, self.config.max_boundaries)
        return self._exact(end, most, most)

    def _asking(self, most: int) -> CompactionConfig:
        config = self.config
        return CompactionConfig(
            summary_prompt=config.packet_prompt,
            model=config.model,
            attempts=config.attempts,
            timeout=config.timeout,
            max_summary_tokens=max(most - most // 3 - _FRAME, 50),
        )

    def _text(self, made: Summary, seed: Packet | None, turns: Sequence[PastTurn], end: int, most: int) -> str:
        record = split_record(seed.text)[1] if seed else Record()
        record.add(record_of_past(turns))
        _fit(record, most // 3)
        left = min(most - estimate_tokens(with_record("", record)) - _FRAME, self.config.max_packet_tokens)
        said = within_budget(split_record(made.text)[0], max(left, 20), "the session's history")
        return with_record(f"[turns #1 to #{end}; recall(turn=n) shows one whole]\n{said}", record)


def newest_packet(packets: Sequence[Packet]) -> Packet | None:
    """Of these the one that stands for most turns; a summary before a list, a newer one before an older."""
    return max(packets, key=lambda packet: (packet.last, _KINDS.index(packet.kind), packet.seq), default=None)


def said_in(packet: Packet) -> str:
    """A packet's text without what is put around a model's words."""
    said = split_record(packet.text)[0]
    first, _, rest = said.partition("\n")
    return rest if first.startswith("[turns #1 to #") else said


def record_of_past(turns: Sequence[PastTurn]) -> Record:
    """The facts of these turns, as far as they are at hand."""
    record = Record()
    for turn in turns:
        tools = {tool: turn.tools.count(tool) for tool in turn.tools}
        record.add(Record(tools=tools, files=[*turn.files]))
    return record


def _material(seed: Packet | None, turns: Sequence[PastTurn]) -> tuple[MessageDict | None, list[MessageDict]]:
    """What the summariser is shown: what stood for the turns before, and the cards of those that come to it."""
    # Without its mark: logged as a part of this request, it must not be taken for a summary that came back.
    marked = packet_message(seed.id, said_in(seed)) if seed else None
    before = {key: value for key, value in marked.items() if key != "meta"} if marked else None
    return before, [cards_message(turns[0].id, [turn.line for turn in turns])] if turns else []


def _fit(record: Record, most: int) -> None:
    """Leave out the oldest facts until the record costs at most so many tokens."""
    while estimate_tokens(with_record("", record)) > most:
        if record.results or record.open:
            (record.results or record.open).pop(0)
        elif len(record.files) >= len(record.tools):
            record.files.pop(0)
        else:
            del record.tools[next(iter(record.tools))]
