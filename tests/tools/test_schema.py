from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, Protocol

import pytest
from pydantic import BaseModel, Field

from harness.context import CallScope, RuntimeContext
from harness.errors import ConfigError
from harness.filesystem.base import AbstractFilesystem
from harness.tools import Inject, ToolCall, as_tool, tool


class Unit(Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


class Place(BaseModel):
    city: str
    country: str = "DE"


@dataclass
class Stop:
    place: Place
    nights: int = 1


class Node(BaseModel):
    name: str
    children: list[Node] = []


class Database:
    pass


class Clock(Protocol):
    def now(self) -> str: ...


class Plan:
    name = "plan"

    def save(self) -> dict[str, Any] | None:
        return None

    def load(self, value: dict[str, Any]) -> None:
        raise AssertionError(value)


def properties(function: Callable[..., Any]) -> dict[str, Any]:
    return dict(as_tool(function).spec.parameters["properties"])


def test_name_description_and_schema_come_from_the_function():
    @tool
    def forecast(city: str, days: int = 3, unit: Unit = Unit.CELSIUS, note: str | None = None) -> str:
        """Tell the weather.

        More of the description.

        Args:
            city: where, as in
                Berlin
            days (int): how far ahead

        Returns:
            text
        """
        return city

    spec = as_tool(forecast).spec

    assert spec.name == "forecast"
    assert spec.description == "Tell the weather.\n\nMore of the description."
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "city": {"description": "where, as in Berlin", "type": "string"},
            "days": {"default": 3, "description": "how far ahead", "type": "integer"},
            "unit": {"default": "c", "enum": ["c", "f"], "type": "string"},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        },
        "required": ["city"],
        "additionalProperties": False,
    }


def test_arguments_of_the_decorator_win():
    @tool(name="weather", description="Short.", timeout=2.5, group="web")
    def forecast(city: str) -> str:
        """Long."""
        return city

    made = as_tool(forecast)

    assert (made.name, made.spec.description, made.timeout, made.group) == ("weather", "Short.", 2.5, "web")


def test_a_decorated_function_is_called_as_before():
    @tool
    def double(number: int) -> int:
        return number * 2

    assert double(4) == 8


def test_numpy_docstrings_describe_parameters():
    @tool
    def f(a: int, b: int) -> None:
        """Add.

        Parameters
        ----------
        a : int
            the first,
            of two
        b : int
            the second
        """

    assert properties(f)["a"]["description"] == "the first, of two"
    assert properties(f)["b"]["description"] == "the second"


def test_field_list_docstrings_describe_parameters():
    @tool
    def f(a: int, b: int) -> None:
        """Add.

        :param a: the first
        :param int b: the second
        :returns: nothing
        """

    assert as_tool(f).spec.description == "Add."
    assert properties(f)["a"]["description"] == "the first"
    assert properties(f)["b"]["description"] == "the second"


def test_annotated_constraints_and_descriptions_are_kept():
    @tool
    def f(n: Annotated[int, Field(ge=1, le=9, description="a digit")], kind: Literal["a", "b"] = "a") -> None: ...

    assert properties(f) == {
        "n": {"description": "a digit", "maximum": 9, "minimum": 1, "type": "integer"},
        "kind": {"default": "a", "enum": ["a", "b"], "type": "string"},
    }


def test_nested_types_are_written_out_without_references():
    @tool
    def book(stops: list[Stop]) -> None: ...

    assert "$defs" not in as_tool(book).spec.parameters
    assert properties(book)["stops"]["items"]["properties"]["place"] == {
        "type": "object",
        "properties": {"city": {"type": "string"}, "country": {"default": "DE", "type": "string"}},
        "required": ["city"],
    }


def test_recursive_types_keep_their_references():
    @tool
    def grow(tree: Node) -> None: ...

    assert set(as_tool(grow).spec.parameters["$defs"]) == {"Node"}


def test_parameters_may_have_names_that_pydantic_uses_itself():
    @tool
    def f(title: str, json: int, schema: str, _hidden: int, model_config: int, copy: bool = False) -> None: ...

    assert list(properties(f)) == ["title", "json", "schema", "_hidden", "model_config", "copy"]


def test_a_default_without_json_form_is_only_optional():
    @tool
    def f(value: Annotated[int, Field(description="x")] = object()) -> None: ...

    assert properties(f) == {"value": {"description": "x", "type": "integer"}}
    assert "required" not in as_tool(f).spec.parameters


def test_a_function_without_parameters_has_an_empty_object():
    @tool
    def f() -> None: ...

    assert as_tool(f).spec.parameters == {"type": "object", "properties": {}, "additionalProperties": False}


def test_injected_parameters_are_hidden():
    @tool
    def f(
        ctx: RuntimeContext,
        scope: CallScope,
        call: ToolCall,
        files: AbstractFilesystem,
        plan: Plan,
        clock: Clock,
        database: Annotated[Database, Inject],
        maybe: Annotated[Database | None, Inject()],
        query: str,
        optional: RuntimeContext | None = None,
    ) -> None: ...

    assert list(properties(f)) == ["query"]


def test_a_type_nobody_can_give_is_refused_with_function_and_parameter():
    with pytest.raises(ConfigError, match=r"refused\..*'database'.*Inject|.*refused: parameter 'database'.*Inject"):

        @tool
        def refused(database: Database) -> None: ...


def test_a_parameter_without_type_is_refused():
    with pytest.raises(ConfigError, match=r"refused: parameter 'a' has no type"):

        @tool
        def refused(a) -> None: ...


def test_a_type_that_is_not_imported_is_refused():
    with pytest.raises(ConfigError, match=r"refused: the type of 'a' cannot be found.*Missing"):

        @tool
        def refused(a: Missing) -> None: ...  # noqa: F821


def test_a_type_without_json_schema_is_refused():
    with pytest.raises(ConfigError, match=r"refused: parameter 'a' of type"):

        @tool
        def refused(a: Callable[[], int]) -> None: ...


@pytest.mark.parametrize("name", ["with blank", "", "a" * 65, "dot.ted"])
def test_a_name_that_providers_refuse_is_refused(name):
    with pytest.raises(ConfigError, match="no name that providers take"):
        tool(name=name or " ")(lambda: None)


def test_star_parameters_are_refused():
    with pytest.raises(ConfigError, match="'args' cannot be given by name"):

        @tool
        def refused(*args: int) -> None: ...


def test_a_timeout_must_be_positive():
    with pytest.raises(ConfigError, match="a timeout of 0 s"):
        tool(timeout=0, name="f")(lambda: None)


def test_field_as_default_is_refused():
    with pytest.raises(ConfigError, match="write Annotated"):

        @tool
        def refused(a: int = Field(3)) -> None: ...


def test_types_of_an_enclosing_function_are_found():
    class Local(BaseModel):
        x: int

    @tool
    def f(local: Local) -> None: ...

    assert properties(f)["local"]["properties"] == {"x": {"type": "integer"}}
