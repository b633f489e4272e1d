"""What a ledger says about sizes: what the newest request really cost, and how much each model takes.

Read from the lines since the boundary, so that a new process decides as the old one would have.
A compaction repeats what is said here of capacities behind its boundary (`capacity_events`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.messages import MessageDict, Usage
from harness.models.tokens import estimate_tokens
from harness.sessions.lines.entries import Entry
from harness.sessions.view.turns import message_of

__all__ = [
    "CAPACITY",
    "Capacity",
    "ContextSize",
    "Meter",
    "Metered",
    "answer_reserve",
    "answered_size",
    "bounded_ratio",
    "capacities",
    "capacity_events",
    "context_size",
    "guessed",
    "learned",
    "newest_metered",
    "usable_window",
    "widened",
    "window_of",
]

CAPACITY = "capacity"
"""The kind of the event that says what is known of a model: `{provider, model, window?, ratio?}`."""

_RATIOS = (0.5, 4.0)
"""An estimate that is further from what was billed than this is not what is wrong."""
_WEIGHT = 0.3
"""Of a new sample in a running mean."""
_WINDOWS = (256, 10**9)
"""Tokens that a window can have; a number outside is none."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """What is known of one model: its window in tokens, and what one estimated token really is."""

    window: int | None = None
    ratio: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields of the event, behind `provider` and `model`."""
        known = {"window": self.window, "ratio": self.ratio}
        return {key: value for key, value in known.items() if value is not None}

    def updated(self, newer: Capacity) -> Capacity:
        """This, where the newer one says nothing else."""
        return Capacity(newer.window or self.window, newer.ratio or self.ratio)

    def believes(self, counted: float, estimated: int) -> bool:
        """Whether what a provider counted for a prompt, or seemed to, says what its tokens are.

        One lower than can be says nothing; nor does a small request lower what a large one has taught.
        """
        sample, known = counted / max(estimated, 1), self.ratio or 1.0
        if sample < _RATIOS[0]:
            return False
        return sample >= known or self.window is None or estimated * known * 2 >= self.window

    def real(self, estimated: int, counted: int | None) -> int:
        """Tokens of a request that was estimated at so many: what was counted, if that is believed."""
        if counted is not None and self.believes(counted, estimated):
            return min(counted, round(estimated * _RATIOS[1]))
        return round(estimated * (self.ratio or 1.0))


@dataclass(frozen=True, slots=True)
class Metered:
    """The newest answer whose provider counted: tokens of everything up to it, itself included."""

    provider: str
    model: str
    message_id: str
    tokens: int


@dataclass(frozen=True, slots=True)
class ContextSize:
    """How large the next request would be. `ratio` is what one estimated token of it really is."""

    messages: int
    tokens: int
    ratio: float

    def real(self, estimated: int) -> int:
        """Tokens of a part that was estimated alone."""
        return round(estimated * self.ratio)


def capacities(path: Sequence[Entry]) -> dict[tuple[str, str], Capacity]:
    """What the ledger knows of each (provider, model); the newest word on each point counts."""
    known: dict[tuple[str, str], Capacity] = {}
    for entry in path:
        if entry.kind == "event" and entry.data.get("kind") == CAPACITY and isinstance(entry.data.get("data"), dict):
            data = entry.data["data"]
            place = (str(data.get("provider")), str(data.get("model")))
            said = Capacity(usable_window(data.get("window")), _ratio(data.get("ratio")))
            known[place] = known.get(place, Capacity()).updated(said)
    return known


def newest_metered(path: Sequence[Entry]) -> Metered | None:
    """The newest committed answer since the boundary that has a usage, if its request showed the whole view.

    Answers beside the conversation do not count.
    """
    selected = {entry.id for entry in path if entry.kind == "request_begin" and "select" in entry.data}
    committed: set[str] = set()
    for entry in reversed(path):
        if entry.kind == "compaction" and entry.data.get("boundary") is True:
            return None
        if entry.kind == "request_end" and entry.data.get("status") == "completed":
            committed.add(str(entry.data.get("requestId")))
        elif found := _metered(entry, committed):
            return None if str(entry.data.get("requestId")) in selected else found
    return None


