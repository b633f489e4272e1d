"""The state modules of one call, together."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harness.errors import ConfigError
from harness.state import State, StateModule
from harness.text import clean, said

__all__ = ["StateModules"]

_log = logging.getLogger("harness.sessions")


class StateModules:
    """Every call has its own, made by the agent's factories and filled from what was stored."""

    def __init__(self, modules: Iterable[StateModule] = ()) -> None:
        self._modules: dict[str, StateModule] = {}
        self._unreadable: set[str] = set()
        self.troubles: dict[str, str] = {}
        """By the module: what was wrong with the value that it gave last, in a sentence. The one before it is kept."""
        for module in modules:
            if module.name in self._modules:
                raise ConfigError(f"two state modules are called {module.name!r}; give each a name of its own")
            self._modules[module.name] = module

    def __iter__(self) -> Iterator[StateModule]:
        return iter(self._modules.values())

    @property
    def names(self) -> tuple[str, ...]:
        """The modules' names, in the order they were registered."""
        return tuple(self._modules)

    def load(self, values: Mapping[str, Any]) -> list[str]:
        """Give each module its stored value, if there is one; returns what went wrong, in sentences.

        A module that cannot load its value stays as it was made, and is not stored: what is there is kept.
        """
        warnings = []
        for name, module in self._modules.items():
            value = values.get(name)
            if isinstance(value, dict) and (warning := _loaded(name, module, value)):
                self._unreadable.add(name)
                warnings.append(warning)
        return warnings

    def values(self) -> dict[str, State]:
        """The value of each module that has one, ready to be stored; what could not be had is in `troubles`."""
        kept = {name: module for name, module in self._modules.items() if name not in self._unreadable}
        saved = {name: self._saved(name, module) for name, module in kept.items()}
        return {name: value for name, value in saved.items() if value is not None}

    def _saved(self, name: str, module: StateModule) -> State | None:
        """The value of a module, if it has one that can be stored; its fault does not cost the call its answer."""
        try:
            value: object = module.save()
            if value is None or isinstance(value, Mapping):
                return None if value is None else clean(dict(value)).value
            wrong = f"it gave a {type(value).__name__} where a dict or None is asked for"
        except Exception as error:  # noqa: BLE001 - a user's module may raise anything
            if name not in self.troubles:
                _log.exception("the state module %r could not give its value", name)
            wrong = said(error)
        told = f"the state module {name!r} was not stored, what was stored before is kept; mend its save()"
        self.troubles[name] = f"{told}: {wrong}"
        return None


def _loaded(name: str, module: StateModule, value: State) -> str | None:
    try:
        module.load(value)
    except Exception as error:  # noqa: BLE001 - a user's module may raise anything
        _log.exception("the state module %r could not load its value", name)
        return f"the state module {name!r} could not load its value, which is kept: {said(error)}"
    return None
