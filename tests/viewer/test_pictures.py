"""The two pictures: what is drawn, and that no text in them acts."""

import re
from xml.etree import ElementTree as ET

import pytest

from harness.viewer.pictures import MOST_BARS, timeline, tokens


def at(seconds: int) -> str:
    return f"2026-01-01T00:{seconds // 60:02}:{seconds % 60:02}.000Z"


def lanes(markup: str) -> list[tuple[str, str]]:
    tree = ET.fromstring(markup)
    return [(bar.attrib["class"], bar.findtext("title") or "") for bar in tree.iter("rect")]


MOMENTS = [
    {"kind": "prompt", "at": at(0)},
    {"kind": "answer", "at": at(10)},
    {"kind": "tool", "at": at(10), "end": at(40), "name": "Bash"},
    {"kind": "answer", "at": at(45)},
    {"kind": "compaction", "at": at(50)},
    {"kind": "answer", "at": at(52)},
    {"kind": "prompt", "at": at(152)},
]


def test_the_timeline_has_requests_tools_waiting_and_compactions() -> None:
    assert lanes(timeline(MOMENTS)) == [
        ("a-prompt", "prompt"),
        ("a-request", "answer after 10.0 s"),
        ("a-tool", "Bash, 30.0 s"),
        ("a-request", "answer after 5.0 s"),
        ("a-compaction", "compaction"),
        ("a-request", "answer after 2.0 s"),
        ("a-wait", "waited 100.0 s for the person"),
        ("a-prompt", "prompt"),
    ]


def test_a_session_without_times_has_no_timeline() -> None:
    assert timeline([{"kind": "prompt", "at": ""}, {"kind": "answer", "at": "soon"}]) == ""
    assert timeline([]) == ""


def test_a_tool_name_is_text_in_the_picture() -> None:
    hostile = timeline(
        [{"kind": "prompt", "at": at(0)}, {"kind": "tool", "at": at(1), "end": at(9), "name": "<script>x"}]
    )
    assert "<script" not in hostile
    assert lanes(hostile)[1] == ("a-tool", "<script>x, 8.0 s")


def test_a_long_session_draws_no_more_than_a_lane_has_places() -> None:
    many = [{"kind": "prompt" if number % 2 else "answer", "at": at(number % 3600)} for number in range(20_000)]
    assert len(lanes(timeline(many))) < 4_000


def usage(fresh: int, cached: int = 0, output: int = 0) -> dict[str, object]:
    return {"usage": {"input": fresh, "cacheRead": cached, "output": output}}


def test_tokens_are_stacked_over_each_other() -> None:
    assert lanes(tokens([usage(100, 900, 50)])) == [
        ("a-cached", "900 cached, 100 input, 50 output"),
        ("a-input", "900 cached, 100 input, 50 output"),
        ("a-output", "900 cached, 100 input, 50 output"),
    ]


def test_the_context_window_is_a_line_over_the_bars() -> None:
    drawn = tokens([usage(100)], budget=1000)
    assert 'class="budget"' in drawn
    assert "context window 1,000" in drawn


def test_many_requests_share_bars_and_the_largest_is_shown() -> None:
    drawn = tokens([usage(1)] * 999 + [usage(5000)])
    assert len(lanes(drawn)) <= MOST_BARS
    assert ("a-input", "0 cached, 5,000 input, 0 output") in lanes(drawn)
    assert "1,000 requests, 5 to a bar" in drawn


def test_unknown_usage_is_not_drawn_as_zero() -> None:
    assert tokens([{"status": "open"}, {"usage": None}]) == ""


def test_no_style_and_no_script_is_inline() -> None:
    drawn = str(timeline(MOMENTS)) + str(tokens([usage(3)], 10))
    assert re.findall(r"\s(?:style|on\w+)=|<(?:style|script)", drawn) == []


@pytest.mark.parametrize("requests", [[], [{"usage": None}], [{}], [{"usage": {}}]])
def test_without_tokens_there_is_no_picture_of_them_whatever_the_window(requests: list[dict[str, object]]) -> None:
    for budget in (None, 0, 8_000):
        assert "rect" not in tokens(requests, budget)
