"""Lines are read alike wherever a chunk ends and however many are parsed at once."""

import pytest

from harness.transcripts import lines
from harness.transcripts.lines import Line, parsed_line, parsed_lines

SHORT = b'{"a":1}\n\n{"b":2}\r\n[3]\n{"c":\n4}\n  \n{"d":5}\n{"e":6'
LONG = b"".join(b'{"n":%d,"text":"%b"}\n' % (number, b"x" * 600) for number in range(4))


def shown(found: list[Line]) -> list[tuple[int, int, object, bool]]:
    return [(line.number, line.offset, line.record, line.is_bad) for line in found]


EXPECTED = [
    (1, 0, {"a": 1}, False),
    (3, 9, {"b": 2}, False),
    (4, 18, None, True),
    (5, 22, None, True),
    (6, 28, None, True),
    (8, 34, {"d": 5}, False),
    (9, 42, None, True),
]


@pytest.mark.parametrize("size", range(1, len(SHORT) + 1))
def test_damaged_and_blank_lines_cost_only_themselves_wherever_a_chunk_ends(size: int) -> None:
    chunks = [SHORT[at : at + size] for at in range(0, len(SHORT), size)]
    assert shown(list(parsed_lines(chunks))) == EXPECTED


@pytest.mark.parametrize("size", [1, 7, 500, 618, len(LONG)])
def test_long_lines_are_read_alike_wherever_a_chunk_ends(size: int) -> None:
    chunks = [LONG[at : at + size] for at in range(0, len(LONG), size)]
    found = list(parsed_lines(chunks, 100))
    assert [(line.number, line.offset) for line in found] == [(1, 100), (2, 718), (3, 1336), (4, 1954)]
    assert [line.record["n"] for line in found if line.record is not None] == [0, 1, 2, 3]


def test_one_damaged_long_line_costs_only_itself() -> None:
    found = list(parsed_lines([LONG.replace(b'"n":1,', b'"n":,')]))
    assert [line.is_bad for line in found] == [False, True, False, False]


def test_a_line_of_just_the_limit_is_read_and_a_longer_one_is_stepped_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE", 7)
    found = list(parsed_lines([b'{"a":1', b'}\n{"b":', b'22}\n{"c"', b":3}"]))
    assert shown(found) == [(1, 0, {"a": 1}, False), (2, 8, None, True), (3, 17, {"c": 3}, False)]
    assert found[1].warning is not None
    assert found[1].warning.text == "a line of 8 bytes, more than the 7 that are read"


def test_a_line_by_itself_is_read_like_one_among_others() -> None:
    line = parsed_line(b'{"a":1}\n', 9)
    assert line is not None
    assert (line.offset, line.record) == (9, {"a": 1})
    assert parsed_line(b" \n", 0) is None
