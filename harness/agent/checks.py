"""Values that a caller or a builder was given, looked at where they are given: a wrong one names itself at once."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from harness.errors import ConfigError
from harness.text import clean

__all__ = [
    "callable_with",
    "json_object",
    "key_bytes",
    "kind_of",
    "path_of",
    "positive",
    "positive_or_none",
    "text",
    "whole",
]

T = TypeVar("T")

_LEAST_KEY = 16


def text(what: str, value: str) -> str:
    """The value, if it is text. Raises `ConfigError` naming `what`."""
    return kind_of(what, value, str, "text")


def kind_of(what: str, value: T, kind: type[Any], advice: str) -> T:
    """The value, if it is an object of `kind`, and no class. Raises `ConfigError`; `advice` says what to give."""
    if isinstance(value, type):
        raise ConfigError(f"{what} is the class {value.__name__}; give {advice}, made from a class")
    if not isinstance(value, kind):
        raise ConfigError(f"{what} must not be {_shown(value)}; give {advice}")
    return value


def json_object(what: str, values: dict[str, Any]) -> dict[str, Any]:
    """The values, if each can be stored as it is. Raises `ConfigError` naming the first that cannot."""
    for name, value in values.items():
        if clean(value).marks:
            raise ConfigError(
                f"{what}: {name} is {_shown(value)}, which JSON cannot hold; give text, a number or a list"
            )
    return values


def key_bytes(what: str, value: object) -> bytes:
    """A secret key as bytes. Raises `ConfigError` for one that could be guessed."""
    key = value.encode() if isinstance(value, str) else value
    if not isinstance(key, bytes) or len(key) < _LEAST_KEY:
        raise ConfigError(
            f"{what} is text or bytes, at least {_LEAST_KEY} of them; make one with secrets.token_hex(32)"
        )
    return key


def path_of(what: str, value: object) -> Path:
    """The value as an absolute path, if it can be one. Raises `ConfigError`."""
    name = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    try:
        if isinstance(name, str) and b"\0" not in os.fsencode(name):
            return Path(name).absolute()
    except UnicodeEncodeError:
        pass  # half a character stands in no name
    shown = ascii(name) if isinstance(name, str) else _shown(value)
    raise ConfigError(f"{what}: {shown} is no path; give that of a file, as text or a Path")


def positive(what: str, value: object) -> float:
    """The value, if it is a number of seconds above 0. Raises `ConfigError`."""
    number = _number(value)
    if number is None or not number > 0:
        raise ConfigError(f"{what} is {_shown(value)}; give seconds above 0")
    return number


def positive_or_none(what: str, value: object) -> float | None:
    """The same where None stands for no limit."""
    number = None if value is None else _number(value)
    if value is not None and (number is None or not number > 0):
        raise ConfigError(f"{what} is {_shown(value)}; give seconds above 0, or None for no limit")
    return number


def whole(what: str, value: object, least: int = 1) -> int:
    """The value, if it is a whole number of at least `least`. Raises `ConfigError`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigError(f"{what} is {_shown(value)}; give a whole number, {least} or more")
    return value


def callable_with(what: str, value: Any, arguments: int, advice: str) -> Any:
    """The value, if it can be called with so many arguments. Raises `ConfigError`; `advice` says what to give."""
    if not callable(value):
        raise ConfigError(f"{what} must not be {_shown(value)}; give {advice}")
    if not _takes(value, arguments):
        raise ConfigError(f"{what} {value!r} cannot be called with {arguments} argument(s); give {advice}")
    return value


def _takes(function: Callable[..., Any], arguments: int) -> bool:
    """Whether a call with so many positional arguments fits; True where a signature cannot be found out."""
    try:
        inspect.signature(function).bind(*[None] * arguments)
    except TypeError:
        return False
    except ValueError:  # a built-in without a signature
        return True
    return True


def _number(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value):
        return value
    return None


def _shown(value: object) -> str:
    """A short form for a message: numbers as they are, of everything else the type."""
    return repr(value) if isinstance(value, int | float | None) else f"of type {type(value).__name__}"
