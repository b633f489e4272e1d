"""The fast look at whether a value can be stored as it is says yes only where `clean` has nothing to do."""

import datetime as dt
import math
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.text import clean, is_clean

LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(st.characters(codec=None)), st.binary(), st.dates()
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner), st.dictionaries(st.one_of(st.text(), st.integers()), inner), st.tuples(inner)
    ),
)


@given(VALUES)
def test_what_looks_clean_is_clean(value: Any) -> None:
    if is_clean(value):
        assert clean(value).marks == ()


def test_a_value_that_an_enumeration_names_is_looked_at_too() -> None:
    odd = Enum("Odd", {"NOTHING": math.nan, "ONE": 1})
    assert not is_clean({"value": odd.NOTHING})
    assert is_clean({"value": odd.ONE})


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


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
