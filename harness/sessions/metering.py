"""What a ledger says about sizes: what the newest request really cost, and how much each model takes.

Read from the lines since the boundary, so that a new process decides as the old one would have.
A compaction repeats what is said here of capacities behind its boundary (`capacity_events`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from harness.messages import MessageDict, Usage
from harness.models.tokens import estimate_tokens
from harness.sessions.entries import Entry
from harness.sessions.turns import message_of

__all__ = [
    "CAPACITY",
    "Capacity",
    "ContextSize",
    "Metered",
    "bounded_ratio",
    "capacities",
    "capacity_events",
    "context_size",
    "newest_metered",
    "window_of",
]

CAPACITY = "capacity"
"""The kind of the event that says what is known of a model: `{provider, model, window?, ratio?}`."""

N = TypeVar("N", int, float)

_RATIOS = (0.5, 4.0)
"""An estimate that is further from what was billed than this is not what is wrong."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """What is known of one model: its window in tokens, and what one estimated token really is."""

    window: int | None = None
    ratio: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields of the event, behind `provider` and `model`."""
        known = {"window": self.window, "ratio": self.ratio}
        return {key: value for key, value in known.items() if value is not None}


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
            before = known.get(place, Capacity())
            known[place] = Capacity(
                _positive(data.get("window"), int) or before.window, _positive(data.get("ratio"), float) or before.ratio
            )
    return known


def newest_metered(path: Sequence[Entry]) -> Metered | None:
    """The newest committed answer since the boundary that has a usage; answers beside the conversation do not count."""
    committed: set[str] = set()
    for entry in reversed(path):
        if entry.kind == "compaction" and entry.data.get("boundary") is True:
            return None
        if entry.kind == "request_end" and entry.data.get("status") == "completed":
            committed.add(str(entry.data.get("requestId")))
        elif found := _metered(entry, committed):
            return found
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
    known = capacities(path).get((provider, model), Capacity()).ratio or 1.0
    if metered is None or (metered.provider, metered.model) != (provider, model):
        return ContextSize(len(messages), round(estimated * known), known)
    index = next((i for i in reversed(range(len(messages))) if messages[i].get("id") == metered.message_id), None)
    if index is None:
        return ContextSize(len(messages), round(estimated * known), known)
    later = sum(sizes[index + 1 :])
    counted = max(estimated - later, 1)
    ratio = bounded_ratio(metered.tokens / counted)
    # A count beyond what can be is none: it must not hide that a request is large.
    base = metered.tokens if abs(metered.tokens / counted - ratio) < 0.001 else round(counted * ratio)
    return ContextSize(len(messages), base + round(later * ratio), ratio)


def window_of(path: Sequence[Entry], provider: str, model: str, declared: int | None) -> int | None:
    """Tokens that fit into one request: what a refusal has shown, else what is declared; None for unknown."""
    return capacities(path).get((provider, model), Capacity()).window or declared


def bounded_ratio(ratio: float) -> float:
    """A ratio within what can be; to three digits, so that a stored one is the same one."""
    return round(min(max(ratio, _RATIOS[0]), _RATIOS[1]), 3)


def capacity_events(known: Mapping[tuple[str, str], Capacity]) -> Iterator[dict[str, Any]]:
    """The data of the events that say all this again."""
    for (provider, model), capacity in known.items():
        yield {"provider": provider, "model": model, **capacity.to_dict()}


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


def _positive(value: Any, kind: type[N]) -> N | None:
    wanted = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    return kind(value) if wanted else None
