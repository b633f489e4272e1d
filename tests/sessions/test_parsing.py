"""Lines that are parsed together give what each of them gives alone."""

from __future__ import annotations

from itertools import permutations

import pytest

from harness.sessions.lines.parsing import lines_in, values_of

ALONE = [{"a": 1}, {"b": [2]}]


def test_good_lines_give_their_values() -> None:
    assert values_of(b'{"a":1}\n{"b":[2]}'.split(b"\n")) == ALONE


def test_a_line_that_is_no_json_is_none_and_those_beside_it_are_read() -> None:
    assert values_of(b'{"a":1}\nno\n{"b":[2]}'.split(b"\n")) == [{"a": 1}, None, {"b": [2]}]


@pytest.mark.parametrize(
    "block",
    [
        b'{"a":1\n"b":2}',
        b'{"a":"{\n"}',
        b'{"a":[{"b":1}\n{"c":2}]}',
        b"[1\n2]",
        b"[[1\n2]]",
        b"[1],[2\n3],[4]",
    ],
)
def test_damaged_lines_that_are_good_values_together_stay_damaged(block: bytes) -> None:
    assert values_of(block.split(b"\n")) == [None, None]


def test_a_line_with_two_values_does_not_make_up_for_two_lines_with_one() -> None:
    two, begun, ended = b'{"a":1},{"a":2}', b'{"b":[{"c":3}', b'{"d":4}]}'

    for lines in permutations([two, begun, ended]):
        assert values_of(lines) == [None, None, None]


def test_a_line_may_have_its_end() -> None:
    assert values_of([b'{"a":1}\n', b'{"b":[2]}\n']) == ALONE


def test_a_blank_line_is_a_line() -> None:
    assert values_of(b'{"a":1}\n\n{"b":[2]}'.split(b"\n")) == [{"a": 1}, None, {"b": [2]}]


def test_the_deepest_line_that_can_be_read_alone_is_read_among_others() -> None:
    deep = b"[" * 1024 + b"]" * 1024

    assert [value is None for value in values_of([b"1", deep, b"[" + deep + b"]"])] == [False, False, True]


@pytest.mark.parametrize("data", [b"\n", b"one", b"one\n", b"\n\none\r\x0b\xe2\x80\xa8two\n\n", b"one\ntwo"])
def test_lines_end_at_line_feeds_alone(data: bytes) -> None:
    [lines] = lines_in(data)

    assert b"".join(lines) == data
    assert [line.removesuffix(b"\n") for line in lines] == data.removesuffix(b"\n").split(b"\n")


def test_lines_come_some_at_a_time_and_none_is_left_out() -> None:
    lines = [b"x" * size + b"\n" for size in (0, 40_000, 1, 200_000, 30_000, 30_000, 30_000, 0, 300_000, 2)]

    blocks = [*lines_in(b"".join(lines))]

    assert [line for block in blocks for line in block] == lines
    assert [len(block) for block in blocks] == [4, 3, 2, 1]


def test_nothing_is_no_line() -> None:
    assert [*lines_in(b"")] == []
