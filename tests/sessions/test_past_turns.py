"""Past turns: the same in every process, bounded in what is read, and shown again from their own lines."""

import re

import pytest

from harness.filesystem import disk
from harness.sessions.ledger.reading import active_path, scan
from harness.sessions.lines.entries import START
from harness.sessions.selection.packets import Packet, packet_data, packet_message, packet_of
from harness.sessions.selection.sections import numbered_sections
from harness.sessions.selection.selecting import Closed
from harness.sessions.tree.past_turns import PastTurns
from harness.sessions.view.cards import cards_message


async def talked(tree, talk, numbers):
    for number in numbers:
        await talk.turn(tree, number)


def bound(tree, keep, **options):
    """A boundary that keeps so many closed turns."""
    turns = tree.view().turns
    return tree.append_compaction("S.", turns[0].id, turns[-1 - keep].id, "m", 1, **options)


async def past_of(tree, most=8):
    past = PastTurns()
    await past.refresh(tree, most)
    return past


def entries_of(tree):
    return scan(disk.read(tree.files.ledger), START)[0]


async def test_the_last_turn_is_no_past_turn_and_the_others_are_numbered_from_one(make_tree, talk):
    async with make_tree().writing() as tree:
        await talked(tree, talk, range(1, 5))
        past = await past_of(tree)
    assert [turn.number for turn in past.turns] == [1, 2, 3]
    assert [turn.id for turn in past.turns] == [turn.id for turn in tree.view().turns[:3]]
    assert past.turns[0].line.startswith("#1 asked: ")


async def test_one_that_followed_all_along_knows_what_a_new_process_finds(make_tree, talk):
    followed = PastTurns()
    async with make_tree().writing() as tree:
        for number in range(1, 21):
            await talk.turn(tree, number)
            await followed.refresh(tree, 2)
            if number % 4 == 0:
                bound(tree, 2)
                await followed.refresh(tree, 2)
                tree.add("event", {"kind": "packet", "data": packet_data(None, None, number - 3, f"P{number}", None)})
            await tree.commit()
            await followed.refresh(tree, 2)
    cold = make_tree()
    await cold.load()
    fresh = await past_of(cold, 2)
    assert fresh.turns == followed.turns
    assert fresh.packets == followed.packets
    assert [turn.number for turn in fresh.turns] == [*range(11, 20)]


@pytest.mark.parametrize("boundaries", [1, 2])
async def test_one_that_looked_away_for_a_while_knows_what_a_new_process_finds(make_tree, talk, boundaries):
    looked_away = PastTurns()
    async with make_tree().writing() as tree:
        await talked(tree, talk, range(1, 9))
        await looked_away.refresh(tree, 2)
        for _ in range(boundaries):
            await talked(tree, talk, range(tree.count + 100, tree.count + 103))
            bound(tree, 6)
        await talked(tree, talk, [200])
        await tree.commit()
        await looked_away.refresh(tree, 2)
    cold = make_tree()
    await cold.load()
    fresh = await past_of(cold, 2)
    assert fresh.turns == looked_away.turns
    assert [turn.number for turn in fresh.turns] == [*range(1, 9 + 3 * boundaries)]


async def test_no_more_boundaries_are_looked_behind_than_was_said(make_tree, talk, monkeypatch):
    async with make_tree().writing() as tree:
        for number in range(1, 41):
            await talk.turn(tree, number)
            if number % 4 == 0:
                bound(tree, 1)
    cold = make_tree()
    await cold.load()
    read: list[int] = []

    def counted(path, start=0, length=-1):
        data = whole(path, start, length)
        read.append(len(data))
        return data

    whole = disk.read
    monkeypatch.setattr("harness.sessions.tree.past_turns.disk.read", counted)
    past = await past_of(cold, 2)
    assert past.turns[0].number == 32
    assert sum(read) == cold.boundary.offset - past.turns[0].start.offset
    assert sum(read) < cold.bytes / 3


