"""What goes when: triggers, cuts at turn ends, and no compaction twice that gains nothing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ConfigError
from harness.hooks import CompactionConfig, TruncateArgsConfig
from harness.hooks.compaction_plan import held_back, make_plan, token_limit, trigger
from harness.models.tokens import estimate_tokens
from harness.sessions import Entry, OpenCall, Turn, View, cut_for
from harness.sessions.view.metering import ContextSize


def said(role: str, text: str, n: int) -> dict[str, Any]:
    return {"id": f"{role}{n}", "role": role, "content": [{"type": "text", "text": text}]}


def turn(n: int, size: int = 40, *, steps: int = 0, closed: bool = True, calls: int = 0) -> Turn:
    work = []
    for step in range(steps):
        use = {"type": "toolUse", "id": f"c{n}.{step}", "name": "dig", "input": {}}
        result = {"type": "toolResult", "id": f"c{n}.{step}", "content": [{"type": "text", "text": "x" * size}]}
        work += [{"id": f"a{n}.{step}", "role": "assistant", "content": [use]}]
        work += [{"id": f"t{n}.{step}", "role": "tool", "content": [result]}]
    end = [said("assistant", "y" * size, n)] if closed else []
    waiting = tuple(OpenCall(f"w{i}", "dig", "m", f"T{n}") for i in range(calls))
    return Turn(f"T{n}", (said("user", "z" * size, n), *work, *end), closed, False, (), waiting)


def view(*turns: Turn) -> View:
    return View(turns)


def size_of(shown: View) -> ContextSize:
    return ContextSize(len(shown.messages), sum(map(estimate_tokens, shown.messages)), 1.0)


def plan(shown: View, config: CompactionConfig, limit: int | None = None, *, pressed: bool = False) -> Any:
    return make_plan(shown, config, size_of(shown), limit, pressed=pressed)


SMALL = CompactionConfig(trigger_messages=5, keep_messages=2, trigger_tokens=1000, trigger_turns=3)


@pytest.mark.parametrize(
    ("messages", "tokens", "turns", "reason"),
    [(4, 999, 2, None), (5, 999, 2, "messages"), (4, 1000, 2, "tokens"), (4, 999, 3, "turns"), (9, 2000, 9, "tokens")],
)
def test_each_limit_triggers_when_it_is_reached(messages: int, tokens: int, turns: int, reason: str | None) -> None:
    shown = view(*[turn(n) for n in range(turns)])
    assert trigger(SMALL, ContextSize(messages, tokens, 1.0), shown, token_limit(SMALL, None)) == reason


def test_zero_switches_a_trigger_off() -> None:
    off = CompactionConfig(trigger_messages=0, trigger_tokens=0, trigger_turns=0)
    shown = view(*[turn(n) for n in range(90)])
    assert trigger(off, ContextSize(10**6, 10**9, 1.0), shown, token_limit(off, None)) is None


@pytest.mark.parametrize(
    ("configured", "window", "limit"),
    [
        (80_000, None, 80_000),
        (80_000, 8_000, 6_000),
        (80_000, 200_000, 80_000),
        (0, 100_000, 90_000),
        (0, 16_000, 13_952),
    ],
)
def test_the_limit_leaves_room_for_an_answer_in_the_window(configured: int, window: int | None, limit: int) -> None:
    assert token_limit(CompactionConfig(trigger_tokens=configured), window) == limit


def test_the_open_turn_stays_whole_where_it_fits() -> None:
    shown = view(turn(1), turn(2), turn(3, steps=2, closed=False))
    made = plan(shown, SMALL, limit=10_000, pressed=True)
    assert ([gone.id for gone in made.turns], made.steps_of) == (["T1", "T2"], None)


def test_an_open_turn_that_is_too_large_alone_gives_up_its_steps() -> None:
    shown = view(turn(1), turn(2), turn(3, 4000, steps=2, closed=False))
    made = plan(shown, SMALL, limit=1000, pressed=True)
    assert ([gone.id for gone in made.gone], made.steps_of.id) == (["T1", "T2", "T3"], "T3")


@pytest.mark.parametrize("open_turn", [turn(1, 9000, closed=False), turn(1, 9000, steps=1, closed=False, calls=1)])
def test_a_turn_without_a_finished_step_is_never_taken_apart(open_turn: Turn) -> None:
    assert plan(view(open_turn), SMALL, limit=1000, pressed=True) is None


def test_steps_are_not_given_up_for_a_count_of_messages() -> None:
    assert plan(view(turn(1, 4000, steps=9, closed=False)), SMALL, limit=1000) is None


@given(
    sizes=st.lists(st.integers(0, 4), max_size=12), keep=st.integers(0, 30), last_open=st.booleans()
)  # fmt: skip
def test_by_messages_the_cut_is_the_one_of_the_session(sizes: list[int], keep: int, last_open: bool) -> None:
    turns = [turn(n, steps=size) for n, size in enumerate(sizes)]
    if last_open and turns:
        turns[-1] = turn(99, steps=sizes[-1], closed=False)
    config = CompactionConfig(trigger_messages=31, keep_messages=keep, trigger_tokens=0)
    made = plan(view(*turns), config)
    assert len(made.turns if made else ()) == cut_for(turns, keep)


@given(sizes=st.lists(st.integers(1, 2000), min_size=2, max_size=12), keep=st.integers(1, 2000))
def test_by_tokens_what_stays_fits_or_is_the_newest_turn_alone(sizes: list[int], keep: int) -> None:
    turns = [turn(n, size) for n, size in enumerate(sizes)]
    config = CompactionConfig(trigger_messages=0, keep_messages=10**6, keep_tokens=keep, trigger_tokens=10**6)
    made = plan(view(*turns), config)
    stay = turns[len(made.turns) if made else 0 :]
    tokens = sum(estimate_tokens(message) for one in stay for message in one.messages)
    assert tokens <= keep or len(stay) == 1


def end(status: str, turn_id: str, tokens: int = 1000, messages: int = 10) -> Entry:
    data = {"status": status, "tokens": tokens, "messages": messages}
    return Entry({"type": "event", "id": "e", "kind": "compaction_end", "data": data, "turnId": turn_id}, 1, 0, 1)


BOUNDARY = Entry({"type": "compaction", "id": "b", "boundary": True}, 2, 0, 1)


@pytest.mark.parametrize(
    ("lines", "size", "turn_id", "waits"),
    [
        ([end("failed", "T1")], ContextSize(10, 1000, 1.0), "T1", True),
        ([end("failed", "T1")], ContextSize(10, 1000, 1.0), "T2", False),
        ([end("useless", "T1")], ContextSize(12, 1200, 1.0), "T2", True),
        ([end("useless", "T1")], ContextSize(12, 1250, 1.0), "T2", False),
        ([end("useless", "T1")], ContextSize(13, 1000, 1.0), "T2", False),
        ([end("completed", "T1")], ContextSize(10, 1000, 1.0), "T1", False),
        ([end("failed", "T1"), BOUNDARY], ContextSize(10, 1000, 1.0), "T1", False),
        ([], ContextSize(10, 1000, 1.0), "T1", False),
    ],
)
def test_what_came_to_nothing_is_tried_again_when_something_has_changed(
    lines: list[Entry], size: ContextSize, turn_id: str, waits: bool
) -> None:
    assert held_back(lines, size, turn_id) is waits


@pytest.mark.parametrize(
    "wrong",
    [
        {"trigger_messages": 1}, {"trigger_messages": -1}, {"keep_messages": -1}, {"keep_messages": 50},
        {"trigger_tokens": 10, "keep_tokens": 10}, {"keep_tokens": -1}, {"trigger_turns": -1}, {"mode": "forget"},
        {"attempts": 0}, {"timeout": 0}, {"max_summary_tokens": 1},
    ],
)  # fmt: skip
def test_numbers_that_cannot_work_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="compaction: "):
        CompactionConfig(**wrong)


def test_truncation_that_cannot_work_is_refused() -> None:
    with pytest.raises(ConfigError, match="truncate_args: "):
        TruncateArgsConfig(max_arg_length=5)