def context_size(
    path: Sequence[Entry], messages: Sequence[MessageDict], around: int, provider: str, model: str
) -> ContextSize:
    """How large a request to this model would be that shows `messages`.

    `around` is the estimate of system text and tools. Where the model's provider has counted since
    the boundary, that count is taken and only what came later is estimated, by the same measure.
    """
    sizes = [estimate_tokens(message) for message in messages]
    estimated = around + sum(sizes)
    metered = newest_metered(path)
    capacity = capacities(path).get((provider, model), Capacity())
    known = capacity.ratio or 1.0
    if metered is None or (metered.provider, metered.model) != (provider, model):
        return ContextSize(len(messages), round(estimated * known), known)
    index = next((i for i in reversed(range(len(messages))) if messages[i].get("id") == metered.message_id), None)
    if index is None:
        return ContextSize(len(messages), round(estimated * known), known)
    later = sum(sizes[index + 1 :])
    counted = max(estimated - later, 1)
    if not capacity.believes(metered.tokens, counted):
        # A count that is not believed is none: it must not hide that a request is large.
        return ContextSize(len(messages), round(estimated * known), known)
    ratio = bounded_ratio(metered.tokens / counted)
    base = min(metered.tokens, round(counted * _RATIOS[1]))
    return ContextSize(len(messages), base + round(later * ratio), ratio)


def answered_size(
    path: Sequence[Entry], messages: Sequence[MessageDict], around: int, provider: str, model: str
) -> int:
    """Tokens of the newest request that this model answered, of those that showed the view; 0 for none.

    Only since a window of it was logged: what it answered before, a refusal has outdated.
    """
    selected = {entry.id for entry in path if entry.kind == "request_begin" and "select" in entry.data}
    known = capacities(path).get((provider, model), Capacity())
    for entry in reversed(path):
        if entry.kind == "compaction" or capacities([entry]).get((provider, model), Capacity()).window:
            break
        answer = _answer_of(entry) if entry.kind == "message" and "requestId" in entry.data else None
        if answer is None or answer[0] != (provider, model) or entry.data["requestId"] in selected:
            continue
        ids = [message.get("id") for message in messages]
        if (shown := entry.data["message"].get("id")) in ids:
            return known.real(around + sum(map(estimate_tokens, messages[: ids.index(shown)])), answer[1])
    return 0


def window_of(path: Sequence[Entry], provider: str, model: str, declared: int | None) -> int | None:
    """Tokens that fit into one request: what a refusal has shown, else what is declared; None for unknown."""
    return capacities(path).get((provider, model), Capacity()).window or declared


def bounded_ratio(ratio: float) -> float:
    """A ratio within what can be; to three digits, so that a stored one is the same one."""
    return round(min(max(ratio, _RATIOS[0]), _RATIOS[1]), 3)


