"""Which closed turns a request shows in full, which as cards, and which behind a packet.

Decided from numbers and words alone: no file is read, no model or clock is asked, and the same
arguments always give the same plan.

What a request begins with should change seldom, for a provider's cache knows it by that, and a new
packet costs a summary. So the packet ends at a batch, where sizes alone say so, and what was asked
moves it only if the cards of turns that others displace would not fit. As long as the room stays
the same it goes forward only. The first of the recent turns moves in steps too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from harness.hooks.common_words import COMMON_WORDS, REFERENCES
from harness.sessions.view.cards import CARDS_FRAME
from harness.sessions.view.words import is_joined, plain_words, words_of

__all__ = ["Candidate", "Plan", "Room", "content_words", "make_plan", "refers_back"]

_RELEVANT = 0.5
"""The share of a directive's words, rare ones weighing more, that a turn must hold to be fetched for it."""
_LONGEST = 20_000
"""Characters of a directive that are looked at: what is longer was pasted, and says little of what is asked."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A closed turn.

    id      the turn's id                              number  its number, from 1, in the session
    full    tokens it costs in full                    card    tokens of its line of a card, the line feed included
    words   the words by which it is found (`harness.sessions.card_words`)
    """

    id: str
    number: int
    full: int
    card: int
    words: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Room:
    """What there is for closed turns, in tokens as they are estimated.

    tokens         for all of them
    full_tokens    at most so many for turns in full; at most half of `tokens` once not all fit
    packet_tokens  what a packet costs at most, with everything around its text
    batch          turns that go behind the packet at once
    """

    tokens: int
    full_tokens: int = 12_000
    packet_tokens: int = 1_200
    batch: int = 8


@dataclass(frozen=True, slots=True)
class Plan:
    """What a request shows of the closed turns, by their numbers; ranges hold both their ends.

    full        older turns shown in full because of what was asked
    recent      the newest turns, in full
    cards       the turns before those, a line each, whether also in `full` or not
    packet_end  all turns up to this one are behind the packet; None for no packet
    spent       what all this costs at most; never more than there is room

    Every candidate is in exactly one of `recent`, `cards` and what is behind the packet, unless
    there is no room for a packet that is needed: then nothing is shown. The end of a packet is a
    multiple of `batch`, or the turn before the first candidate, or, where there is no room for a
    batch of cards, the turn before the recent ones.
    """

    full: tuple[int, ...] = ()
    recent: tuple[int, int] | None = None
    cards: tuple[int, int] | None = None
    packet_end: int | None = None
    spent: int = 0


def content_words(text: str, without: Collection[str] = COMMON_WORDS) -> frozenset[str]:
    """The words of a directive that say what it is about."""
    return words_of(text[:_LONGEST]).difference(without)


def refers_back(text: str, phrases: Collection[str] = REFERENCES) -> bool:
    """Whether a directive points at the turn before it, by any of these words or phrases.

    A phrase is found as whole words, or anywhere where its script puts no spaces between words.
    """
    said = f" {' '.join(plain_words(text[:_LONGEST]))} "
    wanted = [" ".join(plain_words(phrase)) for phrase in phrases]
    return any((phrase if is_joined(phrase) else f" {phrase} ") in said for phrase in wanted if phrase)


