"""Ids become names in one way: portable, short, and never the same for two."""

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.errors import InvalidId
from harness.ids import check_id, decode_name, encode_name, join_names, new_id, new_session_id, timestamp

IDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(str.strip)
# The characters that collide most easily once encoded, so that equal names would be found.
TRICKY = st.text("aA.%+_-@25efE\u0301\u00e9 /", min_size=1, max_size=8).filter(str.strip)
NAME = re.compile(r"[a-z0-9@%][a-z0-9@%_-]*")
DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))}


@given(IDS)
@example("con")
@example("用" * 86)
def test_a_name_is_portable_and_short(value: str) -> None:
    name = encode_name(value)

    assert NAME.fullmatch(name)
    assert len(name) <= 180
    assert name not in DEVICES


@given(st.one_of(IDS, TRICKY))
@example("%41")
@example("com1")
def test_the_id_comes_back_from_its_name(value: str) -> None:
    name = encode_name(value)

    assert decode_name(name) == (None if "%%" in name else value)


@given(TRICKY, TRICKY)
@example("a", "A")
@example("é", "e\u0301")
@example("con", "%63on")
@example("a.log", "a")
def test_two_ids_have_two_names(one: str, other: str) -> None:
    assert (encode_name(one) == encode_name(other)) is (one == other)


@given(st.lists(TRICKY, max_size=3), st.lists(TRICKY, max_size=3))
@example([], ["_"])
@example(["a+b"], ["a", "b"])
def test_two_namespaces_have_two_names(one: list[str], other: list[str]) -> None:
    assert (join_names(tuple(one)) == join_names(tuple(other))) is (one == other)


@given(st.text("ab", min_size=181, max_size=400), st.text("ab", min_size=181, max_size=400))
def test_two_long_ids_have_two_names(one: str, other: str) -> None:
    assert (encode_name(one) == encode_name(other)) is (one == other)


def test_a_long_id_keeps_its_beginning_and_gets_a_digest() -> None:
    assert encode_name("x" * 181) == "x" * 120 + "%%dc31ed5afb940294fdd687c69bbba2ae"
    assert encode_name("x" * 180) == "x" * 180


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("alice", "alice"),
        ("Alice", "%41lice"),
        ("a.log", "a%2elog"),
        ("..", "%2e%2e"),
        ("-rf", "%2drf"),
        ("_", "%5f"),
        ("con", "%63on"),
        ("CON", "%43%4f%4e"),
        ("a b", "a%20b"),
        ("é", "%c3%a9"),
        ("a@b-c_d", "a@b-c_d"),
        ("a/../../b", "a%2f%2e%2e%2f%2e%2e%2fb"),
    ],
)
def test_names_are_these(value: str, name: str) -> None:
    assert encode_name(value) == name


@pytest.mark.parametrize("value", ["", " ", "\t\n", "a\0b", "a\ud800", "x" * 4097, "用" * 1366, 7, None, b"a"])
def test_what_cannot_be_an_id_is_refused_by_kind(value: object) -> None:
    with pytest.raises(InvalidId, match="user_id"):
        check_id("user_id", value)


@pytest.mark.parametrize(
    "name", ["A", "%2E", "%61", "a.log", "..", "con", "%ff", "%", "", "x" * 181, "a" * 120 + "%%" + "0" * 32]
)
def test_a_name_that_is_none_of_ours_has_no_id(name: str) -> None:
    assert decode_name(name) is None


def test_every_hostile_id_is_refused_or_one_plain_name(shared: Path) -> None:
    cases = json.loads((shared / "cases" / "B05" / "ids.json").read_text())
    names = []
    for case in cases:
        try:
            names.append(encode_name(case["id"]))
        except InvalidId:
            assert case["class"] == "hostile"
    assert all(NAME.fullmatch(name) for name in names)
    assert len({name.casefold() for name in names}) == len(names)


def test_every_awkward_name_becomes_one_that_every_disk_takes(shared: Path) -> None:
    cases = json.loads((shared / "cases" / "B58" / "names.json").read_text())
    for case in cases:
        if case["utf8_bytes"] > 4096:
            with pytest.raises(InvalidId):
                encode_name(case["id"])
            continue
        name = encode_name(case["id"])
        assert len(f"{name}.log.jsonl.damaged-20260102T030405Z-abcd") <= 255
        assert NAME.fullmatch(name)
        assert name.split("%2e")[0] not in DEVICES or "%2e" in name


def test_later_ids_sort_behind_earlier_ones() -> None:
    made = [new_id() for _ in range(5000)]

    assert made == sorted(set(made))
    assert all(
        re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", one) for one in made
    )


def test_a_new_session_says_when() -> None:
    assert re.fullmatch(r"session-\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d-[0-9a-f]{8}", new_session_id())


def test_times_are_utc_with_six_decimals() -> None:
    moment = datetime(2026, 1, 2, 5, 4, 5, 678, timezone(timedelta(hours=2)))

    assert timestamp(moment) == "2026-01-02T03:04:05.000678Z"
    assert timestamp(datetime(2026, 1, 2, tzinfo=UTC)) == "2026-01-02T00:00:00.000000Z"


def test_ids_made_by_many_threads_at_once_are_all_different() -> None:
    with ThreadPoolExecutor(8) as pool:
        made = [one for ids in pool.map(lambda _: [new_id() for _ in range(500)], range(16)) for one in ids]

    assert len({*made}) == len({one[19:] for one in made}) == 8000


def test_a_forked_child_makes_other_ids_than_its_parent() -> None:
    new_id()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, " ".join(new_id() for _ in range(100)).encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as pipe:
        theirs = pipe.read().split()
    os.waitpid(child, 0)

    assert len(theirs) == 100
    # Where both look at the clock at the same moment, the end alone tells them apart.
    assert not {one[19:] for one in theirs} & {new_id()[19:] for _ in range(100)}
