"""Interrupted calls and stopped turns are made sendable, once (case B08)."""

import json

import pytest

from harness.sessions import repairs


async def _interrupted(tree, talk):
    tree.add_message(talk.user("Fetch all three prices.", "u1"), via="user")
    await talk.answer(tree, "Fetching.", "a1", "d1", "d2", "d3")
    tree.add_message(talk.result("t1", "d2", text="4.20"), via="tool")
    await tree.commit()


def _log_repairs(tree, reason="interrupted"):
    made = repairs(tree.view(), reason)
    for message in made:
        tree.add_message(message, via="repair")
    return made


async def test_each_open_call_gets_one_marked_error_and_the_real_result_stays(make_tree, talk):
    async with make_tree().writing() as tree:
        await _interrupted(tree, talk)
    async with make_tree().writing() as tree:
        _log_repairs(tree)
        tree.add_message(talk.user("Stop, only B please.", "u2"), via="user")

    messages = (await make_tree().load()).messages
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "user"]
    results = messages[2]["content"]
    assert [block["id"] for block in results] == ["d1", "d2", "d3"]
    assert results[1]["content"][0]["text"] == "4.20"
    assert [block.get("synthetic") for block in results] == ["interrupted", None, "interrupted"]
    assert [block.get("isError", False) for block in results] == [True, False, True]


async def test_repairs_are_in_the_log_with_their_mark(make_tree, talk, folder, lines):
    async with make_tree().writing() as tree:
        await _interrupted(tree, talk)
        _log_repairs(tree)

    repaired = [line for line in lines(folder / "s-1.log.jsonl") if line.get("via") == "repair"]
    assert [[block["synthetic"] for block in line["message"]["content"]] for line in repaired] == [["interrupted"] * 2]


async def test_loading_ten_times_adds_nothing_further(make_tree, talk, folder):
    async with make_tree().writing() as tree:
        await _interrupted(tree, talk)
        _log_repairs(tree)
    before = (folder / "s-1.log.jsonl").read_bytes()

    for _ in range(10):
        async with make_tree().writing() as tree:
            assert _log_repairs(tree) == []
    assert (folder / "s-1.log.jsonl").read_bytes() == before


async def test_a_stopped_turn_is_closed_by_one_assistant_line(make_tree, talk):
    async with make_tree().writing() as tree:
        await _interrupted(tree, talk)
        tree.add("event", {"kind": "abort", "data": {}}, turn=tree.turn)
    async with make_tree().writing() as tree:
        _log_repairs(tree, "stopped")
        tree.add_message(talk.user("Go on.", "u2"), via="user")
        assert repairs(tree.view(), "stopped")[0]["content"][0]["text"] == "[stopped]"  # for the new, open turn

    messages = (await make_tree().load()).messages
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant", "user"]
    assert messages[3]["content"] == [{"type": "text", "text": "[stopped]"}]


async def test_a_prompt_that_was_never_answered_is_closed(make_tree, talk):
    async with make_tree().writing() as tree:
        tree.add_message(talk.user("hi", "u1"), via="user")
        tree.add_message(talk.user("monday", "h1"), via="hook")
    async with make_tree().writing() as tree:
        _log_repairs(tree)
        await talk.turn(tree, 2)
    assert [m["role"] for m in (await make_tree().load()).messages] == ["user", "assistant", "user", "assistant"]


async def test_a_closed_conversation_needs_no_repair(make_tree, talk):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 1, tool=True)
        assert repairs(tree.view(), "interrupted") == []


async def test_a_late_real_result_does_not_displace_the_made_up_one(make_tree, talk):
    async with make_tree().writing() as tree:
        await _interrupted(tree, talk)
        _log_repairs(tree)
        before = tree.messages()
        tree.add_message(talk.result("late", "d1", text="1.00"), via="tool")
        assert tree.messages() == before


async def test_the_case_file(make_tree, shared):
    source = json.loads((shared / "cases" / "B08" / "dangling.json").read_bytes())
    expected = json.loads((shared / "cases" / "B08" / "expected.json").read_bytes())["outbound"]
    async with make_tree().writing() as tree:
        for number, neutral in enumerate(source[:-1]):
            tree.add_message(
                _neutral(neutral, number), via={"user": "user", "tool": "tool"}.get(neutral["role"], "model")
            )
        _log_repairs(tree)
        tree.add_message(_neutral(source[-1], 99), via="user")

    messages = (await make_tree().load()).messages
    assert [message["role"] for message in messages] == expected["roles"]
    assert [block["id"] for block in messages[2]["content"]] == expected["result_ids_after_call_message"]
    made_up = [block["id"] for block in messages[2]["content"] if block.get("synthetic")]
    assert made_up == expected["synthetic"]


def _neutral(message, number):
    blocks = [{"type": "text", "text": message["text"]}] if "text" in message else []
    blocks += [
        {"type": "toolUse", "id": c["id"], "name": c["name"], "input": c["args"]} for c in message.get("calls", ())
    ]
    blocks += [
        {"type": "toolResult", "id": r["id"], "content": [{"type": "text", "text": r["text"]}]}
        for r in message.get("results", ())
    ]
    return {"id": f"m{number}", "role": message["role"], "content": blocks}


@pytest.mark.parametrize("reason", ["interrupted", "cancelled", "denied"])
async def test_the_made_up_result_says_why(make_tree, talk, reason):
    async with make_tree().writing() as tree:
        await _interrupted(tree, talk)
        block = repairs(tree.view(), reason)[0]["content"][0]
    assert block["synthetic"] == reason
    assert block["content"][0]["text"].startswith(f"[{reason}: ")
