"""How much a request to a model may show, in tokens as they are estimated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harness.context import CallScope
from harness.models.base import Model
from harness.sessions import SessionTree
from harness.sessions.view.metering import Capacity, Meter, answer_reserve, capacities, widened, window_of

__all__ = ["UNKNOWN_WINDOW", "Gauge", "gauge_of", "growth_reserve", "news_of", "side_room"]

UNKNOWN_WINDOW = 128_000
"""Tokens that a model is taken to have until it refuses something."""
_MOVED = 0.1
_SURE = 0.9
"""Of what is free, for sizes are estimates."""
_WEIGHT = 0.3


@dataclass(frozen=True, slots=True)
class Gauge:
    """What one request may have: `real` tokens by the provider's count; one estimated token is `ratio` of those."""

    real: int
    ratio: float

    @property
    def ceiling(self) -> int:
        """The same, estimated."""
        return int(self.real / self.ratio)


def gauge_of(meter: Meter, model: Model, most: int | None = None) -> Gauge:
    """What a request to this model may have, room for the answer left out; at most `most` if that is given."""
    known = meter.known(model.provider, model.name)
    window = known.window or model.context_window or UNKNOWN_WINDOW
    real = window - answer_reserve(window)
    return Gauge(real if most is None else min(real, most), known.ratio or 1.0)


def side_room(scope: CallScope) -> int | None:
    """Tokens that a request behind the reply may show this call's model; None where its window is not known.

    A third of the window is left for the answer: it may be long.
    """
    model, tree = scope.find(Model), scope.find(SessionTree)  # type: ignore[type-abstract]  # looked up by its protocol
    if model is None or tree is None:
        return None
    window = window_of(tree.path(), model.provider, model.name, model.context_window)
    known = capacities(tree.path()).get((model.provider, model.name), Capacity())
    return int((window - window // 3) * _SURE / (known.ratio or 1.0)) if window else None


def news_of(meter: Meter, model: Model) -> Capacity | None:
    """What the newest answers say of this model, where that is not what was logged; None for nothing new.

    Decisions use what is logged, so they are the same in a new process.
    """
    capacity = meter.known(model.provider, model.name)
    known, measured = capacity.ratio or 1.0, meter.measured(model.provider, model.name)
    larger = widened(capacity, meter.answered(model.provider, model.name))
    moved = measured is not None and abs(measured - known) > _MOVED * known
    if not moved and larger is None:
        return None
    return Capacity(larger.window if larger else None, measured if moved else None)


def growth_reserve(grown: Iterable[int], ceiling: int) -> int:
    """Tokens to keep free for the open turn: what earlier ones grew by, newer ones weighing more."""
    mean: float | None = None
    for tokens in grown:
        mean = tokens if mean is None else mean + _WEIGHT * (tokens - mean)
    return min(round(mean or 0), ceiling // 4)
