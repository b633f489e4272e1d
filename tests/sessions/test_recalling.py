"""What was said earlier, read back whole from the ledger."""

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.filesystem import disk
from harness.sessions.ledger.numbering import number_turns, openers, whole_turns
from harness.sessions.ledger.reading import active_path, scan
from harness.sessions.lines.entries import START
from harness.sessions.selection.outline import Outline
from harness.sessions.selection.recalling import find_said, recall_call, recall_result, recall_turn
from harness.sessions.tree.results import keep_result
from harness.sessions.tree.session_tree import SessionTree


async def answered(tree, talk, number, *results):
    """A turn with a call for each of these results, all in one step."""
    calls = [f"call-{number}-{index}" for index in range(len(results))]
    tree.add_message(talk.user(f"question {number}", f"u{number}"), via="user")
    if results:
        await talk.answer(tree, "", f"c{number}", *calls)
        for call, text in zip(calls, results, strict=True):
            tree.add_message(talk.result(f"r-{call}", call, text=text), via="tool")
    await talk.answer(tree, f"answer {number}", f"a{number}")


def places(found):
    return [(each.number, each.role, each.evidence) for each in found]


async def test_a_result_is_found_by_its_turn_and_place_there(make_tree, talk):
    async with make_tree().writing() as tree:
        await answered(tree, talk, 1)
        await answered(tree, talk, 2, "first", "second")
    found = recall_result(tree.files, 2, 2)
    assert (found.evidence, found.call, found.tool, found.text) == ("2.2", "call-2-1", "look", "second")
    assert [recall_result(tree.files, *pair) for pair in ((2, 0), (2, 3), (1, 1), (0, 1), (3, 1))] == [None] * 5


async def test_of_calls_with_one_id_the_newest_is_found_by_it_and_each_by_its_place(make_tree, talk):
    async with make_tree().writing() as tree:
        for number, text in ((1, "old"), (2, "new")):
            tree.add_message(talk.user("look", f"u{number}"), via="user")
            await talk.answer(tree, "", f"c{number}", "same")
            tree.add_message(talk.result(f"r{number}", "same", text=text), via="tool")
            await talk.answer(tree, "done", f"a{number}")
    assert recall_call(tree.files, "same").text == "new"
    assert recall_result(tree.files, 1, 1).text == "old"
    assert recall_result(tree.files, 2, 1).text == "new"
    assert recall_call(tree.files, "other") is None


async def test_the_open_turn_is_recalled_as_far_as_it_came(make_tree, talk):
    async with make_tree().writing() as tree:
        await answered(tree, talk, 1)
        tree.add_message(talk.user("and", "u2"), via="user")
        await talk.answer(tree, "", "c2", "here")
        tree.add_message(talk.result("r2", "here", text="so far"), via="tool")
    found = recall_turn(tree.files, 2)
    assert (found.number, found.turns, found.turn.closed) == (2, 2, False)
    assert recall_result(tree.files, 2, 1).text == "so far"


async def test_what_boundaries_hide_is_recalled(make_tree, talk):
    async with make_tree().writing() as tree:
        await answered(tree, talk, 1, "behind a summary")
        tree.append_compaction("S.", tree.turn, tree.turn, "m", 1)
        tree.add_message(talk.user("go on", "u2"), via="user")
        await talk.answer(tree, "", "c2", "step")
        tree.add_message(talk.result("r2", "step", text="behind a boundary in its turn"), via="tool")
        tree.append_compaction("S.", "", "", "m", 1, keeps_open_turn=True)
        await talk.answer(tree, "done", "a2")
    assert recall_result(tree.files, 1, 1).text == "behind a summary"
    assert recall_result(tree.files, 2, 1).text == "behind a boundary in its turn"
    assert [m["id"] for m in recall_turn(tree.files, 2).turn.messages] == ["u2", "c2", "r2", "a2"]


async def test_arguments_that_are_shown_short_are_recalled_whole(make_tree, talk):
    async with make_tree().writing() as tree:
        tree.add_message(talk.user("write", "u1"), via="user")
        call = {"type": "toolUse", "id": "w", "name": "write", "input": {"text": "long" * 100}}
        request = talk.request(tree)
        tree.add_message({"id": "c1", "role": "assistant", "content": [call]}, via="model", request=request)
        tree.end_request(request, "completed")
        tree.add_message(talk.result("r1", "w"), via="tool")
        await talk.answer(tree, "done", "a1")
        cut = {"lastTurn": tree.turn, "maxArgLength": 10, "truncationText": "…"}
        tree.add("event", {"kind": "arguments_cut", "data": cut})
    assert tree.view().turns[0].messages[1]["content"][0]["input"] != call["input"]
    assert recall_turn(tree.files, 1).turn.messages[1]["content"][0]["input"] == call["input"]


