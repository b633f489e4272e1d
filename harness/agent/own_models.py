"""Models an agent made from their names: made once, shared by its calls, closed with it."""

from __future__ import annotations

import threading

from harness.models import Model, resolve_model

__all__ = ["OwnModels"]


class OwnModels:
    """Models by name. A `Model` object that a caller brings is the caller's, and its to close."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._models: dict[str, Model] = {}

    def resolve(self, spec: str | Model) -> Model:
        """The model of that name, or the object itself. Raises `ConfigError` and `MissingExtra`."""
        if not isinstance(spec, str):
            return resolve_model(spec)
        with self._lock:
            if spec not in self._models:
                self._models[spec] = resolve_model(spec)
            return self._models[spec]

    async def aclose(self) -> None:
        """Close the connections of those that have any."""
        with self._lock:
            models = [*self._models.values()]
        for model in models:
            close = getattr(model, "aclose", None)
            if close is not None:
                await close()
