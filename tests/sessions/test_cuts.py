"""Where a conversation may be cut: between turns, and never between a call and its result (case B06)."""

import json

import pytest

from harness.sessions import cut_for, safe_cuts


def _message(neutral, number):
    blocks = [
        {"type": "toolResult", "id": r["id"], "content": [{"type": "text", "text": r["text"]}]}
        for r in neutral.get("results", ())
    ]
    blocks += [{"type": "text", "text": neutral["text"]}] if "text" in neutral else []
    blocks += [
        {"type": "toolUse", "id": c["id"], "name": c["name"], "input": c["args"]} for c in neutral.get("calls", ())
    ]
    return {"id": f"m{number}", "role": neutral["role"], "content": blocks}


def _call(*ids):
    return {"role": "assistant", "calls": [{"id": each, "name": "look", "args": {}} for each in ids]}


def _results(*ids):
    return {"role": "tool", "results": [{"id": each, "text": "found"} for each in ids]}


# Sixteen messages: parallel calls with results out of order, text together with a result, an open question.
HISTORY = [
    {"role": "user", "text": "Plan."},
    _call("c1", "c2"),
    _results("c2"),
    _results("c1"),
    {"role": "assistant", "text": "Measured."},
    {"role": "user", "text": "Book."},
    _call("c3"),
    {"role": "user", "text": "Friday.", "results": [{"id": "c3", "text": "booked"}]},
    {"role": "assistant", "text": "Booked."},
    {"role": "user", "text": "Boxes?"},
    _call("c4"),
    _results("c4"),
    _call("c5"),
    _results("c5"),
    {"role": "assistant", "text": "Coming."},
    {"role": "user", "text": "What is left?"},
]
ORPHAN = [_results("gone"), *HISTORY]


def test_safe_cuts_are_those_that_split_no_pair():
    messages = [_message(neutral, number) for number, neutral in enumerate(HISTORY)]
    assert safe_cuts(messages) == [0, 1, 4, 5, 6, 8, 9, 10, 12, 14, 15, 16]


def test_an_orphan_pins_no_cut():
    messages = [_message(neutral, number) for number, neutral in enumerate(ORPHAN)]
    assert safe_cuts(messages) == [0, 1, 2, 5, 6, 7, 9, 10, 11, 13, 15, 16, 17]


def _log(tree, history):
    for number, neutral in enumerate(history):
        via = {"user": "user", "tool": "tool"}.get(neutral["role"], "model")
        tree.add_message(_message(neutral, number), via=via)


def _pairs_are_whole(messages):
    calls = [b["id"] for m in messages for b in m["content"] if b.get("type") == "toolUse"]
    results = [b["id"] for m in messages for b in m["content"] if b.get("type") == "toolResult"]
    return calls == results


@pytest.mark.parametrize("history", [HISTORY, ORPHAN], ids=["history", "with an old orphan"])
@pytest.mark.parametrize("keep", range(1, 16))
async def test_compaction_keeps_whole_turns_whatever_it_is_told_to_keep(make_tree, folder, history, keep):
    async with make_tree().writing() as tree:
        _log(tree, history)
        view = tree.view()
        cut = cut_for(view.turns, keep)
        kept = [turn.id for turn in view.turns[cut:]]
        if cut:
            tree.append_compaction("Summary.", view.turns[0].id, view.turns[cut - 1].id, "m-1", 100)
        await tree.commit()
        neutral_cut = _first_message_number(tree, kept)
        assert neutral_cut in safe_cuts([_message(neutral, number) for number, neutral in enumerate(history)])
        assert _pairs_are_whole(tree.messages())
        assert tree.messages()[-1]["id"] == f"m{len(history) - 1}"  # the open turn stays

    assert (await make_tree().load()).messages == tree.messages()
    logged = [line["message"]["id"] for line in _lines(folder) if line["type"] == "message"]
    assert logged == [f"m{number}" for number in range(len(history))]


def _first_message_number(tree, kept):
    turn = next(turn for turn in tree.view().turns if turn.id == kept[0])
    return int(turn.messages[0]["id"][1:])


def _lines(folder):
    return [json.loads(line) for line in (folder / "s-1.log.jsonl").read_bytes().split(b"\n")[:-1]]


async def test_the_case_files(shared):
    expected = json.loads((shared / "cases" / "B06" / "expected.json").read_bytes())["safe_cuts"]
    for name, cuts in expected.items():
        history = json.loads((shared / "cases" / "B06" / name).read_bytes())
        assert safe_cuts([_message(neutral, number) for number, neutral in enumerate(history)]) == cuts


async def test_nothing_is_cut_when_everything_may_stay(make_tree, talk):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 1)
        await talk.turn(tree, 2)
        assert cut_for(tree.view().turns, 4) == 0


async def test_the_newest_turn_stays_even_if_it_is_larger_than_what_may_stay(make_tree, talk):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 1)
        await talk.turn(tree, 2, tool=True)
        assert cut_for(tree.view().turns, 1) == 1


async def test_a_single_closed_turn_that_is_too_large_goes(make_tree, talk):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 1, tool=True)
        assert cut_for(tree.view().turns, 1) == 1


async def test_a_single_open_turn_is_never_cut(make_tree, talk):
    async with make_tree().writing() as tree:
        tree.add_message(talk.user("hi", "u1"), via="user")
        assert cut_for(tree.view().turns, 0) == 0
