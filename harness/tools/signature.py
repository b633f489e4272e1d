"""From the signature of a function to what the model is shown and what the harness fills in."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo

from harness.context import CallScope
from harness.errors import ConfigError, ToolError
from harness.text import clean
from harness.tools.base import Function, ToolCall
from harness.tools.docstring import Docs
from harness.tools.injection import Injection, injection_of
from harness.tools.schema import Generator, schema_of

__all__ = ["Plan", "place_of", "plan_function"]

log = logging.getLogger("harness.tools")

_MAX_SHOWN = 200


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """How the arguments of one function come about.

    The model's own fields are called `p0`, `p1`, …, so that no parameter can meet an attribute of
    pydantic's; the parameters' names are their aliases.
    """

    model: type[BaseModel]
    schema: Mapping[str, Any]
    names: Mapping[str, str]
    nullable: frozenset[str]
    injected: Mapping[str, Injection]

    def arguments(self, call: ToolCall, scope: CallScope) -> dict[str, Any]:
        """Keyword arguments for one call.

        Raises `ToolError`, whose text tells the model what to change, or that an object which should be
        injected is not there; which one is for the log.
        """
        validated = self._validated(call)
        arguments = {self.names[field]: getattr(validated, field) for field in validated.model_fields_set}
        for name, injection in self.injected.items():
            found = _resolved(injection, call, scope)
            if found is not None or not injection.has_default:
                arguments[name] = found
        return arguments

    def _validated(self, call: ToolCall) -> BaseModel:
        given = clean(dict(call.input)).value
        # Models like to write null for what they mean to leave out.
        given = {name: value for name, value in given.items() if value is not None or name not in self._skips_null()}
        try:
            return self.model.model_validate(given)
        except ValidationError as error:
            raise ToolError(self._complaint(call.name, error)) from None

    def _skips_null(self) -> set[str]:
        required = self.schema.get("required", ())
        return {name for name in self.names.values() if name not in required and name not in self.nullable}

    def _complaint(self, tool: str, error: ValidationError) -> str:
        lines = [_complaint_line(item) for item in error.errors(include_url=False, include_context=False)]
        required = self.schema.get("required", ())
        known = ", ".join(f"{name}{'' if name in required else '?'}" for name in self.names.values())
        return "\n".join([f"Error: the input does not fit the tool {tool}:", *lines, f"It takes: {known or 'nothing'}"])


def _resolved(injection: Injection, call: ToolCall, scope: CallScope) -> object:
    """What is injected. The model can do nothing about what is missing: the developer is told in the log."""
    try:
        return injection.resolve(call, scope)
    except ConfigError as error:
        log.warning("tool %s cannot run (%s, call %s): %s", call.name, scope, call.id, error)
        raise ToolError(f"Error: the tool {call.name} is not available now; go on without it") from error


def _complaint_line(item: Mapping[str, Any]) -> str:
    place = ".".join(str(part) for part in item["loc"]) or "input"
    if item["type"] in ("missing", "extra_forbidden"):
        return f"- {place}: {'is required' if item['type'] == 'missing' else 'is no parameter of it'}"
    shown = repr(item["input"])
    return f"- {place}: {item['msg']}, not {shown[:_MAX_SHOWN]}{'…' if len(shown) > _MAX_SHOWN else ''}"


def place_of(function: Function) -> str:
    """Where a function was written, for messages to developers."""
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', repr(function))}"


def plan_function(function: Function, docs: Docs, local_names: Mapping[str, Any]) -> Plan:
    """Read a signature. Raises `ConfigError` that names the function and the parameter."""
    hints = _hints(function, local_names)
    injected: dict[str, Injection] = {}
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    nullable: set[str] = set()
    for parameter in _parameters(function):
        annotation = _annotation(function, parameter, hints)
        injection = injection_of(annotation, parameter.default is not parameter.empty)
        if injection is not None:
            injected[parameter.name] = injection
            continue
        if _takes_none(function, parameter, annotation):
            nullable.add(parameter.name)
        field = f"p{len(fields)}"
        names[field] = parameter.name
        fields[field] = (annotation, _field(parameter, docs))
    config = ConfigDict(extra="forbid", protected_namespaces=(), coerce_numbers_to_str=True)
    model: type[BaseModel] = create_model(getattr(function, "__name__", "tool"), __config__=config, **fields)
    return Plan(model, schema_of(model), names, frozenset(nullable), injected)


def _hints(function: Function, local_names: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function, localns=dict(local_names), include_extras=True)
    except NameError as error:
        annotations = getattr(function, "__annotations__", {})
        wanted = next((name for name, text in annotations.items() if str(error.name) in str(text)), "?")
        raise ConfigError(
            f"tool {place_of(function)}: the type of {wanted!r} cannot be found ({error}); "
            "import it where the function is defined, not under TYPE_CHECKING"
        ) from None


def _parameters(function: Function) -> list[inspect.Parameter]:
    parameters = list(inspect.signature(function).parameters.values())
    first = parameters[0] if parameters else None
    if first is not None and first.name in ("self", "cls") and first.annotation is first.empty:
        return parameters[1:]  # a method, looked at before it is bound
    return parameters


def _annotation(function: Function, parameter: inspect.Parameter, hints: Mapping[str, Any]) -> Any:
    place = f"tool {place_of(function)}: parameter {parameter.name!r}"
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise ConfigError(f"{place} cannot be given by name; write out the parameters the model may give")
    if isinstance(parameter.default, FieldInfo):
        raise ConfigError(f"{place} has Field(…) as its default; write Annotated[type, Field(…)] instead")
    if parameter.name not in hints:
        raise ConfigError(f"{place} has no type; annotate it, so that the model can be told what to give")
    return hints[parameter.name]


def _takes_none(function: Function, parameter: inspect.Parameter, annotation: Any) -> bool:
    try:
        adapter = TypeAdapter[object](annotation)
        adapter.json_schema(schema_generator=Generator)
        adapter.validate_python(None)
        return True
    except ValidationError:
        return False
    except PydanticUserError as error:
        raise ConfigError(
            f"tool {place_of(function)}: parameter {parameter.name!r} of type {annotation!r} can neither be given "
            f"by a model nor be injected ({str(error).splitlines()[0]}); "
            "write Annotated[…, Inject] if the harness shall fill it in"
        ) from None


def _field(parameter: inspect.Parameter, docs: Docs) -> object:
    given: dict[str, Any] = {"alias": parameter.name}
    if parameter.default is not parameter.empty:
        given["default"] = parameter.default
    if description := docs.parameters.get(parameter.name):
        given["description"] = description
    return Field(**given)
