"""JSON schemas as a model should see them: without titles, without references where none are needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

__all__ = ["Generator", "schema_of"]

_DEFS = "$defs"
_REF = "#/$defs/"
_NAMED = ("properties", "patternProperties", _DEFS)
"""Keys under which names of the author's choice stand, `title` perhaps among them."""
_DATA = ("default", "const", "enum", "examples")
"""Keys under which values stand, not schemas."""


Json: TypeAlias = Any
"""A value that was read from JSON."""


class Generator(GenerateJsonSchema):
    """Pydantic's, without its warnings."""

    # A default without a JSON form is the function's business; the model only learns that there is one.
    ignored_warning_kinds: set[JsonSchemaWarningKind] = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012  # theirs


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a model's input. Only recursive types keep `$defs`."""
    schema = model.model_json_schema(by_alias=True, mode="validation", schema_generator=Generator)
    schema.pop("description", None)
    definitions = schema.get(_DEFS, {})
    if definitions and not any(_reaches(name, name, definitions) for name in definitions):
        schema.pop(_DEFS)
        schema = _inlined(schema, definitions)
    tidied: dict[str, Any] = _tidied(schema)
    return {"type": "object", "properties": {}, **tidied}


def _reaches(start: str, target: str, definitions: Mapping[str, Any]) -> bool:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for name in _references(definitions[waiting.pop()]):
            if name == target:
                return True
            if name not in seen:
                seen.add(name)
                waiting.append(name)
    return False


def _references(node: Json) -> set[str]:
    if isinstance(node, Mapping):
        own = {node["$ref"].removeprefix(_REF)} if isinstance(node.get("$ref"), str) else set()
        return own.union(*(_references(member) for member in node.values()))
    if isinstance(node, list):
        return set().union(*(_references(member) for member in node))
    return set()


def _inlined(node: Json, definitions: Mapping[str, Any]) -> Json:
    if isinstance(node, list):
        return [_inlined(member, definitions) for member in node]
    if not isinstance(node, Mapping):
        return node
    members = {key: _inlined(member, definitions) for key, member in node.items() if key != "$ref"}
    if not isinstance(node.get("$ref"), str):
        return members
    return {**_inlined(definitions[node["$ref"].removeprefix(_REF)], definitions), **members}


def _tidied(node: Json) -> Json:
    if isinstance(node, list):
        return [_tidied(member) for member in node]
    if not isinstance(node, Mapping):
        return node
    return {key: _tidied_member(key, member) for key, member in node.items() if key != "title"}


def _tidied_member(key: str, member: Json) -> Json:
    if key in _DATA:
        return member
    if key in _NAMED and isinstance(member, Mapping):
        return {name: _tidied(schema) for name, schema in member.items()}
    return _tidied(member)