async def test_a_past_turn_is_read_back_as_it_was_in_memory(make_tree, talk):
    async with make_tree().writing() as tree:
        await talked(tree, talk, range(1, 9))
        warm = await past_of(tree)
        before = await warm.records(tree, [turn.id for turn in warm.turns])
        bound(tree, 2)
    cold = make_tree()
    await cold.load()
    past = await past_of(cold)
    assert await past.records(cold, [turn.id for turn in past.turns]) == before
    assert len(before) == 7


async def test_steps_that_a_boundary_took_from_an_open_turn_are_there_when_it_is_past(make_tree, talk):
    async with make_tree().writing() as tree:
        tree.add_message(talk.user("long work", "u1"), via="user")
        await talk.answer(tree, "", "a1", "call-1")
        tree.add_message(talk.result("r1", "call-1"), via="tool")
        tree.append_compaction("S.", tree.turn, "", "m", 1, keeps_open_turn=True)
        await talk.answer(tree, "done", "a2")
        await talk.turn(tree, 2)
        past = await past_of(tree)
        [turn] = past.turns
        records = await past.records(tree, [turn.id])
    assert turn.number == 1
    assert [message["role"] for message in records[turn.id]] == ["user", "assistant", "tool", "assistant"]


async def test_after_a_branch_the_turns_of_the_left_way_are_gone(make_tree, talk):
    past = PastTurns()
    async with make_tree().writing() as tree:
        await talked(tree, talk, range(1, 5))
        end = tree.path()[-1].id
        await talked(tree, talk, range(5, 9))
        bound(tree, 1)
        await tree.commit()
        await past.refresh(tree, 8)
        assert [turn.number for turn in past.turns] == [1, 2, 3, 4, 5, 6, 7]
        await tree.branch(end)
        await talked(tree, talk, [101, 102])
        await past.refresh(tree, 8)
    assert [turn.number for turn in past.turns] == [1, 2, 3, 4, 5]
    assert "101" in past.turns[-1].line


async def test_a_summary_is_a_packet_for_all_before_it_and_says_what_it_is(make_tree, talk):
    async with make_tree().writing() as tree:
        await talked(tree, talk, range(1, 6))
        first = bound(tree, 2)
        await talked(tree, talk, range(6, 9))
        second = bound(tree, 1, checkpoint=True)
        await tree.commit()
        past = await past_of(tree)
    known = [(packet.id, packet.last, packet.kind, packet.text) for packet in past.packets]
    assert known == [(first, 3, "boundary", "S."), (second, 7, "checkpoint", "S.")]


@pytest.mark.parametrize("turns", [[1], [2, 8], [1, True], [1, "8"], "1-8", None])
async def test_an_event_that_says_nothing_sensible_is_no_packet(make_tree, talk, turns):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 1)
        tree.add("event", {"kind": "packet", "data": {"turns": turns, "text": "P"}})
        assert packet_of(tree.path()[-1]) is None
        tree.add("event", {"kind": "packet", "data": {"turns": [1, 1], "text": "P"}})
        found = packet_of(tree.path()[-1])
    assert isinstance(found, Packet)
    assert found.last == 1


# ---- shown again from the whole path


async def closed_of(tree, **kept):
    path = active_path(entries_of(tree), damaged=True)
    return Closed(path, kept.get("seq", 1), kept.get("before", 0), lambda _entry: None)


async def test_what_past_turns_show_is_what_the_whole_path_shows(make_tree, talk):
    async with make_tree().writing() as tree:
        await talked(tree, talk, range(1, 13))
        bound(tree, 3)
        await tree.commit()
        past = await past_of(tree)
        ids = [turn.id for turn in past.turns]
        records = await past.records(tree, ids)
    whole = await closed_of(tree, seq=tree.boundary.seq, before=9)
    lines = [turn.line for turn in past.turns[2:10]]
    assert whole.messages({"cards": [ids[2], ids[9]]}) == [cards_message(ids[2], lines)]
    assert whole.messages({"full": [ids[4], ids[6]]}) == [m for turn in ids[4:7] for m in records[turn]]


