"""What is known of a line at once is what looking closely at it says, and no part that stands in a file is missed."""

from __future__ import annotations

from typing import Any

import pytest

from harness.sessions.ledger.reading import scan
from harness.sessions.lines.entries import START, Position
from harness.sessions.lines.shapes import is_entry, is_message, may_refer, wrong_message, wrong_part
from harness.text import dumps

OTHERS: tuple[Any, ...] = (None, 5, True, "a text", [], [None], {}, {"stored": {"sha256": "ab" * 32}})
ELSEWHERE = {"stored": {"sha256": "ab" * 32, "bytes": 3}}
TEXT = {"type": "text", "text": 'He said: {"stored":{}}'}
PLAIN = {"id": "m1", "role": "user", "content": [TEXT]}
FULL = {
    **PLAIN,
    "role": "assistant",
    "model": "instant",
    "provider": "test",
    "stop": "stop",
    "usage": {"input": 1, "output": 2},
    "name": "ann",
    "meta": {"a": 1},
    "mine": 1,
}


def entry(message: Any) -> dict[str, Any]:
    return {"type": "message", "id": "e1", "parentId": "e0", "turnId": "e1", "requestId": "r1", "message": message}


@pytest.mark.parametrize("key", ["type", "id", "parentId", "turnId", "requestId", "message"])
@pytest.mark.parametrize("value", OTHERS)
def test_a_line_with_another_value_is_an_entry_where_nothing_in_it_is_wrong(key: str, value: Any) -> None:
    line = {**entry(PLAIN), key: value}

    assert is_entry(line) is (wrong_part(line) == "")


@pytest.mark.parametrize("key", ["type", "id", "parentId", "turnId", "requestId", "message"])
def test_a_line_without_a_key_is_an_entry_where_nothing_in_it_is_wrong(key: str) -> None:
    line = entry(PLAIN)
    del line[key]

    assert is_entry(line) is (key not in ("type", "id", "message"))


@pytest.mark.parametrize("value", [None, 5, "a text", [], ["type", "id"], {}])
def test_what_is_no_entry_at_all_is_none(value: Any) -> None:
    assert may_refer(value) is None


@pytest.mark.parametrize("base", [PLAIN, FULL])
@pytest.mark.parametrize("key", FULL)
@pytest.mark.parametrize("value", OTHERS)
def test_a_message_with_another_value_is_one_where_no_part_of_it_is_wrong(base: Any, key: str, value: Any) -> None:
    message = {**base, key: value}

    assert is_message(message) is (wrong_message(message) == "")


@pytest.mark.parametrize("block", [*OTHERS, {"type": 5}, {"text": "no type"}, {"type": "own", "stored": 5}])
def test_a_block_of_another_kind_is_one_where_no_part_of_the_message_is_wrong(block: Any) -> None:
    message = {**PLAIN, "content": [TEXT, block]}

    assert is_message(message) is (wrong_message(message) == "")


@pytest.mark.parametrize("count", [None, True, 1.5, "1", {}])
def test_a_count_that_is_no_number_is_no_count(count: Any) -> None:
    assert not is_message({**PLAIN, "usage": {"input": count}})
    assert is_message({**PLAIN, "usage": {"cost": count}})


@pytest.mark.parametrize("message", [PLAIN, {**PLAIN, "model": "instant", "stop": "stop", "usage": {"input": 1}}])
def test_of_a_message_as_most_are_nothing_stands_in_a_file(message: Any) -> None:
    assert may_refer(entry(message)) is False


@pytest.mark.parametrize(
    "message",
    [
        {**PLAIN, "content": [{"type": "text", **ELSEWHERE}]},
        {**PLAIN, "content": [TEXT, {"type": "blocks", **ELSEWHERE}]},
        *({**FULL, key: ELSEWHERE} for key in ("model", "provider", "stop", "usage", "name", "meta", "mine")),
    ],
)
def test_a_message_a_part_of_which_stands_in_a_file_may_refer_to_it(message: Any) -> None:
    assert may_refer(entry(message)) is True


def test_the_lines_that_name_a_file_are_told_from_those_between_them() -> None:
    lines = [
        entry(PLAIN),
        entry({**PLAIN, "content": [{"type": "text", **ELSEWHERE}]}),
        {"type": "event", "id": "e2", "kind": "note"},
        {"type": "event", "id": "e3", "kind": "note", "data": ELSEWHERE},
    ]

    entries, damage, _ = scan(b"".join(dumps(line) + b"\n" for line in lines), Position(7, 1000))

    assert [each.refers for each in entries] == [False, True, False, True]
    assert [each.seq for each in entries] == [7, 8, 9, 10]
    assert damage == []


def test_where_no_line_names_a_file_none_refers_to_one() -> None:
    lines = [entry(PLAIN), {"type": "event", "id": "e2", "kind": "note", "data": {"text": '"stored":'}}]

    entries, _, _ = scan(b"".join(dumps(line) + b"\n" for line in lines), START)

    assert [each.refers for each in entries] == [False, False]
