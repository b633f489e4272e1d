"""Whatever a tool returns can be stored and shown: numbers JSON has no form for, depth, circles, half characters."""

from __future__ import annotations

import json
import math
from collections import UserDict
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest

from harness.messages import Media, MediaBlock, TextBlock, ToolResult
from harness.text import dumps
from harness.tools import ToolCall, as_tool


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: float
    y: float


class Array:
    def tolist(self) -> list[float]:
        return [1.0, math.nan]


class Odd:
    def __str__(self) -> str:
        return "odd"


class Hostile:
    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


class HostileModel:
    def model_dump(self) -> dict[str, Any]:
        raise StopIteration


class HostileMapping(UserDict):
    def __iter__(self):
        raise KeyError("gone")


async def result_of(value: object, scope) -> ToolResult:
    def give() -> object:
        return value

    result = await as_tool(give).run(ToolCall("c", "give", {}), scope)
    json.loads(dumps(result.to_dict()), parse_constant=pytest.fail)
    return result


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        (0, "0"),
        (False, "false"),
        ([], "[]"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        (["a", "b"], '["a","b"]'),
        (math.nan, "NaN"),
        ([math.inf, -math.inf, 1e308], '["Infinity","-Infinity",1e+308]'),
        (2**70, "1180591620717411303424"),
        (Decimal("NaN"), "NaN"),
        (Decimal("1.10"), "1.10"),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
        (date(2026, 1, 2), "2026-01-02"),
        (b"\xff\x00", "/wA="),
        ({3, 1, 2}, "[1,2,3]"),
        (Point(1.0, math.nan), '{"x":1.0,"y":"NaN"}'),
        (Colour.RED, "red"),
        (Array(), '[1.0,"NaN"]'),
        (Odd(), "odd"),
        ({1: "a", "1": "b"}, '{"1":"a","1\'":"b"}'),
        ({"half \ud83d": "\udc00"}, '{"half �":"�"}'),
    ],
)
async def test_any_value_becomes_text(scope, value, text):
    result = await result_of(value, scope)

    assert (result.text, result.is_error) == (text, False)


async def test_what_was_changed_is_marked_on_the_result(scope):
    assert (await result_of(math.nan, scope)).to_dict()["cleaned"] == ["number"]
    assert (await result_of("half \ud83d", scope)).to_dict()["cleaned"] == ["surrogate"]
    assert "cleaned" not in (await result_of("whole", scope)).to_dict()


async def test_halves_become_replacement_characters_and_pairs_stay_whole(scope):
    text = "half \ud83d here, tail \ude00, whole 😀, split \ud83d\ude00"

    assert (await result_of(text, scope)).text == "half � here, tail �, whole 😀, split 😀"


async def test_a_pair_split_over_two_pieces_is_whole_in_the_result(scope):
    async def pieces():
        yield "a\ud83d"
        yield "\ude00b"

    shown: list[str] = []
    result = await as_tool(pieces).run(ToolCall("c", "pieces", {}), scope, shown.append)

    assert result.text == "a😀b"
    assert shown == ["a�", "�b"]


async def test_a_value_nested_100_000_deep_is_text(scope):
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]

    result = await result_of(value, scope)

    assert result.to_dict()["cleaned"] == ["deep"]
    assert result.text.startswith("[[[[")
    del value[:]


async def test_a_value_that_holds_itself_is_text(scope):
    value: dict[str, Any] = {"name": "loop"}
    value["self"] = value

    assert (await result_of(value, scope)).text == '{"name":"loop","self":"[circular]"}'


@pytest.mark.parametrize("value", [HostileModel(), HostileMapping(a=1), [HostileModel()]])
async def test_a_value_that_cannot_be_looked_at_is_named(scope, value):
    result = await result_of(value, scope)

    assert not result.is_error
    assert "[Hostile" in result.text
    assert result.model_extra == {"cleaned": ["object"]}


async def test_an_object_whose_text_raises_is_named(scope):
    assert (await result_of([Hostile()], scope)).text == '["[Hostile: ValueError]"]'


async def test_blocks_pass_the_text_edge_and_keep_their_bytes(scope):
    image = MediaBlock(type="image", media=Media.from_bytes(b"x", "image/png", name="a\ud83d.png"))

    result = await result_of([TextBlock(text="b\ud83d"), image], scope)

    assert result.content[0] == TextBlock(text="b�")
    assert result.content[1].media.name == "a�.png"
    assert result.content[1].media.data == b"x"


async def test_a_tools_error_text_passes_the_text_edge(scope):
    def fail() -> None:
        raise ValueError("half \ud83d")

    result = await as_tool(fail).run(ToolCall("c", "fail", {}), scope)

    assert result.text == "Error: ValueError: half �"


async def test_input_reaches_the_tool_behind_the_text_edge(scope):
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]

    def show(word: str, number: float, value: Any) -> str:
        return f"{word} {number} {str(value)[:3]}"

    given = {"word": "half \ud83d", "number": math.nan, "value": deep}

    assert (await as_tool(show).run(ToolCall("c", "show", given), scope)).text == "half � nan [[["