async def test_a_late_result_is_recalled_with_its_turn(make_tree, talk):
    async with make_tree().writing() as tree:
        tree.add_message(talk.user("look", "u1"), via="user")
        first = tree.turn
        await talk.answer(tree, "", "c1", "slow")
        tree.add_message(talk.user("never mind", "u2"), via="user")
        tree.add_message(talk.result("r1", "slow", text="needle at last"), via="tool", turn=first)
        await talk.answer(tree, "fine", "a2")
        await answered(tree, talk, 3)
    assert recall_result(tree.files, 1, 1).text == "needle at last"
    assert recall_call(tree.files, "slow").evidence == "1.1"
    assert places(find_said(tree.files, "needle", 8)) == [(1, "tool", "1.1")]


async def test_what_was_left_behind_by_a_branch_is_not_recalled(make_tree, talk):
    async with make_tree().writing() as tree:
        await answered(tree, talk, 1)
        back = tree.leaf
        await answered(tree, talk, 2, "given up")
        await tree.branch(back)
        await answered(tree, talk, 3, "gone on")
        await answered(tree, talk, 4)
    assert recall_call(tree.files, "call-2-0") is None
    assert recall_result(tree.files, 2, 1).text == "gone on"
    assert find_said(tree.files, "given", 8) == []
    assert recall_turn(tree.files, 4) == 3


async def test_an_evicted_result_is_recalled_whole_and_searched_whole(make_tree, talk):
    whole = "begin " + "x" * 5000 + " needle " + "y" * 5000 + " end"
    async with make_tree().writing() as tree:
        tree.add_message(talk.user("dig", "u1"), via="user")
        await talk.answer(tree, "", "c1", "d")
        path = keep_result(tree, "d", "dig", whole)
        cut = talk.result("r1", "d", text="begin … end")
        cut["content"][0]["evicted"] = {"path": path, "chars": len(whole)}
        tree.add_message(cut, via="tool")
        await talk.answer(tree, "done", "a1")
        await answered(tree, talk, 2)
    found = recall_result(tree.files, 1, 1)
    assert (found.text, found.lost) == (whole, 0)
    [found] = find_said(tree.files, "needle", 8)
    assert found.evidence == "1.1"
    assert "needle" in found.snippet


async def test_a_lost_file_leaves_what_was_shown(make_tree, talk):
    async with make_tree().writing() as tree:
        tree.add_message(talk.user("dig", "u1"), via="user")
        await talk.answer(tree, "", "c1", "d")
        path = keep_result(tree, "d", "dig", "all of it")
        cut = talk.result("r1", "d", text="a part")
        cut["content"][0]["evicted"] = {"path": path, "chars": 9}
        tree.add_message(cut, via="tool")
    for kept in (tree.files.blobs).glob("??/*"):
        kept.write_bytes(b"changed")
    found = recall_result(tree.files, 1, 1)
    assert (found.text, found.lost) == ("a part", 9)


async def test_a_result_that_stands_in_a_file_is_recalled_and_found_by_its_end(make_tree, talk):
    text = "z" * 300_000 + " needle"
    async with make_tree().writing() as tree:
        await answered(tree, talk, 1, text)
        await answered(tree, talk, 2)
    assert recall_result(tree.files, 1, 1).text == text
    assert recall_call(tree.files, "call-1-0").text == text
    assert places(find_said(tree.files, "needle", 8)) == [(1, "tool", "1.1")]


async def test_results_given_by_the_caller_in_one_large_message_open_no_turn(make_tree, talk):
    async with make_tree().writing() as tree:
        tree.add_message(talk.user("look", "u1"), via="user")
        await talk.answer(tree, "", "c1", *[f"c-{n}" for n in range(5)])
        given_back = talk.result("r1", *[f"c-{n}" for n in range(5)], text="q" * 250_000)
        tree.add_message({**given_back, "role": "user"}, via="user")
        await talk.answer(tree, "done", "a1")
        await answered(tree, talk, 2)
    assert len(Outline(tree.files)) == 2
    assert recall_result(tree.files, 1, 5).text == "q" * 250_000