def make_plan(candidates: Sequence[Candidate], directive_words: Collection[str], refers_back: bool, room: Room) -> Plan:
    """The plan for one request. `candidates` are the closed turns, oldest first, their numbers without a gap.

    Turns before the first candidate are taken to be behind a packet. Turns are fetched in full by
    the words they share with the directive, and the newest by `refers_back`; what is then left of
    the room for full turns goes to the newest ones.
    """
    if not candidates:
        return Plan()
    older, whole = candidates[0].number - 1, sum(turn.full for turn in candidates)
    if not older and whole <= min(room.tokens, room.full_tokens):
        return Plan(recent=_range(1, len(candidates)), spent=whole)
    values = _values(candidates, directive_words, refers_back)
    limit = min(room.full_tokens, room.tokens // 2)
    shown = _choose(candidates, values, limit, room.batch)
    if not older and _cost(_up_to(candidates, max(shown.start - 1, shown.latest))) <= room.tokens - limit:
        return _plan(candidates, shown, 0, 0)
    if room.packet_tokens > room.tokens:
        return Plan()
    if limit > room.tokens - room.packet_tokens:
        limit = room.tokens - room.packet_tokens
        shown = _choose(candidates, values, limit, room.batch)
    end = _end(candidates, shown, room.tokens - room.packet_tokens - limit, room.batch)
    return _plan(candidates, shown, end, room.packet_tokens if end else 0)


@dataclass(frozen=True, slots=True)
class _Shown:
    """The turns in full: those that were fetched, and all from `start` on.

    `latest` is the last turn that would not be among the recent ones if nothing were fetched, at
    the end of a batch: it moves forward only.
    """

    fetched: frozenset[int]
    start: int
    latest: int


def _plan(candidates: Sequence[Candidate], shown: _Shown, end: int, packet: int) -> Plan:
    fetched = tuple(sorted(number for number in shown.fetched if number < shown.start))
    cards = _up_to(candidates, shown.start - 1)[max(end + 1 - candidates[0].number, 0) :]
    full = sum(turn.full for turn in candidates if turn.number >= shown.start or turn.number in shown.fetched)
    return Plan(
        full=fetched,
        recent=_range(shown.start, candidates[-1].number),
        cards=_range(end + 1, shown.start - 1),
        packet_end=end or None,
        spent=full + _cost(cards) + packet,
    )


def _choose(candidates: Sequence[Candidate], values: Sequence[float], limit: int, batch: int) -> _Shown:
    """What is shown in full within so many tokens."""
    last = candidates[-1].number
    fetched = _fetched(candidates, values, limit)
    costs = [0 if turn.number in fetched else turn.full for turn in candidates]
    left = limit - sum(turn.full for turn in candidates if turn.number in fetched)
    start = _stepped(candidates, _newest_that_fit(costs, left), batch)
    alone = last - _newest_that_fit([turn.full for turn in candidates], limit)
    return _Shown(fetched, start, min(_ceiling(alone, batch), last) if alone >= candidates[0].number else alone)


def _fetched(candidates: Sequence[Candidate], values: Sequence[float], limit: int) -> frozenset[int]:
    """The most valuable turns that fit, newer ones first among equals; the newest of all keeps a place of its own."""
    newest = candidates[-1]
    kept = newest.full <= limit // 2
    left = limit - (newest.full if kept else 0)
    chosen: set[int] = set()
    for value, turn in sorted(zip(values, candidates, strict=True), key=lambda each: (-each[0], -each[1].number)):
        if value > 0 and turn.full <= left and not (kept and turn is newest):
            chosen.add(turn.number)
            left -= turn.full
    return frozenset(chosen)


def _stepped(candidates: Sequence[Candidate], count: int, batch: int) -> int:
    """The first of so many newest turns, moved up to a step so that it stays for a while; behind the last for none."""
    first = candidates[-1].number - count + 1
    if count == len(candidates):
        return first
    step = min(1 << max((count // 2).bit_length() - 1, 0), batch)
    return _ceiling(first - 1, step) + 1


def _end(candidates: Sequence[Candidate], shown: _Shown, limit: int, batch: int) -> int:
    """The last turn behind the packet, so that the cards of those between it and the recent ones fit."""
    older = candidates[0].number - 1
    unshown = _up_to(candidates, shown.latest)
    over = len(unshown) - _newest_that_fit([turn.card for turn in unshown], limit - CARDS_FRAME)
    end = _ceiling(older + over, batch) if over else older
    end = min(end, max((shown.start - 1) // batch * batch, older))
    cards = _up_to(candidates, shown.start - 1)
    while _cost(cards[end - older :]) > limit:
        end = min(_ceiling(end + 1, batch), shown.start - 1)
    return end


def _newest_that_fit(costs: Sequence[int], limit: int) -> int:
    """How many from the end cost no more than that together."""
    spent = 0
    for count, cost in enumerate(reversed(costs)):
        spent += cost
        if spent > limit:
            return count
    return len(costs) if limit >= 0 else 0


def _values(candidates: Sequence[Candidate], words: Collection[str], refers_back: bool) -> list[float]:
    """How much each turn is worth to this directive, between 0 and 1."""
    wanted = frozenset(words)
    held = Counter(word for turn in candidates for word in turn.words & wanted)
    weights = {word: 1 + math.log(len(candidates) / held[word]) if held[word] else 1.0 for word in wanted}
    scores = [_sum(weights[word] for word in turn.words & wanted) for turn in candidates]
    least, best = _RELEVANT * _sum(weights.values()), max(scores)
    values = [score / best if best and score >= least else 0.0 for score in scores]
    return [*values[:-1], 1.0 if refers_back else values[-1]]


def _sum(numbers: Iterable[float]) -> float:
    """Exact, so that the order in which a set gives its words does not show."""
    return math.fsum(numbers)


def _cost(cards: Sequence[Candidate]) -> int:
    return CARDS_FRAME + sum(turn.card for turn in cards) if cards else 0


def _up_to(candidates: Sequence[Candidate], last: int) -> Sequence[Candidate]:
    return candidates[: max(last + 1 - candidates[0].number, 0)]


def _ceiling(number: int, step: int) -> int:
    return -(-number // step) * step


def _range(first: int, last: int) -> tuple[int, int] | None:
    return (first, last) if first <= last else None
