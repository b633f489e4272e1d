"""Full, card or packet: within the room, in steps, and the same for the same numbers."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harness
from harness.errors import ConfigError
from harness.hooks import WorkingSet
from harness.hooks.planner import Candidate, Plan, Room, content_words, make_plan, refers_back
from harness.sessions.view.cards import CARDS_FRAME

NONE: frozenset[str] = frozenset()


def turns(count: int, *, full: int = 1000, card: int = 40, first: int = 1, **words: str) -> list[Candidate]:
    """Turns of one size; `t7="launch code"` gives turn 7 these words."""
    said = {int(name[1:]): frozenset(text.split()) for name, text in words.items()}
    return [Candidate(f"T{n}", n, full, card, said.get(n, NONE)) for n in range(first, first + count)]


def plan(candidates: Sequence[Candidate], asked: str = "", *, back: bool = False, **room: int) -> Plan:
    return make_plan(candidates, frozenset(asked.split()), back, Room(**{"tokens": 100_000, **room}))


def room_for(cards: int) -> dict[str, int]:
    """A room for nothing but so many cards of 40 tokens and a packet."""
    return {"tokens": 1 + CARDS_FRAME + 40 * cards, "full_tokens": 0, "packet_tokens": 1}


def test_no_turns_give_an_empty_plan() -> None:
    assert plan([]) == Plan()


def test_all_turns_are_full_where_they_fit() -> None:
    assert plan(turns(12)) == Plan(recent=(1, 12), spent=12_000)


def test_full_turns_have_a_cap_however_much_room_there_is() -> None:
    made = plan(turns(13), tokens=10**6)
    assert made == Plan(recent=(5, 13), cards=(1, 4), spent=9 * 1000 + CARDS_FRAME + 4 * 40)


def test_full_turns_take_at_most_half_the_room_once_not_all_fit() -> None:
    made = plan(turns(10), tokens=9000)
    assert made == Plan(recent=(7, 10), cards=(1, 6), spent=4000 + CARDS_FRAME + 6 * 40)


def test_a_relevant_turn_a_hundred_turns_back_is_fetched_and_keeps_its_card() -> None:
    made = plan(turns(120, t20="launch code zephyr"), "launch code zephyr")
    assert made.full == (20,)
    assert made.cards == (1, made.recent[0] - 1) if made.recent else False


def test_a_turn_is_fetched_for_half_of_the_words_and_not_for_fewer() -> None:
    assert plan(turns(40, t3="launch code"), "launch code zephyr mission").full == (3,)
    assert plan(turns(40, t3="launch"), "launch code zephyr mission crew fuel orbit pad stage").full == ()


def test_rare_words_count_for_more_than_those_that_are_everywhere() -> None:
    common = {f"t{n}": "report" for n in range(1, 41)} | {"t4": "zephyr"}
    assert plan(turns(40, **common), "zephyr report").full == (4,)


def test_nothing_is_fetched_for_unrelated_words() -> None:
    assert plan(turns(40, t3="launch code"), "bake bread").full == ()


def test_of_equally_relevant_turns_the_newer_ones_are_fetched_up_to_the_cap() -> None:
    words = {f"t{n}": "launch" for n in range(1, 41)}
    made = plan(turns(100, **words), "launch")
    assert made.full == tuple(range(30, 41))
    assert made.recent == (100, 100)


def test_a_better_match_goes_before_a_newer_one() -> None:
    words = {"t3": "launch code", **{f"t{n}": "launch" for n in range(5, 41)}}
    assert 3 in plan(turns(60, **words), "launch code").full


def test_what_does_not_fit_is_skipped_and_the_next_one_taken() -> None:
    made = turns(40, t3="launch", t9="launch")
    made[8] = replace(made[8], full=50_000)
    assert plan(made, "launch").full == (3,)


def test_the_newest_turn_keeps_its_place_beside_fetched_ones() -> None:
    words = {f"t{n}": "launch" for n in range(1, 41)}
    made = plan(turns(60, **words), "launch", full_tokens=2000)
    assert (made.full, made.recent) == ((40,), (60, 60))


def test_pointing_back_brings_the_newest_turn_even_where_it_takes_all_there_is() -> None:
    made = [*turns(40, t7="launch"), Candidate("T41", 41, 11_500, 40)]
    assert plan(made, "launch").full == (7,)
    assert plan(made, "launch", back=True) == plan(made, "", back=True)
    assert plan(made, "launch", back=True).recent == (41, 41)


def test_a_fetched_turn_among_the_recent_ones_is_not_charged_twice() -> None:
    made = plan(turns(20, t19="launch"), "launch", tokens=9000)
    assert (made.full, made.recent, made.spent) == ((), (17, 20), 4000 + CARDS_FRAME + 16 * 40)


def test_the_first_recent_turn_moves_in_steps() -> None:
    starts = [made.recent[0] for n in range(40, 60) if (made := plan(turns(n), full_tokens=10_500)).recent]
    assert starts == [33, 33, 33, 37, 37, 37, 37, 41, 41, 41, 41, 45, 45, 45, 45, 49, 49, 49, 49, 53]


def test_the_end_of_the_packet_holds_still_for_eight_turns() -> None:
    ends = {n: plan(turns(n), **room_for(20)).packet_end for n in range(20, 38)}
    assert ends == {20: None, **dict.fromkeys(range(21, 29), 8), **dict.fromkeys(range(29, 37), 16), 37: 24}


def test_where_the_packet_ends_does_not_depend_on_what_was_asked() -> None:
    words = {f"t{n}": "launch" for n in range(1, 200, 3)}
    made = [Candidate(each.id, each.number, 100 + each.number % 7 * 90, 40, each.words) for each in turns(200, **words)]
    ends = {plan(made, asked, back=back, tokens=6000).packet_end for asked in ("", "launch") for back in (True, False)}
    assert ends == {160}


def test_short_turns_leave_the_room_for_cards_to_the_turns_before_them() -> None:
    made = plan(turns(200, full=50, card=45), tokens=5000)
    assert made == Plan(
        recent=(153, 200), cards=(129, 152), packet_end=128, spent=48 * 50 + CARDS_FRAME + 24 * 45 + 1200
    )


def test_cards_of_turns_that_fetched_ones_displace_move_the_packet_on_by_a_batch() -> None:
    made = turns(200, full=50, card=45, t3="launch")
    made[2] = replace(made[2], full=2000)
    result = plan(made, "launch", tokens=5000)
    assert (result.full, result.recent, result.packet_end) == ((3,), (193, 200), 168)


def test_turns_before_the_first_candidate_are_behind_a_packet_even_if_all_others_fit() -> None:
    assert plan(turns(5, first=14)) == Plan(recent=(14, 18), packet_end=13, spent=5000 + 1200)


def test_a_batch_can_have_another_size() -> None:
    made = plan(turns(100), **room_for(20), batch=16)
    assert (made.packet_end, made.cards) == (80, (81, 100))


def test_a_packet_needs_no_batch_where_cards_for_the_rest_do_not_fit() -> None:
    assert plan(turns(13), **room_for(4)) == Plan(packet_end=13, spent=1)


def test_with_room_for_a_few_cards_the_packet_still_ends_at_a_batch() -> None:
    made = plan(turns(14), **room_for(6))
    assert (made.packet_end, made.cards) == (8, (9, 14))


@pytest.mark.parametrize("tokens", [-5000, 0, 1199])
def test_without_room_for_the_packet_nothing_is_shown(tokens: int) -> None:
    assert plan(turns(13, card=200), tokens=tokens) == Plan()


def test_with_room_for_the_packet_alone_everything_is_behind_it() -> None:
    assert plan(turns(13, card=200), tokens=1200) == Plan(packet_end=13, spent=1200)


sizes = st.integers(0, 3000)
words = st.frozensets(st.sampled_from(["launch", "code", "zephyr", "bread"]), max_size=3)
rooms = st.builds(
    Room, st.integers(-100, 20_000), st.integers(0, 12_000), st.integers(0, 2000), st.sampled_from([1, 2, 3, 8, 16])
)


@st.composite
def conversations(draw: st.DrawFn) -> list[Candidate]:
    first = draw(st.integers(1, 40))
    made = draw(st.lists(st.tuples(sizes, st.integers(1, 200), words), min_size=1, max_size=60))
    return [Candidate(f"T{n}", n, full, card, said) for n, (full, card, said) in enumerate(made, first)]


@given(conversations(), words, st.booleans(), rooms)
def test_a_plan_is_within_the_room_and_names_every_turn_once(
    made: list[Candidate], asked: frozenset[str], back: bool, room: Room
) -> None:
    result = make_plan(made, asked, back, room)
    assert 0 <= result.spent <= max(room.tokens, 0)
    if result == Plan():
        assert room.packet_tokens > room.tokens
        return
    shown = {number for part in (result.cards, result.recent) if part for number in range(part[0], part[1] + 1)}
    behind = set(range(1, (result.packet_end or 0) + 1))
    assert shown | behind == set(range(1, made[-1].number + 1))
    assert not shown & behind
    assert not (result.cards and result.recent and result.cards[1] + 1 != result.recent[0])
    assert all(number < (result.recent[0] if result.recent else math.inf) for number in result.full)


@given(conversations(), words, st.booleans(), rooms)
def test_what_is_charged_is_what_is_shown(made: list[Candidate], asked: frozenset[str], back: bool, room: Room) -> None:
    result = make_plan(made, asked, back, room)
    recent, cards = result.recent or (1, 0), result.cards or (1, 0)
    full = [turn.full for turn in made if turn.number in result.full or recent[0] <= turn.number <= recent[1]]
    lines = [turn.card for turn in made if cards[0] <= turn.number <= cards[1]]
    packet = room.packet_tokens if result.packet_end else 0
    assert result.spent == sum(full) + (CARDS_FRAME + sum(lines) if lines else 0) + packet
    assert sum(full) <= room.full_tokens


@given(conversations(), st.lists(st.sampled_from(["launch", "code", "zephyr", "x", "y", "z"])), rooms)
def test_the_same_arguments_in_any_order_give_the_same_plan(
    made: list[Candidate], asked: list[str], room: Room
) -> None:
    assert make_plan(made, asked, False, room) == make_plan(list(made), frozenset(reversed(asked)), False, room)


def grown(made: Sequence[Candidate], asked: frozenset[str], tokens: int) -> list[int]:
    """Where the packet ends turn by turn, as a conversation grows."""
    small = [
        replace(turn, number=index, full=turn.full % 500, card=turn.card % 60) for index, turn in enumerate(made, 1)
    ]
    return [make_plan(small[:count], asked, False, Room(tokens)).packet_end or 0 for count in range(1, len(small) + 1)]


@given(conversations(), words, st.integers(4000, 20_000))
def test_where_a_batch_of_cards_fits_the_packet_ends_at_a_batch(
    made: list[Candidate], asked: frozenset[str], tokens: int
) -> None:
    assert all(end % 8 == 0 for end in grown(made, asked, tokens))


@given(conversations(), st.integers(4000, 20_000))
def test_the_packet_only_grows_as_turns_come(made: list[Candidate], tokens: int) -> None:
    ends = grown(made, NONE, tokens)
    assert ends == sorted(ends)


@settings(max_examples=30)
@given(st.integers(20, 400), st.integers(20, 60), st.integers(3600, 6000))
def test_from_one_packet_to_the_next_the_end_holds_still_for_eight_turns(full: int, card: int, tokens: int) -> None:
    made = turns(180, full=full, card=card)
    ends = [plan(made[:count], tokens=tokens).packet_end for count in range(1, 181)]
    moves = [count for count in range(1, 180) if ends[count] != ends[count - 1]]
    assert all(later - earlier == 8 for earlier, later in pairwise(moves[1:]))


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("do it again", True), ("AND THE PREVIOUS ONE?", True), ("what's that?", True), ("Et ça ?", True),
        ("继续吧", True), ("さっきの件ですが", True), ("а дальше?", True),
        ("iterate over thatch", False), ("tell me about rust", False), ("", False),
    ],
)  # fmt: skip
def test_a_directive_points_back_by_whole_words(text: str, points: bool) -> None:
    assert refers_back(text) is points


def test_other_phrases_can_be_given() -> None:
    assert refers_back("Likewise, please!", ("likewise",))
    assert not refers_back("do it again", ("likewise", ""))


def test_content_words_are_those_that_say_what_it_is_about() -> None:
    assert content_words("What was the launch code of project Zephyr?") == {"launch", "code", "project", "zephyr"}
    assert content_words("What was the launch code?", without=()) == {"what", "was", "the", "launch", "code"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"max_full_tokens": -1}, "working_set: max_full_tokens is -1; it must be 0 or more"),
        ({"batch": 0}, "working_set: batch is 0; it must be 1 or more"),
        ({"checkpoint_turns": 7}, "working_set: checkpoint_turns is 7; it must be 8 or more"),
        ({"max_boundaries": 0}, "working_set: max_boundaries is 0; it must be 1 or more"),
        ({"max_packet_tokens": 49}, "working_set: max_packet_tokens is 49; it must be 50 or more"),
        ({"attempts": 0}, "working_set: attempts is 0; it must be 1 or more"),
        ({"timeout": 0}, "working_set: timeout is 0; it must be above 0 seconds"),
        ({"packet_prompt": " "}, "working_set: packet_prompt is empty; leave it out to use the one that is built in"),
        ({"references": "that"}, "working_set: references is one text; give a tuple of words and phrases"),
    ],
)
def test_a_working_set_that_cannot_work_is_refused_by_name(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        WorkingSet(**options)
    assert str(caught.value) == says


def test_the_defaults_of_a_working_set_agree_with_the_planner() -> None:
    config = WorkingSet()
    assert (config.max_full_tokens, config.batch) == (Room(0).full_tokens, Room(0).batch)
    assert harness.WorkingSet is WorkingSet