async def test_damaged_lines_are_stepped_over(make_tree, talk, folder):
    async with make_tree().writing() as tree:
        for number in (1, 2, 3):
            await answered(tree, talk, number, f"needle {number}")
    ledger = folder / "s-1.log.jsonl"
    lines = ledger.read_bytes().split(b"\n")
    broken = [line[:40] if b'"r-call-2-0"' in line else line for line in lines]
    ledger.write_bytes(b"\n".join([*broken[:3], b"\xff\xfe{", b"", *broken[3:]]) + b'{"type":"mess')
    assert recall_result(tree.files, 1, 1).text == "needle 1"
    assert recall_result(tree.files, 2, 1) is None
    assert recall_result(tree.files, 3, 1).text == "needle 3"
    assert places(find_said(tree.files, "needle", 8)) == [(1, "tool", "1.1")]


async def test_a_session_without_a_ledger_has_nothing_to_recall(make_tree):
    files = make_tree().files
    assert recall_turn(files, 1) == 0
    assert recall_result(files, 1, 1) is None
    assert recall_call(files, "c") is None
    assert find_said(files, "word", 8) == []


async def test_the_newest_turn_is_no_find_for_it_is_in_view(make_tree, talk):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 1)
        tree.add_message(talk.user("what was the question 1?", "u2"), via="user")
    assert places(find_said(tree.files, "question", 8)) == [(1, "user", None)]


async def test_a_place_with_the_rarer_word_comes_first_and_the_newer_of_equals(make_tree, talk):
    async with make_tree().writing() as tree:
        for number in range(1, 6):
            await talk.turn(tree, number)
        tree.add_message(talk.user("the quokka", "u6"), via="user")
        await talk.answer(tree, "fine", "a6")
        await talk.turn(tree, 7)
    assert [each.number for each in find_said(tree.files, "question QUOKKA", 3)] == [6, 5, 4]


async def said(tree, talk, number, asked, answer="fine"):
    tree.add_message(talk.user(asked, f"u{number}"), via="user")
    await talk.answer(tree, answer, f"a{number}")


async def test_a_place_that_holds_more_of_the_words_comes_before_a_rarer_one(make_tree, talk):
    async with make_tree().writing() as tree:
        await said(tree, talk, 1, "the harbour gate opens at nine")
        await said(tree, talk, 2, "quokka quokka quokka")
        for number in range(3, 6):
            await said(tree, talk, number, "the harbour is cold and the gate is not here" if number < 5 else "nothing")
        await said(tree, talk, 6, "bye")
    assert [each.number for each in find_said(tree.files, "gate harbour quokka", 4)] == [4, 3, 1, 2]


async def test_a_word_of_its_own_comes_before_one_inside_a_longer_one(make_tree, talk):
    async with make_tree().writing() as tree:
        await said(tree, talk, 1, "the key is blue")
        await said(tree, talk, 2, "a monkey on a keyboard, a donkey, a turkey")
        await said(tree, talk, 3, "bye")
    assert [each.number for each in find_said(tree.files, "key", 8)] == [1, 2]


async def test_questions_and_replies_around_an_earlier_recall_come_last(make_tree, talk):
    async with make_tree().writing() as tree:
        await said(tree, talk, 1, "my code word is heron")
        tree.add_message(talk.user("what is the code word? the bridge is open", "u2"), via="user")
        use = {"type": "toolUse", "id": "c", "name": "recall", "input": {"query": "code word"}}
        request = talk.request(tree)
        tree.add_message({"id": "c2", "role": "assistant", "content": [use]}, via="model", request=request)
        tree.end_request(request, "completed")
        result = talk.result("r2", "c", text="#1 [USER]: my code word is heron")
        result["content"][0]["name"] = "recall"
        tree.add_message(result, via="tool")
        await talk.answer(tree, "You said: my code word is heron, code word", "a2")
        await said(tree, talk, 3, "which word is it", "I cannot say.")
        await said(tree, talk, 4, "bye")
    found = find_said(tree.files, "code word", 8)
    assert places(found)[0] == (1, "user", None)
    assert sorted(places(found)[-2:]) == [(2, "assistant", None), (2, "user", None)]
    assert places(find_said(tree.files, "bridge", 8)) == [(2, "user", None)]


