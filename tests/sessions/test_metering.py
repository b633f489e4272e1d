"""Sizes: what a provider counted is believed, and the rest is estimated by the same measure."""

from typing import Any

import pytest

from harness.models.tokens import estimate_tokens
from harness.sessions import Entry
from harness.sessions.view.metering import (
    Capacity,
    capacities,
    capacity_events,
    context_size,
    newest_metered,
    window_of,
)

TEXT = "x" * 400


def message(n: int, role: str = "user", **more: Any) -> dict[str, Any]:
    return {"id": f"m{n}", "role": role, "content": [{"type": "text", "text": TEXT}], **more}


def entry(kind: str, /, **fields: Any) -> Entry:
    return Entry({"type": kind, "id": f"e{id(fields)}", **fields}, 1, 0, 1)


def answered(n: int, tokens: int, status: str = "completed", via: str = "model") -> list[Entry]:
    usage = {"input": tokens - 50, "cacheRead": 30, "cacheWrite": 0, "output": 30, "reasoning": 10}
    made = message(n, "assistant", provider="p", model="m", usage=usage)
    return [
        entry("message", message=made, via=via, requestId=f"r{n}"),
        entry("request_end", status=status, requestId=f"r{n}"),
    ]


HISTORY = [message(1), message(2, "assistant"), message(3)]


def size(path: list[Entry], model: str = "m") -> Any:
    return context_size(path, HISTORY, 0, "p", model)


def test_without_a_count_everything_is_estimated() -> None:
    assert size([]).tokens == 3 * estimate_tokens(message(1))


def test_what_was_counted_is_taken_and_the_rest_is_measured_by_it() -> None:
    found = size(answered(2, 400))
    assert found.ratio == round(400 / (2 * estimate_tokens(message(1))), 3)
    assert found.tokens == 400 + round(estimate_tokens(message(1)) * found.ratio)


@pytest.mark.parametrize(
    "path",
    [
        answered(2, 400, status="failed"),
        answered(2, 400, via="summary"),
        [*answered(2, 400), entry("compaction", boundary=True)],
        answered(9, 400),
    ],
    ids=["not committed", "beside the conversation", "before a boundary", "not shown any more"],
)
def test_a_count_of_something_else_is_no_count(path: list[Entry]) -> None:
    assert size(path) == size([])


def test_another_model_s_count_is_no_count() -> None:
    assert size(answered(2, 400), "other") == size([])


def test_a_count_beyond_what_can_be_does_not_hide_that_a_request_is_large() -> None:
    assert size(answered(2, 60)).tokens >= size([]).tokens // 2


def test_reasoning_is_not_counted_into_the_next_request() -> None:
    found = newest_metered(answered(2, 400))
    assert found is not None
    assert found.tokens == 400


def capacity(**data: Any) -> Entry:
    return entry("event", kind="capacity", data={"provider": "p", **data})


def test_the_newest_word_on_each_point_counts() -> None:
    path = [capacity(model="m", window=1_000), capacity(model="m", ratio=2.0), capacity(model="m", window=900)]
    assert capacities(path) == {("p", "m"): Capacity(900, 2.0)}
    assert list(capacity_events(capacities(path))) == [{"provider": "p", "model": "m", "window": 900, "ratio": 2.0}]


def test_the_window_of_a_refusal_comes_before_the_declared_one() -> None:
    path = [capacity(model="m", window=1_000)]
    assert [window_of(path, "p", "m", 5_000), window_of(path, "p", "n", 5_000), window_of(path, "p", "n", None)] == [
        1_000, 5_000, None,
    ]  # fmt: skip


def test_a_known_measure_is_used_behind_a_boundary_too() -> None:
    path = [entry("compaction", boundary=True), capacity(model="m", ratio=2.0)]
    assert size(path).tokens == 2 * size([]).tokens


def test_a_ratio_in_a_ledger_is_held_within_what_can_be() -> None:
    path = [capacity(model="m", ratio=1e12), capacity(model="n", ratio=1e-9, window=10**30)]
    assert capacities(path) == {("p", "m"): Capacity(ratio=4.0), ("p", "n"): Capacity(ratio=0.5)}


@pytest.mark.parametrize("odd", [None, "many", True, -1, 0, float("nan"), float("inf"), [], {}])
def test_what_is_no_number_is_passed_over(odd: Any) -> None:
    assert capacities([capacity(model="m", window=odd, ratio=odd)]) == {("p", "m"): Capacity()}
