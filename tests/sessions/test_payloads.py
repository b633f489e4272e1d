"""What a provider signed comes back as it was: values, strings, key order (case B17)."""

import json

import pytest

CONTENT = [
    {
        "type": "thinking",
        "text": "",
        "opaque": {
            "provider": "demo",
            "model": "m-1",
            "data": {
                "thinking": "  First line \n\tcaf\u00e9 / cafe\u0301   end  \n",
                "signature": "U0lHLTE=",
                "zeta": 1,
                "alpha": {"b": 1.0, "a": 1e-07, "big": 9007199254740993, "huge": 2**64 - 1, "minus": -0.0},
            },
        },
    },
    {"type": "redacted", "data": "UkVEQUNURUQ=", "unknown": {"kept": [1, 2.50, None]}},
    {"type": "text", "text": "Checking."},
    {"type": "toolUse", "id": "t1", "name": "look", "input": {"n": 1.0, "big": 9007199254740993}},
]


async def _answer(tree, talk, number=1):
    request = talk.request(tree)
    message = {"id": f"a{number}", "role": "assistant", "content": CONTENT}
    tree.add_message(message, via="model", request=request)
    tree.end_request(request, "completed")
    tree.add_message(talk.result(f"r{number}", "t1"), via="tool")
    await tree.commit()


def _assistant(messages):
    return next(message["content"] for message in messages if message["role"] == "assistant")


def _same(content):
    return json.dumps(content) == json.dumps(CONTENT)


async def test_a_signed_turn_survives_ten_rounds_of_new_processes(make_tree, talk):
    async with make_tree().writing() as tree:
        tree.add_message(talk.user("hi", "u1"), via="user")
        await _answer(tree, talk)
    for _ in range(10):
        async with make_tree().writing() as tree:
            for message in tree.messages():
                tree.add_message(message, via="repair")
            assert _same(_assistant(tree.messages()))


async def test_a_signed_turn_survives_a_compaction_before_it(make_tree, talk):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 0)
        tree.add_message(talk.user("hi", "u1"), via="user")
        await _answer(tree, talk)
        turns = tree.view().turns
        tree.append_compaction("S.", turns[0].id, turns[0].id, "m", 1)
        assert _same(_assistant(tree.messages()))
    assert _same(_assistant((await make_tree().load()).messages))


async def test_a_signed_turn_survives_an_interruption(make_tree, talk, folder):
    async with make_tree().writing() as tree:
        tree.add_message(talk.user("hi", "u1"), via="user")
        await _answer(tree, talk)
        tree.add("event", {"kind": "abort", "data": {}}, turn=tree.turn)
    ledger = folder / "s-1.log.jsonl"
    ledger.write_bytes(ledger.read_bytes()[:-30])
    assert _same(_assistant((await make_tree().load()).messages))


async def test_the_context_file_has_the_same_bytes(make_tree, talk, folder, lines):
    async with make_tree().writing() as tree:
        tree.add_message(talk.user("hi", "u1"), via="user")
        await _answer(tree, talk)
    copied = [line for line in lines(folder / "s-1.jsonl") if line.get("message", {}).get("id") == "a1"]
    assert _same(copied[0]["message"]["content"])


@pytest.mark.parametrize("name", ["signed-turn.json", "unsendable-blocks.json"])
async def test_the_case_files_are_kept_as_they_are(make_tree, shared, name):
    data = json.loads((shared / "cases" / "B17" / name).read_bytes())
    content = data["assistant_content"] if isinstance(data, dict) else data
    async with make_tree().writing() as tree:
        tree.add_message({"id": "a1", "role": "assistant", "content": content}, via="model")
    assert json.dumps((await make_tree().load()).messages[0]["content"]) == json.dumps(content)
