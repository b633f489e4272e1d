"""The numbers of turns: the same whether they are counted or taken from a boundary."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.filesystem import disk
from harness.sessions.ledger.numbering import count_turns, number_turns, openers, turns_before, whole_turns
from harness.sessions.ledger.reading import active_path, scan
from harness.sessions.lines.entries import START
from harness.sessions.tree.session_tree import SessionTree
from harness.sessions.view.turns import newest_boundary


def compactions(lines, folder):
    return [line for line in lines(folder / "s-1.log.jsonl") if line["type"] == "compaction"]


def without_turns(folder):
    """The ledger as an older version would have written it; only what is counted here is looked at."""
    ledger = folder / "s-1.log.jsonl"
    raw = ledger.read_bytes()
    for number in range(20):
        raw = raw.replace(b'"turns":%d,' % number, b"")
    ledger.write_bytes(raw)


def numbers_of(tree):
    before = turns_before(newest_boundary(tree.path()))
    return number_turns(tree.view().turns, before, openers(tree.path()))


def whole_numbers(folder):
    entries, _, _ = scan(disk.read(folder / "s-1.log.jsonl"), START)
    path = active_path(entries, damaged=True)
    return number_turns(whole_turns(path), 0, openers(path))


async def test_a_boundary_says_how_many_turns_lie_before_what_it_keeps(make_tree, talk, folder, lines):
    async with make_tree().writing() as tree:
        for number in range(1, 7):
            await talk.turn(tree, number)
            if number in (3, 5):
                turns = tree.view().turns
                tree.append_compaction("S.", turns[0].id, turns[-2].id, "m", 1)
    assert [line["turns"] for line in compactions(lines, folder)] == [2, 4]
    assert list(numbers_of(tree).values()) == [5, 6]


async def test_a_boundary_within_an_open_turn_moves_no_number(make_tree, talk, folder, lines):
    async with make_tree().writing() as tree:
        for number in (1, 2, 3):
            await talk.turn(tree, number)
        turns = tree.view().turns
        tree.append_compaction("S.", turns[0].id, turns[-1].id, "m", 1)
        tree.add_message(talk.user("long work", "u4"), via="user")
        tree.append_compaction("S.", "", "", "m", 1, keeps_open_turn=True)
    assert [line["turns"] for line in compactions(lines, folder)] == [3, 3]
    assert list(numbers_of(tree).values()) == [4]


async def test_a_boundary_behind_one_that_does_not_say_does_not_either(make_tree, talk, folder, lines):
    async with make_tree().writing() as tree:
        for number in (1, 2, 3):
            await talk.turn(tree, number)
        turns = tree.view().turns
        tree.append_compaction("S.", turns[0].id, turns[1].id, "m", 1)
    without_turns(folder)
    disk.remove(folder / "s-1.head.json")
    async with make_tree().writing() as older:
        await talk.turn(older, 4)
        older.append_compaction("S.", older.view().turns[0].id, older.view().turns[0].id, "m", 1)
    found = compactions(lines, folder)
    assert ["turns" in line for line in found] == [False, False]
    assert [count_turns(older.files, line["id"]) for line in found] == [2, 3]


async def test_a_branch_that_leaves_a_boundary_out_is_numbered_without_it(make_tree, talk, folder, lines):
    async with make_tree().writing() as tree:
        for number in (1, 2):
            await talk.turn(tree, number)
        back = tree.leaf
        await talk.turn(tree, 3)
        tree.append_compaction("S.", tree.view().turns[0].id, tree.view().turns[-1].id, "m", 1)
        await tree.branch(back)
        await talk.turn(tree, 4)
        tree.append_compaction("S.", tree.view().turns[0].id, tree.view().turns[-1].id, "m", 1)
    found = compactions(lines, folder)
    assert [line["turns"] for line in found] == [3, 3]
    assert [count_turns(tree.files, line["id"]) for line in found] == [3, 3]


async def test_what_was_said_before_the_first_directive_is_the_first_turn(make_tree, talk, folder):
    async with make_tree().writing() as tree:
        tree.add_message(talk.assistant("welcome", "a0"), via="model")
        await talk.turn(tree, 1)
    assert list(numbers_of(tree).values()) == [1, 2]
    assert numbers_of(tree) == whole_numbers(folder)


async def test_whole_turns_hold_the_steps_that_a_boundary_hides(make_tree, talk, folder):
    async with make_tree().writing() as tree:
        tree.add_message(talk.user("long work", "u1"), via="user")
        await talk.answer(tree, "", "c1", "call-1")
        tree.add_message(talk.result("r1", "call-1"), via="tool")
        tree.append_compaction("S.", "", "", "m", 1, keeps_open_turn=True)
        await talk.answer(tree, "done", "a1")
    assert [message["id"] for message in tree.view().turns[0].messages] == ["u1", "a1"]
    entries, _, _ = scan(disk.read(folder / "s-1.log.jsonl"), START)
    assert [message["id"] for message in whole_turns(entries)[0].messages] == ["u1", "c1", "r1", "a1"]


async def test_a_line_that_is_not_there_counts_nothing(make_tree, talk):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 1)
    assert count_turns(tree.files, "no such line") == 0


@pytest.mark.parametrize("value", [None, True, -1, "3", 2.0])
async def test_what_is_no_count_is_not_believed(make_tree, talk, value):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 1)
        tree.append_compaction("S.", tree.turn, tree.turn, "m", 1)
        boundary = newest_boundary(tree.path())
        boundary.data["turns"] = value
        assert turns_before(boundary) is None


@settings(max_examples=40)
@given(story=st.lists(st.sampled_from(["turn", "open", "compact", "all", "shorten", "cold", "branch"]), max_size=14))
def test_numbers_from_boundaries_are_those_that_counting_gives(tmp_path_factory, talk, story):
    asyncio.run(_play(tmp_path_factory.mktemp("story"), talk, story))


async def _play(folder, talk, story):
    tree = SessionTree(folder, "s-1", agent="a", namespace=("t",))
    await tree.lock()
    ends = []
    for number, step in enumerate(story):
        turns = tree.view().turns
        if step == "turn":
            await talk.turn(tree, number)
            ends.append(tree.leaf)
        elif step == "open":
            tree.add_message(talk.user("and", f"u{number}"), via="user")
        elif step == "cold":
            await tree.release()
            tree = SessionTree(folder, "s-1", agent="a", namespace=("t",))
            await tree.lock()
        elif step == "branch" and ends:
            await tree.branch(ends[number % len(ends)])
        elif step == "shorten" and tree.view().open_turn:
            tree.append_compaction("S.", "", "", "m", 1, keeps_open_turn=True)
        elif step in ("compact", "all") and turns and turns[-1].closed:
            tree.append_compaction("S.", turns[0].id, turns[-1 if step == "all" else 0].id, "m", 1)
    await tree.release()
    if story:
        seen, whole = numbers_of(tree), whole_numbers(folder) if tree.count else {}
        assert {turn: whole.get(turn) for turn in seen} == seen
