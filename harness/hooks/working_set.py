"""The working set: what one request shows of a conversation, chosen anew when a turn begins.

A closed turn is shown in full, as one line, or behind a packet, by what it is worth to the directive
and by what the model takes. Nothing is ever hidden for good: the next turn, or a model with a larger
window, may be shown all of it again. Within a turn the choice stands, so that each request begins
as the one before it did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from harness.errors import ContextOverflow
from harness.hooks.checkpoint import add_checkpoint, checkpoint_due
from harness.hooks.compaction import Compactor
from harness.hooks.compaction_config import CompactionConfig
from harness.hooks.compaction_plan import has_steps, held_back
from harness.hooks.gauge import Gauge, gauge_of, growth_reserve, news_of
from harness.hooks.packet_summary import AROUND_TEXT, Behind, PacketMaker
from harness.hooks.planner import Candidate, Plan, Room, content_words, make_plan, refers_back
from harness.hooks.resumed import earlier_selections, full_turns, shown_before
from harness.hooks.side import Notices, SideModel
from harness.hooks.working_set_config import WorkingSet
from harness.messages import MessageDict
from harness.models.base import Model
from harness.models.tokens import estimate_tokens
from harness.sessions import SessionTree, Turn
from harness.sessions.selection.packets import packet_message
from harness.sessions.selection.selecting import Selected
from harness.sessions.tree.past_turns import PastTurn, PastTurns
from harness.sessions.view.cards import cards_message
from harness.sessions.view.metering import CAPACITY, Capacity, Meter, guessed, learned
from harness.sessions.view.turns import blocks_of, newest_boundary
from harness.text import error_text

__all__ = ["Selector"]

_TRIES = 4


@dataclass(frozen=True, slots=True)
class _Selection:
    """What stands before the open turn, and what it costs, estimated."""

    select: tuple[Selected, ...] = ()
    messages: tuple[MessageDict, ...] = ()
    tokens: int = 0


class Selector:
    """Chooses for one call on one session, which is held for writing.

    Call `prepare` before each request; `shown` is what the request shows then.
    """

    def __init__(
        self, tree: SessionTree, past: PastTurns, side: SideModel, notices: Notices, config: WorkingSet
    ) -> None:
        self._tree = tree
        self._past = past
        self._notices = notices
        self._config = config
        self._side = side
        self._packets = PacketMaker(tree=tree, past=past, side=side, notices=notices, config=config)
        self._meter = Meter()
        self._begun = False
        self._held: dict[tuple[str, str], _Selection] = {}
        self._most: dict[tuple[str, str], int] = {}
        self._earlier: dict[tuple[str, str], list[Selected]] = {}
        self._current = _Selection()

    def shown(self) -> tuple[list[Selected], list[MessageDict]]:
        """What a request shows now, and how a `request_begin` says so."""
        turn = self._open_turn()
        if turn is None:
            return [], []
        standing = self._standing(turn)
        if self._shortened(turn):
            return [*(str(message["id"]) for message in standing[: -len(turn.messages)]), turn.id], standing
        return [*self._current.select, turn.id], [*self._current.messages, *standing]

    @property
    def tokens(self) -> int:
        """What the messages shown now cost, estimated."""
        turn = self._open_turn()
        return _cost(self._standing(turn)) + (0 if turn and self._shortened(turn) else self._current.tokens)

    async def prepare(self, model: Model, around: int) -> None:
        """Choose for a request to this model; `around` is the estimate of system text and tools.

        What was chosen for it before in this turn stands, unless the open turn has outgrown it.
        """
        await self._begin()
        place = (model.provider, model.name)
        if (news := news_of(self._meter, model)) is not None:
            await self._notices.notice(CAPACITY, _words(model, news))
            self._meter.follow(self._tree.path())
        gauge = gauge_of(self._meter, model, self._most.get(place))
        held = self._held.get(place) or await self._resumed(place)
        if held is None or held.tokens > self._left(gauge, around):
            held = await self._chosen(model, gauge, around)
        self._current = self._held[place] = held

    async def overflowed(self, model: Model, around: int, error: ContextOverflow) -> bool:
        """Choose less because this model refused; whether the request is smaller now."""
        place = (model.provider, model.name)
        sent = around + self.tokens
        ratio = gauge_of(self._meter, model).ratio
        real = round(sent * ratio)
        await self._notices.notice("overflow", {**_words(model), "tokens": real, "error": error_text(error)[:500]})
        found = learned(error.window, sent, ratio)
        if found == Capacity():
            # How much too large it was is not known: word of it is kept for later turns, and this one asks for half.
            found, self._most[place] = guessed(real * 9 // 10), real // 2
        await self._notices.notice(CAPACITY, _words(model, found))
        self._held.pop(place, None)
        self._earlier.pop(place, None)
        await self.prepare(model, around)
        return around + self.tokens < sent

    async def refused(self, model: Model, around: int, error: ContextOverflow) -> None:
        """Note that the smaller request was refused too, so that later ones are smaller still."""
        ratio = gauge_of(self._meter, model).ratio
        sent = around + self.tokens
        found = learned(error.window, sent, ratio)
        await self._notices.notice(
            CAPACITY, _words(model, found if found != Capacity() else guessed(round(sent * ratio) // 2))
        )

    # ---- where things stand

    async def _begin(self) -> None:
        """Take in what was logged; at the first request of a call, a checkpoint if it is time for one."""
        most, every = self._config.max_boundaries, self._config.checkpoint_turns
        await self._past.refresh(self._tree, most)
        if not self._begun and checkpoint_due(self._tree, every):
            add_checkpoint(self._tree, self._past, every)
            await self._past.refresh(self._tree, most)
        if not self._begun and (turn := self._open_turn()):
            self._earlier = earlier_selections(self._tree.path(), turn.id)
        self._begun = True
        self._meter.follow(self._tree.path())

    def _open_turn(self) -> Turn | None:
        turns = self._tree.view().turns
        return turns[-1] if turns else None

    def _shortened(self, turn: Turn) -> bool:
        """Whether the turn in progress has given up steps of its own; then its summary stands for all before."""
        boundary = newest_boundary(self._tree.path())
        return bool(boundary and boundary.data.get("keepsOpenTurn") and boundary.data.get("turnId") == turn.id)

    def _standing(self, turn: Turn | None) -> list[MessageDict]:
        """What is shown in any case: the open turn, behind the summary of what it gave up."""
        summary = self._tree.view().summary_message if turn and self._shortened(turn) else None
        return [*([summary] if summary else []), *(turn.messages if turn else ())]

    def _left(self, gauge: Gauge, around: int) -> int:
        """Tokens for what stands before that; below 0 where that alone is too large."""
        return gauge.ceiling - around - _cost(self._standing(self._open_turn()))

    async def _resumed(self, place: tuple[str, str]) -> _Selection | None:
        """What a call that was cut off showed this model last, in the turn that now goes on; None for nothing."""
        select = self._earlier.pop(place, None)
        if select is None:
            return None
        records = await self._past.records(self._tree, [past.id for past in full_turns(select, self._past)])
        messages = shown_before(select, self._past, records)
        return None if messages is None else _Selection(tuple(select), tuple(messages), _cost(messages))

    # ---- choosing

    async def _chosen(self, model: Model, gauge: Gauge, around: int) -> _Selection:
        left, turn = self._left(gauge, around), self._open_turn()
        if left < 0 and turn is not None and await self._shorten(model, gauge, around, turn):
            left = self._left(gauge, around)
        if turn is None or left <= 0 or self._shortened(turn):
            return _Selection()
        reserve = growth_reserve((past.growth for past in self._past.turns), gauge.ceiling)
        room = left - min(reserve, left // 2)
        for _ in range(_TRIES):
            made = await self._made(turn, room, gauge, model, around)
            if made.tokens <= left:
                return made
            room -= max(made.tokens - left, room // 8)  # a packet or a turn cost more than was planned
            if room <= 0:
                break
        return _Selection()

    async def _made(self, turn: Turn, room: int, gauge: Gauge, model: Model, around: int) -> _Selection:
        most = min(self._config.max_packet_tokens + AROUND_TEXT, gauge.ceiling // 5)
        plan = self._plan(turn, Room(room, self._config.max_full_tokens, most, self._config.batch))
        behind = Behind()
        if plan.packet_end:
            material = self._material(model, gauge, around)
            behind = await self._packets.behind(plan.packet_end, most, room // 4, material)
        return await self._selection(plan, behind)

    def _plan(self, turn: Turn, room: Room) -> Plan:
        said = self._directive(turn)
        words = content_words(said)
        # Of a turn's words only those count that the directive has too.
        candidates = [
            Candidate(past.id, past.number, past.full, past.card, words.intersection(past.words))
            for past in self._past.turns
        ]
        return make_plan(candidates, words, refers_back(said, self._config.references), room)

    def _directive(self, turn: Turn) -> str:
        """What the person said, without what hooks put behind it."""
        entry = next((entry for entry in reversed(self._tree.path()) if entry.id == turn.id), None)
        message = entry.data.get("message") if entry else None
        return "\n".join(str(block.get("text", "")) for block in blocks_of(message or {}, "text"))

    def _material(self, model: Model, gauge: Gauge, around: int) -> int:
        """Tokens that one request of the summariser may show."""
        own = self._config.model
        ceiling = gauge_of(self._meter, own).ceiling if own else gauge.ceiling
        return max(int(ceiling * 0.9) - around - 300, 0)

    async def _selection(self, plan: Plan, behind: Behind) -> _Selection:
        turns = {past.number: past for past in self._past.turns}
        recent = range(plan.recent[0], plan.recent[1] + 1) if plan.recent else ()
        wanted = [turns[number] for number in (*plan.full, *recent)]
        records = await self._past.records(self._tree, [past.id for past in wanted])
        cards = [turns[number] for number in range(plan.cards[0], plan.cards[1] + 1)] if plan.cards else []
        select: list[Selected] = []
        messages: list[MessageDict] = []
        if behind != Behind():
            item, message = _shown_behind(behind)
            select.append(item)
            messages.append(message)
        if cards:
            select.append({"cards": [cards[0].id, cards[-1].id]})
            messages.append(cards_message(cards[0].id, [past.line for past in cards]))
        for first, last in _runs([past for past in wanted if past.id in records]):
            select.append({"full": [turns[first].id, turns[last].id]})
            messages.extend(message for number in range(first, last + 1) for message in records[turns[number].id])
        return _Selection(tuple(select), tuple(messages), _cost(messages))

    async def _shorten(self, model: Model, gauge: Gauge, around: int, turn: Turn) -> bool:
        """Summarise the finished steps of an open turn that is too large by itself; whether that was done."""
        config = self._config
        compactor = Compactor(
            tree=self._tree,
            side=self._side,
            notices=self._notices,
            config=CompactionConfig(model=config.model, attempts=config.attempts, timeout=config.timeout),
            target=model,
            around=around,
        )
        if not has_steps(turn) or held_back(self._tree.path(), compactor.size(), turn.id):
            return False
        if closed := len(self._tree.view().turns) - 1:
            # What stands for the closed turns is there already: the summariser need not read them once more.
            add_checkpoint(self._tree, self._past, closed, min(gauge.ceiling // 3, 6_000))
        done = await compactor.run("tokens", limit=gauge.real, must=True)
        await self._past.refresh(self._tree, config.max_boundaries)
        return done


def _cost(messages: Iterable[MessageDict]) -> int:
    return sum(map(estimate_tokens, messages))


def _shown_behind(behind: Behind) -> tuple[Selected, MessageDict]:
    packet, gap = behind.packet, behind.gap
    item: dict[str, Any] = {"packet": packet.id} if packet else {}
    if gap:
        item["gap"] = [*gap]
    return item, packet_message(packet.id if packet else "", packet.text if packet else "", gap or ())


def _runs(turns: Sequence[PastTurn]) -> Iterator[tuple[int, int]]:
    """The numbers of turns as ranges without gaps, in their order."""
    if not turns:
        return
    numbers = [turn.number for turn in turns]
    starts = [numbers[0], *(after for before, after in pairwise(numbers) if after != before + 1)]
    ends = [*(before for before, after in pairwise(numbers) if after != before + 1), numbers[-1]]
    yield from zip(starts, ends, strict=True)


def _words(model: Model, capacity: Capacity | None = None) -> Mapping[str, Any]:
    return {"provider": model.provider, "model": model.name, **(capacity.to_dict() if capacity else {})}
