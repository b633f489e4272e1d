"""Models an agent made from their names: made once, shared by its calls, closed with it."""

from __future__ import annotations

import threading

from harness.errors import ConfigError
from harness.models import Model, resolve_model

__all__ = ["OwnModels"]

MOST_TOKENS = 10**9
"""No window is larger."""


class OwnModels:
    """Models by name. A `Model` object that a caller brings is the caller's, and its to close."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._models: dict[str, Model] = {}

    def resolve(self, spec: str | Model) -> Model:
        """The model of that name, or the object itself. Raises `ConfigError` and `MissingExtra`."""
        if not isinstance(spec, str):
            return _checked(resolve_model(spec))
        with self._lock:
            if spec not in self._models:
                self._models[spec] = _checked(resolve_model(spec))
            return self._models[spec]

    async def aclose(self) -> None:
        """Close the connections of those that have any."""
        with self._lock:
            models = [*self._models.values()]
        for model in models:
            close = getattr(model, "aclose", None)
            if close is not None:
                await close()


def _checked(model: Model) -> Model:
    """The model, if what it says of its window can be one. Raises `ConfigError` naming it."""
    window: object = model.context_window
    if window is None or (type(window) is int and 0 < window <= MOST_TOKENS):
        return model
    raise ConfigError(
        f"{model.provider}:{model.name} says that its context_window is {window!r:.60}; "
        f"give a whole number of tokens, 1 to {MOST_TOKENS}, or None where it is not known"
    )
