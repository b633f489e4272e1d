"""The fast look at whether a value can be stored as it is says yes only where `clean` has nothing to do."""

import asyncio
import datetime as dt
import math
from enum import Enum
from typing import Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.text import clean, clean_json, counted, dumps, error_text, is_clean, loads, said

LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(st.characters(codec=None)), st.binary(), st.dates()
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner), st.dictionaries(st.one_of(st.text(), st.integers()), inner), st.tuples(inner)
    ),
)


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


@given(VALUES)
def test_what_looks_clean_is_clean(value: Any) -> None:
    if is_clean(value):
        assert clean(value).marks == ()


@given(VALUES)
def test_the_json_of_a_clean_value_is_the_one_that_is_stored(value: Any) -> None:
    assert clean_json(value) == (dumps(value) if is_clean(value) else None)


def test_a_text_with_the_word_null_in_it_is_clean_and_a_number_that_became_null_is_not() -> None:
    assert is_clean({"text": "null"})
    assert not is_clean({"text": "null", "number": math.nan})


def test_a_value_that_an_enumeration_names_is_looked_at_too() -> None:
    odd = Enum("Odd", {"NOTHING": math.nan, "ONE": 1})
    assert not is_clean({"value": odd.NOTHING})
    assert is_clean({"value": odd.ONE})


class Name(str, Enum):  # noqa: UP042 - the `str()` of a StrEnum is its value, and of this one is not
    ONE = "one"


class Loud(str, Enum):  # noqa: UP042 - as above
    def __new__(cls, text: str) -> Self:
        made = str.__new__(cls, text.upper())
        made._value_ = text
        return made

    ONE = "one"


class Text(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "something else"


@pytest.mark.parametrize("text", [Name.ONE, Loud.ONE, Text("one")])
@pytest.mark.parametrize("beside", [1, math.nan, b"1", nested(200)])
def test_a_text_of_a_kind_of_its_own_is_stored_alike_whatever_stands_beside_it(text: str, beside: Any) -> None:
    value = {"text": text, "beside": beside}
    stored = loads(clean_json(value) or dumps(clean(value).value))
    assert stored["text"] == clean(text).value == "one"
    assert type(clean(text).value) is str


@pytest.mark.parametrize("depth", [1, 200])
def test_a_key_of_a_kind_of_its_own_is_its_characters(depth: int) -> None:
    value: Any = {Name.ONE: 1, Text("two"): 2}
    for _ in range(depth):
        value = [value]
    assert b"one" in dumps(clean(value).value)
    assert b"two" in dumps(clean(value).value)


@pytest.mark.parametrize("kind", [ValueError, asyncio.CancelledError, GeneratorExit])
def test_what_the_text_of_an_error_raises_does_not_take_the_place_of_the_error(kind: type[BaseException]) -> None:
    class Strange(Exception):
        def __str__(self) -> str:
            raise kind

    assert (said(Strange()), error_text(Strange())) == ("Strange", "Strange")


def test_an_interrupt_while_the_text_of_an_error_is_made_is_not_lost() -> None:
    class Slow(Exception):
        def __str__(self) -> str:
            raise KeyboardInterrupt

    for tell in (said, error_text):
        with pytest.raises(KeyboardInterrupt):
            tell(Slow())


@pytest.mark.parametrize(
    "value",
    [math.nan, -math.inf, 2**64, "half \ud800", {1: "one"}, dt.date(2026, 3, 2), type("Text", (str,), {})("a")],
)
def test_what_would_be_changed_or_read_as_something_else_does_not_look_clean(value: Any) -> None:
    assert not is_clean({"value": value})


def test_what_is_nested_too_deep_does_not_look_clean() -> None:
    assert is_clean(nested(128))
    assert not is_clean(nested(129))
    assert clean(nested(128)).marks == ()
    assert clean(nested(129)).marks == ("deep",)


def test_a_number_of_things_in_words_is_singular_for_one_alone() -> None:
    assert [counted(number, "session") for number in (0, 1, 2)] == ["0 sessions", "1 session", "2 sessions"]
    assert counted(12_345, "byte") == "12,345 bytes"