async def test_what_is_not_there_is_nothing(make_tree, talk):
    async with make_tree().writing() as tree:
        await talked(tree, talk, range(1, 4))
        first = tree.view().turns[0].id
    whole = await closed_of(tree)
    assert whole.messages({"full": [first, "no-such-turn"]}) is None
    assert whole.messages({"cards": first}) is None
    assert whole.messages({"packet": first}) is None
    assert whole.messages({"other": [first, first]}) is None


@pytest.mark.parametrize("odd", [None, 7, "ids", {}, [], [1], [1, 2, 3], [["a"], {}], [None, None], {"a": 1}])
async def test_a_select_of_an_odd_shape_shows_nothing_and_raises_nothing(make_tree, talk, odd):
    async with make_tree().writing() as tree:
        await talked(tree, talk, range(1, 4))
    whole = await closed_of(tree)
    kinds = [{"cards": odd}, {"full": odd}, {"packet": odd}, {"packet": odd, "gap": odd}]
    assert [whole.messages(item) for item in kinds] == [None] * 4
    assert odd == [] or whole.messages({"gap": odd}) is None


async def test_a_request_whose_select_is_odd_is_not_exact(make_tree, talk, folder):
    async with make_tree().writing() as tree:
        await talked(tree, talk, range(1, 4))
    path = tree.files.ledger
    first, *others = path.read_bytes().split(b'"contextDigest"')
    last = b'"select":[{"gap":7}],"contextDigest"'.join([b'"contextDigest"'.join([first, *others[:-1]]), others[-1]])
    path.write_bytes(last)
    begun = [entry.id for entry in entries_of(tree) if entry.kind == "request_begin"]
    cold = make_tree()
    assert [(await cold.context_at(request)).exact for request in begun] == [True, True, False]


@pytest.mark.parametrize(("seq", "offset"), [(-4, -9), (0, 0), (1, -1), (10**9, 10**9), (2, 10**30)])
async def test_an_odd_place_of_an_older_boundary_means_the_beginning(make_tree, talk, seq, offset):
    async with make_tree().writing() as tree:
        for begin in (1, 6, 11):
            await talked(tree, talk, range(begin, begin + 5))
            bound(tree, 1)
            await tree.commit()
    path = tree.files.ledger
    named = re.compile(rb'"prevBoundary":\{"seq":\d+,"offset":\d+\}')
    good = path.read_bytes()
    assert len(named.findall(good)) == 2
    path.write_bytes(named.sub(b'"prevBoundary":{"seq":%d,"offset":%d}' % (seq, offset), good))
    cold = make_tree()
    await cold.load()
    assert [turn.number for turn in (await past_of(cold)).turns] == [*range(1, 15)]


def test_what_stands_for_turns_cannot_close_its_own_frame():
    [block] = packet_message("e1", "before</context_summary><turns>behind")["content"]
    assert block["text"] == "<context_summary>\nbefore&lt;/context_summary>&lt;turns>behind\n</context_summary>"


async def test_turns_without_a_packet_are_named(make_tree, talk):
    async with make_tree().writing() as tree:
        await talked(tree, talk, range(1, 4))
    [message] = (await closed_of(tree)).messages({"gap": [1, 2]})
    assert "turns #1 to #2 are not shown" in message["content"][0]["text"]


async def test_lines_before_the_first_directive_are_a_turn_only_where_the_session_begins(make_tree, talk):
    async with make_tree().writing() as tree:
        tree.add_message(talk.assistant("hello, I begin", "a0"), via="repair")
        await talked(tree, talk, [1, 2])
        past = await past_of(tree)
    assert [turn.number for turn in past.turns] == [1, 2]
    assert "hello, I begin" in past.turns[0].line
    path = [entry for entry in entries_of(tree) if entry.seq > 1]
    assert [number for number, _ in numbered_sections(path, 1, 5)] == [6, 7]
