"""Sessions that are trees: a damaged line costs itself, and nothing that stands in front of it."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from follower import Follower, told_anew
from growing import KINDS

from harness.filesystem import disk
from harness.transcripts import Page, join, page, read, regions

TREES = ["harness", "openclaw", "pi", "vak"]
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "its end is missing": lambda raw: raw[: len(raw) // 2],
    "its beginning is missing": lambda raw: raw[len(raw) // 2 :],
    "its first bytes were overwritten": lambda raw: b"\0" * 120 + raw[120:],
    "only its name is left": lambda raw: raw[:60],
    "it is gone": lambda raw: b"",
}


def damaged(path: Path, damage: str, *numbers: int) -> None:
    lines = path.read_bytes().split(b"\n")
    for number in numbers:
        lines[number] = DAMAGES[damage](lines[number])
    path.write_bytes(b"\n".join(lines))


def backwards(path: Path, window: int = 4096) -> list[Page]:
    pages = [page(path, window=window)]
    while (cursor := pages[-1].before) is not None:
        pages.append(page(path, where="before", cursor=cursor, window=window))
    return pages[::-1]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", TREES)
def test_a_damaged_line_leaves_nothing_but_itself_out(tmp_path: Path, kind: str, damage: str) -> None:
    session = KINDS[kind](tmp_path)
    session.say(6)
    whole = session.path.read_bytes()
    said = {turn.text for turn in read(session.path).turns if turn.kind in ("prompt", "answer")}

    for number in range(1, whole.count(b"\n"), 2):
        session.path.write_bytes(whole)
        damaged(session.path, damage, number)
        found = read(session.path)
        assert [turn.key for turn in found.turns if turn.aside] == []
        assert len(said - {turn.text for turn in found.turns}) <= 1, number
        assert found.head.abandoned == 0


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", TREES)
def test_each_page_shows_what_stands_in_front_of_damage_as_the_whole_does(
    tmp_path: Path, kind: str, damage: str
) -> None:
    session = KINDS[kind](tmp_path)
    session.say(30)
    count = session.path.read_bytes().count(b"\n")
    damaged(session.path, damage, count // 3, count // 2, count // 2 + 1, count - 6)

    whole, pages = read(session.path, cap=20_000), backwards(session.path)

    assert len(pages) > 5
    assert join(pages) == whole.turns
    assert join(pages[2:]) == tuple(turn._replace(line=0) for turn in whole.turns if turn.offset >= pages[2].start)
    assert [turn.key for one in pages for turn in one.turns] == [turn.key for turn in whole.turns]
    assert {turn.aside for one in pages for turn in one.turns} == {None}


def entry(key: str, parent: str | None, words: str = "") -> dict[str, Any]:
    message = {"role": "user", "content": words or f"say {key}"}
    return {
        "type": "message",
        "id": key,
        "parentId": parent,
        "timestamp": "2026-03-01T09:00:00.000Z",
        "message": message,
    }


def write(path: Path, *lines: Any) -> Path:
    raw = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    header = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-03-01T09:00:00.000Z", "cwd": "/srv"}
    path.write_bytes(b"".join(line + b"\n" for line in [json.dumps(header).encode(), *raw]))
    return path


def shown(path: Path) -> tuple[list[str], list[str]]:
    """What is said on the active path, and what was left."""
    turns = read(path).turns
    assert join(backwards(path)) == read(path, cap=20_000).turns
    return [t.text[4:] for t in turns if t.aside is None], [t.text[4:] for t in turns if t.aside]


TORN = json.dumps(entry("c", "a")).encode()[:-40]


def test_a_branch_that_was_left_stays_left_where_the_damaged_line_still_names_its_parent(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", entry("a", None), entry("b", "a"), TORN, entry("d", "c"))

    assert shown(path) == (["a", "d"], ["b"])


def test_a_person_who_went_back_to_a_damaged_line_left_only_what_came_between(tmp_path: Path) -> None:
    lines = [entry("a", None), entry("b", "a"), {"id": "c"}, entry("d", "c"), entry("e", "d"), entry("f", "c")]
    path = write(tmp_path / "s.jsonl", *lines[:2], b'{"torn', *lines[3:])

    assert shown(path) == (["a", "b", "f"], ["d", "e"])


def test_who_went_back_to_the_end_of_a_branch_that_is_damaged_went_back_to_that_branch(tmp_path: Path) -> None:
    torn = json.dumps(entry("c", "b")).encode()[:-40]
    path = write(
        tmp_path / "s.jsonl", entry("a", None), entry("b", "a"), torn, entry("d", "a"), entry("e", "d"), entry("f", "c")
    )

    assert shown(path) == (["a", "b", "f"], ["d", "e"])


def test_a_parent_that_stands_further_on_in_the_file_is_none_that_is_missing(tmp_path: Path) -> None:
    path = write(
        tmp_path / "s.jsonl", entry("a", None), entry("x", "a"), entry("c", "b"), entry("b", "a"), entry("d", "c")
    )

    assert shown(path) == (["a", "c", "b", "d"], ["x"])
    assert read(path).warnings == ()


def test_a_line_whose_parent_is_missing_is_told_of_with_its_place(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", entry("a", None), b'{"torn', entry("c", "b"))

    assert [(found.kind, found.line) for found in read(path).warnings] == [("bad_line", 3), ("missing_entry", 4)]


def test_a_session_whose_first_line_follows_another_file_is_whole(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", entry("a", "elsewhere"), entry("b", "a"))

    assert shown(path) == (["a", "b"], [])
    assert read(path).warnings == ()


def test_lines_that_follow_each_other_in_a_ring_end(tmp_path: Path) -> None:
    path = write(
        tmp_path / "s.jsonl", entry("a", "b"), entry("b", "a"), b'{"id":"x","parentId":"x","message":{', entry("c", "x")
    )

    assert shown(path)[0][-1] == "c"


def test_many_lines_without_a_parent_are_read_in_proportion_to_their_number(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", *(entry(f"e{n}", f"gone{n}") for n in range(3000)))

    found = read(path)

    assert {turn.aside for turn in found.turns} == {None}
    assert sum(one.kind == "missing_entry" for one in found.warnings) == 2999


def test_a_branch_point_far_in_front_of_a_page_is_none_that_is_missing(tmp_path: Path) -> None:
    left = [entry(f"l{n}", f"l{n - 1}" if n else "a", "say left" + "x" * 300) for n in range(60)]
    back = [entry(f"n{n}", f"n{n - 1}" if n else "a", "say new" + "x" * 300) for n in range(60)]
    path = write(tmp_path / "s.jsonl", entry("a", None), *left, *back)

    pages = backwards(path)

    assert len(pages) > 5
    asides = {turn.text[4:7]: turn.aside for one in pages for turn in one.turns}
    assert asides == {"a": None, "lef": "abandoned", "new": None}
    assert {warning.kind for one in pages for warning in one.warnings} == set()


LINES = st.lists(
    st.tuples(
        st.one_of(st.just(1), st.integers(1, 8)),  # how far in front the parent stands, mostly right there
        st.integers(0, 900),
        st.sampled_from([None, None, None, None, *DAMAGES]),
    ),
    min_size=2,
    max_size=40,
)


@settings(max_examples=60)
@given(LINES)
def test_pages_show_any_damaged_tree_as_the_whole_does(
    tmp_path: Path, lines: list[tuple[int, int, str | None]]
) -> None:
    raw = [json.dumps(entry("e0", None)).encode()]
    for number, (back, size, damage) in enumerate(lines, 1):
        line = json.dumps(entry(f"e{number}", f"e{max(0, number - back)}", "x" * size)).encode()
        raw.append(DAMAGES[damage](line) if damage else line)
    path = write(tmp_path / "any.jsonl", *raw)
    whole, pages = read(path, cap=20_000).turns, backwards(path)

    assert join(pages) == whole
    for number, first in enumerate(pages[1:], 1):
        rest = [turn._replace(line=0) for turn in whole if turn.offset >= first.start]
        assert list(join(pages[number:])) == rest
    assert [(turn.key, turn.aside) for one in pages for turn in one.turns] == [(turn.key, turn.aside) for turn in whole]


@settings(max_examples=60)
@given(LINES, st.integers(1, 4))
def test_any_damaged_tree_that_grows_is_followed_to_what_it_is(
    tmp_path: Path, lines: list[tuple[int, int, str | None]], step: int
) -> None:
    path = write(tmp_path / "any.jsonl", entry("e0", None))
    follower = Follower(path, 4096)
    for number, (back, size, damage) in enumerate(lines, 1):
        said = entry(f"e{number}", f"e{max(0, number - back)}", "x" * size)
        said["message"]["role"] = "assistant" if size % 3 else "user"
        line = json.dumps(said).encode()
        with path.open("ab") as end:
            end.write((DAMAGES[damage](line) if damage else line) + b"\n")
        if number % step == 0:
            follower.look()
    follower.look()

    told = {key: turn._replace(line=0) for key, turn in told_anew(path, follower.start).items()}
    assert {key: turn._replace(line=0) for key, turn in follower.turns.items()} == told


def test_an_answer_far_in_front_is_the_last_word_again_when_all_behind_it_was_left(tmp_path: Path) -> None:
    answers = [entry("a", "q", "Early."), entry("b", "m9", "Late.")]
    for answer in answers:
        answer["message"]["role"] = "assistant"
    told = {"type": "compaction", "summary": "x" * 900}
    between = [{**entry(f"m{n}", f"m{n - 1}" if n else "a"), **told} for n in range(10)]
    path = write(tmp_path / "s.jsonl", entry("q", None), answers[0], *between, answers[1])
    follower = Follower(path, 4096)
    follower.turns |= told_anew(path)  # they have gone through the pages in front
    with path.open("ab") as end:
        end.write(json.dumps({**entry("label", "m8"), "type": "label"}).encode() + b"\n")
    follower.look()

    anew = told_anew(path)
    assert {key: (turn.final, turn.aside) for key, turn in follower.turns.items()} == {
        key: (turn.final, turn.aside) for key, turn in anew.items()
    }


def test_however_many_parents_are_missing_a_page_looks_through_so_many_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    real = disk.read

    def counted(path: Path, offset: int = 0, size: int | None = None) -> bytes:
        raw = real(path, offset, size)
        sizes.append(len(raw))
        return raw

    front = [entry(f"e{n}", f"e{n - 1}" if n else None, "x" * 4000) for n in range(500)]
    path = write(tmp_path / "s.jsonl", *front, *(entry(f"f{n}", f"gone{n}") for n in range(300)))
    monkeypatch.setattr(regions, "_REACH", 4 * 1024 * 1024)
    monkeypatch.setattr(regions, "_ALL", 8 * 1024 * 1024)
    monkeypatch.setattr(disk, "read", counted)

    shown = page(path, window=64 * 1024)

    assert len(shown.turns) > 200
    assert {turn.aside for turn in shown.turns} == {None}
    assert sum(sizes) < 16 * 1024 * 1024
