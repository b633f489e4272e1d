"""Whether what a hook made of an event can be used: looked at where the hook is still known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from harness.errors import ConfigError
from harness.hooks.events import Event, SystemPart
from harness.messages import Msg, ToolResult, ToolUse
from harness.models.base import ToolSpec
from harness.sessions.view.pairing import in_its_place
from harness.text import dumps, error_text

__all__ = ["Misfit", "validated"]

E = TypeVar("E", bound=Event)

_LISTS: Mapping[str, type] = {
    "messages": Msg, "additions": Msg, "system": SystemPart, "context": str, "tools": ToolSpec,
}  # fmt: skip
_SINGLE: Mapping[str, type] = {
    "message": Msg, "tool_use": ToolUse, "result": ToolResult, "options": Mapping, "instruction": str, "stop": bool,
}  # fmt: skip
_IN_PLACE = frozenset({"tools", "options"})
"""What may have been edited although it is the same object, and is looked at by nobody later."""


class Misfit(Exception):
    """What a hook did wrong, in words that follow its name."""


def validated(before: E, after: Any) -> E:
    """The event that a hook answered `before` with, its changed fields validated. Raises `Misfit`."""
    if after is None or after is before:
        _check_in_place(before)
        return before
    kind = type(before).__name__
    if type(after) is not type(before):
        raise Misfit(f"answered {kind} with {type(after).__name__}; return None or event.change(...)")
    for name in before.__dataclass_fields__:
        if name not in before.changeable and getattr(after, name) is not getattr(before, name):
            raise Misfit(f"changed {kind}.{name}, which is not its to change")
    return replace(after, **dict(_changed(before, after)))


def _changed(before: Event, after: Event) -> Iterator[tuple[str, Any]]:
    for name in before.changeable:
        value = getattr(after, name)
        left_out = value is None and before.__dataclass_fields__[name].default is None
        if (value is getattr(before, name) and name not in _IN_PLACE) or left_out:
            continue
        try:
            yield name, _fit(name, value)
        except Misfit as wrong:
            raise Misfit(f"put {wrong} into {type(before).__name__}.{name}") from None


def _check_in_place(event: Event) -> None:
    for _ in _changed(event, event):
        continue


def _fit(name: str, value: Any) -> Any:
    if name not in _SINGLE:
        return _members(_LISTS[name], value)
    if not isinstance(value, _SINGLE[name]):
        raise Misfit(f"a {type(value).__name__}")
    made = _storable(value)
    if isinstance(made, Msg) and made.role != "assistant":
        raise Misfit(f"a message of role {made.role}")
    return made


def _members(kind: type, value: Any) -> tuple[Any, ...]:
    if not isinstance(value, tuple | list):
        raise Misfit(f"a {type(value).__name__} instead of a tuple")
    for member in value:
        if not isinstance(member, kind):
            raise Misfit(f"a {type(member).__name__} among the {kind.__name__}s")
    return tuple(map(_storable, value))


def _storable(value: Any) -> Any:
    """The value, if it can be logged as it would be sent; what texts and messages hold is cleaned later."""
    match value:
        case Msg() | ToolUse() | ToolResult():
            return _whole(value)
        case ToolSpec():
            _of_types(value, name=str, description=str, parameters=Mapping)
            _as_json([value.name, value.description, dict(value.parameters)])
        case SystemPart():
            _of_types(value, name=str, text=str)
            _as_json(value.name)
        case Mapping():
            _as_json(dict(value))
    return value


def _whole(value: Msg | ToolUse | ToolResult) -> Any:
    try:
        made = value.checked()
        return in_its_place(made) if isinstance(made, Msg) else made
    except ConfigError as error:
        raise Misfit(f"a {type(value).__name__} that is none ({error})") from None


def _of_types(value: object, **kinds: type) -> None:
    for name, kind in kinds.items():
        if not isinstance(given := getattr(value, name), kind):
            raise Misfit(f"a {type(value).__name__} whose {name} is a {type(given).__name__}")


def _as_json(logged: Any) -> None:
    try:
        dumps(logged)
    except TypeError as error:
        raise Misfit(f"something that JSON does not have ({error_text(error)})") from None
