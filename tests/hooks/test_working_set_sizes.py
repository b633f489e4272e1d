"""How much a request may show: windows, answers, what tokens really cost, what turns grow by; and packets in their size."""

from typing import Any

import pytest

from harness.hooks.gauge import Gauge, gauge_of, growth_reserve, news_of
from harness.hooks.packet_summary import newest_packet, record_of_past, said_in
from harness.messages import Usage
from harness.sessions.lines.entries import Entry, Position
from harness.sessions.selection.packets import Packet, packet_message
from harness.sessions.tree.past_turns import PastTurn
from harness.sessions.view.metering import Capacity, Meter, answer_reserve, learned
from harness.testing import ScriptedModel


def entry(line: str, number: int, **fields: Any) -> Entry:
    return Entry({"type": line, "id": f"e{number}", **fields}, number, number, 1)


def capacity(number: int, **known: Any) -> Entry:
    data = {"provider": "scripted", "model": "scripted", **known}
    return entry("event", number, kind="capacity", data=data)


def answered(
    number: int, *, asked: int, billed: int, status: str = "completed", model: str = "scripted"
) -> list[Entry]:
    """A request that was estimated at `asked` tokens, and billed."""
    request = f"e{number}"
    usage = Usage(input=billed - 2, cache_read=1, cache_write=1, output=9).to_dict()
    message = {"id": f"m{number}", "role": "assistant", "content": [], "provider": "scripted", "model": model}
    return [
        entry("request_begin", number, tokens=asked),
        entry("message", number + 1, via="model", requestId=request, message={**message, "usage": usage}),
        entry("request_end", number + 2, requestId=request, status=status),
    ]


def meter_of(*lines: Entry) -> Meter:
    meter = Meter()
    meter.follow(lines)
    return meter


MODEL = ScriptedModel(context_window=10_000)


def test_room_for_an_answer_is_left_in_the_window() -> None:
    assert [answer_reserve(window) for window in (400, 8_000, 10_000, 200_000)] == [100, 2_000, 2_048, 20_000]
    assert gauge_of(meter_of(), MODEL) == Gauge(7_952, 1.0)
    assert gauge_of(meter_of(), ScriptedModel()) == Gauge(115_200, 1.0)


def test_what_a_refusal_has_shown_counts_before_what_is_declared() -> None:
    meter = meter_of(capacity(1, window=4_000, ratio=2.0))
    assert gauge_of(meter, MODEL) == Gauge(3_000, 2.0)
    assert gauge_of(meter, MODEL).ceiling == 1_500
    assert gauge_of(meter, MODEL, most=500) == Gauge(500, 2.0)


@pytest.mark.parametrize(
    ("billed", "news"),
    [(1_090, None), (1_200, Capacity(ratio=1.2)), (700, Capacity(ratio=0.7)), (90_000, Capacity(ratio=4.0))],
)
def test_only_what_moved_by_more_than_a_tenth_is_news(billed: int, news: Capacity | None) -> None:
    assert news_of(meter_of(*answered(1, asked=1_000, billed=billed)), MODEL) == news


def test_newer_answers_weigh_three_tenths_and_begin_from_what_was_logged() -> None:
    meter = meter_of(capacity(1, ratio=2.0), *answered(2, asked=1_000, billed=1_000))
    assert meter.measured("scripted", "scripted") == 1.7
    assert news_of(meter, MODEL) == Capacity(ratio=1.7)


def test_answers_that_do_not_count_and_those_of_other_models_tell_nothing() -> None:
    other = answered(1, asked=1_000, billed=3_000, model="other")
    failed = answered(4, asked=1_000, billed=3_000, status="failed")
    assert meter_of(*other, *failed).measured("scripted", "scripted") is None


def test_a_meter_that_follows_a_path_knows_what_one_that_sees_it_whole_does() -> None:
    path: list[Entry] = []
    meter = Meter()
    for number in range(1, 40, 3):
        path.extend(answered(number, asked=1_000, billed=1_000 + 37 * number))
        meter.follow(path)
    assert meter.measured("scripted", "scripted") == meter_of(*path).measured("scripted", "scripted")
    meter.follow([capacity(1, window=900)])
    assert meter.known("scripted", "scripted") == Capacity(window=900)
    assert meter.measured("scripted", "scripted") is None


def test_a_refusal_without_a_window_teaches_nothing_and_one_that_was_estimated_to_fit_teaches_the_ratio() -> None:
    assert learned(None, 9_000, 1.0) == Capacity()
    assert learned(8_000, 9_000, 1.0) == Capacity(window=8_000)
    assert learned(8_000, 4_000, 1.0) == Capacity(window=8_000, ratio=2.0)


def test_room_for_growth_follows_the_newer_turns_and_takes_a_quarter_at_most() -> None:
    assert growth_reserve([], 1_000) == 0
    assert growth_reserve([100], 1_000) == 100
    assert growth_reserve([100, 200], 1_000) == 130
    assert growth_reserve([900], 1_000) == 250


# ---- packets


def packet(last: int, kind: str = "packet", seq: int = 1, text: str = "P") -> Packet:
    return Packet(f"{kind}-{last}-{seq}", seq, last, text, kind, 10)


def test_the_packet_of_most_turns_is_taken_a_summary_before_a_list_and_a_newer_one_before_an_older() -> None:
    assert newest_packet([]) is None
    assert newest_packet([packet(8, seq=9), packet(16)]) == packet(16)
    assert newest_packet([packet(8, "checkpoint", 9), packet(8)]) == packet(8)
    assert newest_packet([packet(8), packet(8, seq=5)]) == packet(8, seq=5)


def test_what_is_put_around_a_summary_is_not_shown_to_the_next_summariser() -> None:
    text = "[turns #1 to #8; recall(turn=n) shows one whole]\nThey met.\n\n## Record\n- tool used: look (x2)"
    assert said_in(packet(8, text=text)) == "They met."
    assert said_in(packet(8, text="They met.\nAnd left.")) == "They met.\nAnd left."


def test_a_record_counts_tools_and_names_files() -> None:
    turn = PastTurn("t", 1, 1, 1, 1, "#1", (), ("look", "read", "look"), ("a.txt",), Position(1, 0), 1, "l")
    assert record_of_past([turn, turn]).lines() == [
        "## Record", "- tool used: look (x4)", "- tool used: read (x2)", "- file: a.txt",
    ]  # fmt: skip


def test_a_packet_names_what_neither_it_nor_anything_else_shows() -> None:
    assert packet_message("e1", "P")["content"][0]["text"] == "<context_summary>\nP\n</context_summary>"
    text = packet_message("e1", "P", (9, 16))["content"][0]["text"]
    assert text.startswith("<context_summary>\nP\n\n[turns #9 to #16 are not shown; recall(turn=n)")
