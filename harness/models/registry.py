"""From a model's name to a model."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from types import ModuleType

from harness.errors import ConfigError, MissingExtra
from harness.models.base import Model
from harness.models.offline import OfflineModel
from harness.models.providers import missing_extra

__all__ = ["load_adapter", "register_model", "resolve_model"]

ModelFactory = Callable[[], Model]

_lock = threading.Lock()
_factories: dict[str, ModelFactory] = {"offline": OfflineModel}


def register_model(name: str, factory: ModelFactory) -> None:
    """Let `resolve_model(name)` give what `factory()` gives. For names that a configuration file holds.

    The factory is called once for each `resolve_model`. Raises `ConfigError` for a name that is
    taken or blank.
    """
    if not name.strip():
        raise ConfigError("register_model: the name is blank; give the model a name")
    with _lock:
        if name in _factories:
            raise ConfigError(f"register_model: {name!r} is taken; choose another name")
        _factories[name] = factory


def resolve_model(spec: str | Model) -> Model:
    """The model for `spec`: a `Model` itself, `"offline"`, a registered name, or `"provider:name"`.

    Providers are imported here and not before. Raises `ConfigError` for a name nobody knows, `MissingExtra` where
    the packages of a provider are not installed, and `MissingSetting` where its key or address is not set.
    """
    if not isinstance(spec, str):
        return _checked(spec)
    factory = _factories.get(spec)
    if factory is not None:
        return factory()
    provider, colon, name = spec.partition(":")
    if not (provider and colon and name):
        raise ConfigError(f"unknown model {spec!r}; {_what_works()}")
    return _provider_model(spec)


def _checked(spec: object) -> Model:
    if isinstance(spec, type):
        raise ConfigError(f"a model must be an object, and {spec.__name__} is a class; give {spec.__name__}(…)")
    if isinstance(spec, Model):
        return spec
    raise ConfigError(f"a model must be a Model object or a name, not {type(spec).__name__}; {_what_works()}")


def _provider_model(spec: str) -> Model:
    try:
        adapter = load_adapter(f"model {spec!r}")
    except MissingExtra as error:
        raise missing_extra(spec) from error
    model: Model = adapter.PydanticAIModel(spec)
    return model


def load_adapter(feature: str, extra: str = "models") -> ModuleType:
    """The module that speaks to providers. Late, as it takes a second. Raises `MissingExtra` naming `feature`."""
    try:
        return importlib.import_module("harness.models.pydantic_ai")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("pydantic_ai"):
            raise
        raise MissingExtra(feature, extra) from error


def _what_works() -> str:
    names = ", ".join(repr(name) for name in sorted(_factories))
    return f"give {names}, or a provider and a name such as 'openai:gpt-5-mini' or 'anthropic:claude-sonnet-4-5'"
