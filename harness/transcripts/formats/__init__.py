"""The formats, one module each, found by themselves."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from harness.errors import ConfigError
from harness.transcripts.formats.base import Format

__all__ = ["all_formats", "format_named"]


@cache
def all_formats() -> tuple[Format, ...]:
    """Every format, in the order of its module's name."""
    found: list[Format] = []
    for module in pkgutil.iter_modules(__path__):
        found += getattr(importlib.import_module(f"{__name__}.{module.name}"), "FORMATS", ())
    return tuple(found)


def format_named(name: str) -> Format:
    """The format of a name. Raises `ConfigError` for an unknown one."""
    for found in all_formats():
        if found.name == name:
            return found
    names = ", ".join(found.name for found in all_formats())
    raise ConfigError(f"no transcript format is called {name!r}; there are: {names}")
