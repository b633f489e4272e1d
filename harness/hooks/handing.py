"""What hooks are handed: their own, so that what one edits in place reaches no other call, agent or tenant.

What is handed out belongs to many: a tool to all agents of the process, options to all calls of an agent, an earlier
message to its session. What may not be changed but by `event.change` is frozen; here is what is inside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import lru_cache
from operator import is_not
from typing import Any, TypeVar

from pydantic import BaseModel

from harness.hooks.events import ActingChunk, Event, ReasoningChunk
from harness.models.base import ToolSpec

__all__ = ["own"]

E = TypeVar("E", bound=Event)

_FIXED = frozenset({str, int, float, bool, bytes, type(None)})


def own(event: E) -> E:
    """The event, with copies of what could be edited in place; what cannot be is the same object as before."""
    if isinstance(event, ActingChunk | ReasoningChunk):  # by the thousand, and of this call alone
        return event
    handed = {each.name: _own(getattr(event, each.name)) for each in fields(event) if each.name != "scope"}
    return replace(event, **{name: value for name, value in handed.items() if value is not getattr(event, name)})


def _own(value: Any) -> Any:
    way = _way_of(type(value))  # type: ignore[arg-type]  # mypy takes a class for unhashable
    return value if way is None else way(value)


@lru_cache(maxsize=256)
def _way_of(kind: type) -> Callable[[Any], Any] | None:
    """How a value of this class is copied; None for one that is the same for ever. Asked for by the thousand."""
    ways: tuple[tuple[type, Callable[[Any], Any]], ...] = (
        (BaseModel, _own_model),
        (ToolSpec, lambda spec: replace(spec, parameters=_own(spec.parameters))),
        (tuple, _own_tuple),
        (list, lambda members: [*map(_own, members)]),
        (Mapping, lambda mapping: {key: _own(member) for key, member in mapping.items()}),
    )
    return next((way for base, way in ways if issubclass(kind, base)), None)


def _own_tuple(value: tuple[Any, ...]) -> tuple[Any, ...]:
    members = tuple(map(_own, value))
    return members if any(map(is_not, members, value)) else value


def _own_model(value: BaseModel) -> BaseModel:
    changed: dict[str, Any] = {}
    for held in (value.__dict__, value.__pydantic_extra__):
        for name, member in held.items() if held else ():
            if type(member) not in _FIXED and (made := _own(member)) is not member:
                changed[name] = made
    return value.model_copy(update=changed) if changed else value
