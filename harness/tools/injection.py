"""Which parameters of a tool the harness fills in itself, and with what.

Injected parameters are decided when a tool is defined, by their types; the model never sees them:

    RuntimeContext, CallScope, ToolCall, AbstractFilesystem
    a protocol, or a class with `save` and `load` (a state module)
    any other class written `Annotated[SomeClass, Inject]`
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Union, get_args, get_origin

from pydantic import BaseModel

from harness.context import CallScope, RuntimeContext
from harness.filesystem.base import AbstractFilesystem
from harness.tools.base import ToolCall

__all__ = ["Inject", "Injection", "injection_of"]


class Inject:
    """Marks a parameter as the harness's to fill in: `db: Annotated[Database, Inject]`.

    The object is looked up by its type among the services of the call, then in the caller's
    `RuntimeContext.extra`.
    """


@dataclass(frozen=True, slots=True)
class Injection:
    """One injected parameter. Where the call has nothing of that type, the parameter keeps its default
    or, where its type allows it, is None.
    """

    kind: type[object]
    nullable: bool
    has_default: bool

    def resolve(self, call: ToolCall, scope: CallScope) -> object:
        """The object for this call. Raises `ConfigError` where there is none and one is needed."""
        own: Mapping[type, object] = {ToolCall: call, CallScope: scope, RuntimeContext: scope.ctx}
        if self.kind in own:
            return own[self.kind]
        return scope.find(self.kind) if self.nullable or self.has_default else scope.get(self.kind)


def injection_of(annotation: object, has_default: bool) -> Injection | None:
    """How a parameter of that type is filled in, or None where the model gives it."""
    marked, kind = _unwrapped(annotation)
    kind, nullable = _without_none(kind)
    marked_inside, kind = _unwrapped(kind)
    kind = get_origin(kind) or kind
    if isinstance(kind, type) and (marked or marked_inside or _is_injected(kind)):
        return Injection(kind, nullable, has_default)
    return None


def _unwrapped(annotation: object) -> tuple[bool, object]:
    if get_origin(annotation) is not Annotated:
        return False, annotation
    kind, *marks = get_args(annotation)
    return any(mark is Inject or isinstance(mark, Inject) for mark in marks), kind


def _without_none(annotation: object) -> tuple[object, bool]:
    if get_origin(annotation) not in (Union, types.UnionType):
        return annotation, False
    members = [member for member in get_args(annotation) if member is not type(None)]
    return (members[0], True) if len(members) == 1 else (annotation, False)


def _is_injected(kind: type[object]) -> bool:
    if kind in (RuntimeContext, CallScope, ToolCall) or issubclass(kind, AbstractFilesystem):
        return True
    is_state_module = callable(getattr(kind, "save", None)) and callable(getattr(kind, "load", None))
    return getattr(kind, "_is_protocol", False) or (is_state_module and not issubclass(kind, BaseModel))