def answer_reserve(window: int) -> int:
    """Tokens of a window that are kept free for the answer."""
    return min(max(2_048, window // 10), window // 4)


def usable_window(value: Any) -> int | None:
    """A number as a window in tokens; None for what can be none."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return int(value) if number and _WINDOWS[0] <= value <= _WINDOWS[1] else None


def learned(window: Any, estimated: float, ratio: float) -> Capacity:
    """What a refusal tells of a model: its window; and where a request was estimated to fit, that estimates are low.

    Nothing, where the number that it names would not make the same request any smaller: it is not what was
    wrong. Ask for half then.
    """
    named = usable_window(window)
    if named is None:
        return Capacity()
    needed = bounded_ratio(named / max(estimated, 1))
    if named - answer_reserve(named) >= estimated * max(needed, ratio):
        return Capacity()
    return Capacity(named, needed if needed > ratio else None)


def guessed(window: int) -> Capacity:
    """What is taken for a model's window after a refusal that says nothing of it."""
    return Capacity(max(window, _WINDOWS[0]))


def widened(known: Capacity, answered: int) -> Capacity | None:
    """What it tells that a request of so many tokens was answered; None for nothing.

    A window smaller than that is none. It is not forgotten, but doubled: should that be too much, half of it is right.
    """
    if known.window is None or answered <= known.window:
        return None
    return Capacity(min(2 * answered, _WINDOWS[1]))


class Meter:
    """What the lines of a path tell of each model's window and tokens, kept up with as the path grows.

    The ratio is a running mean, from the newest logged one on, over answers to requests that say what
    they were estimated at. It is worked out from lines alone, so that a new process finds the same.
    """

    def __init__(self) -> None:
        self._path: Sequence[Entry] = ()
        self._seen = 0
        self._logged: dict[tuple[str, str], Capacity] = {}
        self._ratios: dict[tuple[str, str], float] = {}
        self._asked: dict[str, int] = {}
        self._answers: dict[str, tuple[tuple[str, str], int | None]] = {}
        self._largest: dict[tuple[str, str], int] = {}

    def follow(self, path: Sequence[Entry]) -> None:
        """Take in what is new in the path, or all of it if it is another one."""
        if path is not self._path:
            self._seen = 0
            for known in (self._logged, self._ratios, self._asked, self._answers, self._largest):
                known.clear()
        for entry in path[self._seen :]:
            self._take(entry)
        self._path, self._seen = path, len(path)

    def known(self, provider: str, model: str) -> Capacity:
        """What was logged of a model."""
        return self._logged.get((provider, model), Capacity())

    def measured(self, provider: str, model: str) -> float | None:
        """What one estimated token of this model's prompts is; None where nobody counted."""
        ratio = self._ratios.get((provider, model))
        return None if ratio is None else bounded_ratio(ratio)

    def answered(self, provider: str, model: str) -> int:
        """Tokens of the largest request that was answered since a window was logged."""
        return self._largest.get((provider, model), 0)

    def _take(self, entry: Entry) -> None:
        match entry.kind:
            case "event":
                self._take_capacity(entry)
            case "request_begin" if tokens := _positive(entry.data.get("tokens")):
                self._asked[entry.id] = tokens
            case "message" if given := _answer_of(entry):
                self._answers[str(entry.data.get("requestId"))] = given
            case "request_end":
                self._take_end(str(entry.data.get("requestId")), completed=entry.data.get("status") == "completed")

    def _take_capacity(self, entry: Entry) -> None:
        for place, capacity in capacities([entry]).items():
            self._logged[place] = self._logged.get(place, Capacity()).updated(capacity)
            if capacity.ratio:
                self._ratios[place] = capacity.ratio
            if capacity.window:
                self._largest.pop(place, None)

    def _take_end(self, request: str, *, completed: bool) -> None:
        asked, answer = self._asked.pop(request, None), self._answers.pop(request, None)
        if not (completed and asked and answer):
            return
        place, counted = answer
        known = self._logged.get(place, Capacity())
        self._largest[place] = max(self._largest.get(place, 0), known.real(asked, counted))
        if counted is not None and known.believes(counted, asked):
            before, sample = self._ratios.get(place), counted / asked
            self._ratios[place] = sample if before is None else before + _WEIGHT * (sample - before)


def capacity_events(known: Mapping[tuple[str, str], Capacity]) -> Iterator[dict[str, Any]]:
    """The data of the events that say all this again."""
    for (provider, model), capacity in known.items():
        yield {"provider": provider, "model": model, **capacity.to_dict()}


def _answer_of(entry: Entry) -> tuple[tuple[str, str], int | None] | None:
    """Who made an answer, and how many tokens of prompt that provider counted; None for any other line."""
    message = message_of(entry.data) if entry.data.get("via") == "model" else None
    if message is None:
        return None
    usage = message.get("usage")
    counted = Usage.model_validate(usage) if isinstance(usage, dict) else Usage()
    tokens = counted.input + counted.cache_read + counted.cache_write
    return (str(message.get("provider")), str(message.get("model"))), tokens or None


def _metered(entry: Entry, committed: set[str]) -> Metered | None:
    message = message_of(entry.data)
    if message is None or entry.data.get("via") != "model" or str(entry.data.get("requestId")) not in committed:
        return None
    usage = message.get("usage")
    if not isinstance(usage, dict):
        return None
    tokens = _total(Usage.model_validate(usage))
    return Metered(str(message.get("provider")), str(message.get("model")), str(message.get("id")), tokens)


def _total(usage: Usage) -> int:
    """What the conversation up to the answer costs; reasoning is not sent again, or as it was."""
    return usage.input + usage.cache_read + usage.cache_write + usage.output - (usage.reasoning or 0)


def _positive(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None


def _ratio(value: Any) -> float | None:
    wanted = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0
    return bounded_ratio(value) if wanted else None