async def test_what_is_no_part_of_the_conversation_is_not_found(make_tree, talk):
    async with make_tree().writing() as tree:
        tree.add_message(talk.user("hello", "u1"), via="user")
        tree.add_message(talk.user("needle of a hook", "h1"), via="hook")
        tree.add_message(talk.assistant("needle half", "p1"), via="model", partial=True)
        failed = talk.request(tree)
        tree.add_message(talk.assistant("needle that failed", "f1"), via="model", request=failed)
        tree.end_request(failed, "failed")
        side = talk.request(tree, "summarize")
        tree.add_message(talk.user("needle for a summary", "s1"), via="summary", request=side)
        tree.end_request(side, "completed")
        await talk.answer(tree, "hi", "a1")
        await talk.turn(tree, 2)
    assert find_said(tree.files, "needle", 8) == []


async def test_arguments_of_calls_are_found_and_results_of_recall_are_not(make_tree, talk):
    async with make_tree().writing() as tree:
        tree.add_message(talk.user("look", "u1"), via="user")
        uses = [
            {"type": "toolUse", "id": name, "name": name, "input": {"path": "needle.txt"}} for name in ("recall", "dig")
        ]
        request = talk.request(tree)
        tree.add_message({"id": "c1", "role": "assistant", "content": uses}, via="model", request=request)
        tree.end_request(request, "completed")
        results = [
            {
                "type": "toolResult",
                "id": use["id"],
                "name": use["name"],
                "content": [{"type": "text", "text": "needle"}],
            }
            for use in uses
        ]
        tree.add_message({"id": "r1", "role": "tool", "content": results}, via="tool")
        await talk.answer(tree, "done", "a1")
        await talk.turn(tree, 2)
    assert sorted(places(find_said(tree.files, "needle", 8)), key=str) == [(1, "assistant", None), (1, "tool", "1.2")]


@pytest.mark.parametrize("query", ["今日は", "STRASSE", "ﬁne", "Ångström"])
async def test_words_are_found_in_any_script_and_case(make_tree, talk, query):
    async with make_tree().writing() as tree:
        tree.add_message(talk.user("きょう今日は晴れ, straße, fine, ångström", "u1"), via="user")
        await talk.answer(tree, "ok", "a1")
        await talk.turn(tree, 2)
    assert places(find_said(tree.files, query, 8)) == [(1, "user", None)]


STEPS = st.lists(st.sampled_from(["turn", "results", "open", "compact", "shorten", "branch", "torn"]), max_size=12)


@settings(max_examples=40)
@given(steps=STEPS)
def test_an_outline_holds_exactly_the_turns_of_the_path(tmp_path_factory, talk, steps):
    folder = tmp_path_factory.mktemp("story")
    tree = SessionTree(folder, "s-1", agent="a", namespace=("t",))
    asyncio.run(_play(tree, talk, steps))
    entries, _, _ = scan(disk.read(tree.files.ledger), START) if steps and tree.count else ([], [], None)
    path = active_path(entries, damaged=True) or []
    turns = whole_turns(path)
    outline = Outline(tree.files)
    assert [_said(outline.turn(number)) for number in range(1, len(outline) + 1)] == [_said(turn) for turn in turns]
    assert number_turns(turns, 0, openers(path)) == {turn.id: outline.number_of(turn.id) for turn in turns}


def _said(turn):
    return json.dumps([turn.id, turn.messages])


async def _play(tree, talk, steps):
    await tree.lock()
    try:
        await _play_steps(tree, talk, steps)
    finally:
        await tree.release()


async def _play_steps(tree, talk, steps):
    ends = []
    for number, step in enumerate(steps):
        turns = tree.view().turns
        if step == "turn":
            await talk.turn(tree, number)
            ends.append(tree.leaf)
        elif step == "results":
            await answered(tree, talk, number, "one", "two")
            ends.append(tree.leaf)
        elif step == "open":
            tree.add_message(talk.user("and", f"u{number}"), via="user")
            await talk.answer(tree, "", f"c{number}", f"open-{number}")
        elif step == "branch" and ends:
            await tree.branch(ends[number % len(ends)])
        elif step == "shorten" and tree.view().open_turn:
            tree.append_compaction("S.", "", "", "m", 1, keeps_open_turn=True)
        elif step == "compact" and turns and turns[-1].closed:
            tree.append_compaction("S.", turns[0].id, turns[len(turns) // 2].id, "m", 1)
        elif step == "torn":
            await tree.release()
            if tree.files.ledger.exists():
                with tree.files.ledger.open("ab") as file:
                    file.write(b'{"type":"message","id":"x","sub')
            await tree.lock()
