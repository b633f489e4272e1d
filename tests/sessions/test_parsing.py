"""Lines that are parsed together give what each of them gives alone."""

from __future__ import annotations

from itertools import permutations

import pytest

from harness.sessions.parsing import blocks_in, values_in

ALONE = [{"a": 1}, {"b": [2]}]


def test_good_lines_give_their_values() -> None:
    assert values_in(b'{"a":1}\n{"b":[2]}') == ALONE


def test_a_line_that_is_no_json_is_none_and_those_beside_it_are_read() -> None:
    assert values_in(b'{"a":1}\nno\n{"b":[2]}') == [{"a": 1}, None, {"b": [2]}]


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
    assert values_in(block) == [None, None]


def test_a_line_with_two_values_does_not_make_up_for_two_lines_with_one() -> None:
    two, begun, ended = b'{"a":1},{"a":2}', b'{"b":[{"c":3}', b'{"d":4}]}'

    for lines in permutations([two, begun, ended]):
        assert values_in(b"\n".join(lines)) == [None, None, None]


def test_a_blank_line_is_a_line() -> None:
    assert values_in(b'{"a":1}\n\n{"b":[2]}') == [{"a": 1}, None, {"b": [2]}]


def test_the_deepest_line_that_can_be_read_alone_is_read_among_others() -> None:
    deep = b"[" * 1024 + b"]" * 1024

    assert [value is None for value in values_in(b"1\n" + deep + b"\n[" + deep + b"]")] == [False, False, True]


def test_blocks_are_whole_lines_and_leave_nothing_out() -> None:
    lines = [b"x" * size for size in (0, 70_000, 1, 200_000, 60_000, 60_000, 60_000, 0, 300_000, 2)]

    blocks = [*blocks_in(b"\n".join(lines) + b"\n")]

    assert b"\n".join(blocks) == b"\n".join(lines)
    assert [len(block) for block in blocks] == [70_003, 200_000, 120_001, 60_001, 300_000, 2]


def test_an_unfinished_last_line_is_in_the_last_block() -> None:
    assert [*blocks_in(b"one\ntwo")] == [b"one\ntwo"]


def test_nothing_is_no_block() -> None:
    assert [*blocks_in(b"")] == []
