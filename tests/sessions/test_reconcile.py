"""When ledger and snapshot differ, the ledger wins, grows, or gets a branch; nothing is thrown away."""

import logging

import pytest

from harness.sessions import AppendMissing, Branch, Ignore, LedgerWins, SessionCatalog, reconcile, verify_chain


def _position(tree):
    return {"ledgerId": tree.ledger_id, "seq": tree.count, "hash": tree.last_hash, "count": len(tree.messages())}


async def _talked(make_tree, talk, turns=2):
    async with make_tree().writing() as tree:
        for number in range(turns):
            await talk.turn(tree, number)
    return tree, _position(tree), tree.messages()


def _lose(folder):
    for path in folder.glob("s-1*"):
        path.unlink()


async def _loaded(tree):
    await tree.load()
    return tree


async def test_a_position_the_ledger_knows_means_the_ledger_wins(make_tree, talk):
    _, position, messages = await _talked(make_tree, talk)
    assert reconcile(await _loaded(make_tree()), position, messages) == LedgerWins()


async def test_an_older_snapshot_of_this_ledger_adds_nothing(make_tree, talk):
    _, position, messages = await _talked(make_tree, talk)
    async with make_tree().writing() as tree:
        await talk.turn(tree, 7)
        assert reconcile(tree, position, messages) == LedgerWins()


async def test_a_snapshot_from_before_a_compaction_adds_nothing(make_tree, talk):
    _, position, messages = await _talked(make_tree, talk)
    async with make_tree().writing() as tree:
        tree.append_compaction("S.", tree.view().turns[0].id, tree.view().turns[-1].id, "m", 1)
        await talk.turn(tree, 7)
    assert reconcile(await _loaded(make_tree()), position, messages) == LedgerWins()


async def test_no_snapshot_and_no_ledger_is_nothing_to_do(make_tree):
    assert reconcile(await _loaded(make_tree()), None, []) == LedgerWins()


async def test_without_a_ledger_the_snapshot_is_appended(make_tree, talk, folder, caplog):
    _, position, messages = await _talked(make_tree, talk)
    _lose(folder)

    async with make_tree().writing() as tree:
        decision = reconcile(tree, position, messages)
        assert decision == AppendMissing(tuple(messages))
        with caplog.at_level(logging.WARNING, "harness.sessions"):
            assert "4 messages" in (tree.adopt(decision) or "")
        assert tree.messages() == messages
        assert [turn.closed for turn in tree.view().turns] == [True, True]
        assert reconcile(tree, position, messages) == LedgerWins()
    assert (await make_tree().load()).messages == messages
    assert len(caplog.records) == 1


async def test_appended_messages_are_marked_as_repairs(make_tree, talk, folder, lines):
    _, position, messages = await _talked(make_tree, talk)
    _lose(folder)
    async with make_tree().writing() as tree:
        tree.adopt(reconcile(tree, position, messages))
    vias = [line["via"] for line in lines(folder / "s-1.log.jsonl") if line["type"] == "message"]
    assert vias == ["repair"] * 4


async def test_the_summary_of_a_snapshot_opens_no_turn_and_stays(make_tree, talk, folder):
    async with make_tree().writing() as tree:
        for number in range(3):
            await talk.turn(tree, number)
        turns = tree.view().turns
        tree.append_compaction("They talked.", turns[0].id, turns[1].id, "m", 1)
        await tree.commit()
        position, messages = _position(tree), tree.messages()
    _lose(folder)
    async with make_tree().writing() as tree:
        tree.adopt(reconcile(tree, position, messages))
        await talk.turn(tree, 9)
    view = await make_tree().load()
    assert [message["id"] for message in view.messages] == [messages[0]["id"], "u2", "a2", "u9", "a9"]
    assert view.messages[0]["content"] == messages[0]["content"]


async def test_a_ledger_restored_from_a_backup_gets_what_it_lacks(make_tree, talk, folder):
    await _talked(make_tree, talk, turns=1)
    backup = {path: path.read_bytes() for path in folder.iterdir()}
    async with make_tree().writing() as tree:
        await talk.turn(tree, 1)
    position, messages = _position(tree), tree.messages()
    for path, data in backup.items():
        path.write_bytes(data)

    async with make_tree().writing() as tree:
        decision = reconcile(tree, position, messages)
        assert decision == AppendMissing(tuple(messages[2:]))
        tree.adopt(decision)
        assert tree.messages() == messages
    assert (await make_tree().load()).messages == messages


async def test_each_with_what_the_other_lacks_makes_a_branch_and_the_ledger_goes_on(make_tree, talk, folder, lines):
    await _talked(make_tree, talk, turns=1)
    backup = {path: path.read_bytes() for path in folder.iterdir()}
    async with make_tree().writing() as tree:
        await talk.turn(tree, 5)
    position, messages = _position(tree), tree.messages()
    for path, data in backup.items():
        path.write_bytes(data)
    async with make_tree().writing() as tree:
        await talk.turn(tree, 6)
        decision = reconcile(tree, position, messages)
        assert decision == Branch("a0", tuple(messages[2:]))
        assert "branch" in (tree.adopt(decision) or "")
        assert talk.ids(tree) == ["u0", "a0", "u6", "a6"]
        await talk.turn(tree, 7)

    cold = make_tree()
    assert (await cold.load()).messages == tree.messages()
    assert talk.ids(cold) == ["u0", "a0", "u6", "a6", "u7", "a7"]
    entries = {line["id"]: line for line in lines(folder / "s-1.log.jsonl")}
    branch = _ancestors(entries, next(e for e in entries.values() if e.get("message", {}).get("id") == "a5"))
    assert branch == ["u0", "a0", "u5", "a5"]
    assert verify_chain((folder / "s-1.log.jsonl").read_bytes()) == []
    context = [line["message"]["id"] for line in lines(folder / "s-1.jsonl")[1:]]
    assert context == ["u0", "a0", "u6", "a6", "u7", "a7"]


def _ancestors(entries, entry):
    found = []
    while entry:
        if entry["type"] == "message":
            found.append(entry["message"]["id"])
        entry = entries.get(entry.get("parentId"))
    return found[::-1]


async def test_messages_of_a_branch_belong_to_its_own_turns(make_tree, talk, folder, lines):
    await _talked(make_tree, talk, turns=1)
    async with make_tree().writing() as tree:
        await talk.turn(tree, 6)
        tree.adopt(Branch("a0", (talk.user("other", "u5"), talk.assistant("way", "a5"))))
    entries = [line for line in lines(folder / "s-1.log.jsonl") if line["type"] == "message"]
    of = {line["message"]["id"]: line for line in entries}
    assert of["a5"]["turnId"] == of["u5"]["turnId"] == of["u5"]["id"]


@pytest.mark.parametrize("change", [{"hash": "00" * 32}, {"seq": "x"}, {"seq": None}])
async def test_a_position_that_is_not_the_ledgers_is_decided_by_the_messages(make_tree, talk, change):
    tree, position, messages = await _talked(make_tree, talk)
    assert reconcile(tree, {**position, **change}, messages) == LedgerWins()
    more = [*messages, talk.user("more", "u9")]
    assert reconcile(tree, {**position, **change}, more) == AppendMissing((more[-1],))


async def test_a_snapshot_of_a_deleted_ledger_is_ignored(make_tree, talk, folder):
    tree, position, messages = await _talked(make_tree, talk)
    await SessionCatalog(folder, "notes", ("alice",)).delete("s-1")
    async with make_tree().writing() as fresh:
        decision = reconcile(fresh, position, messages)
        assert decision == Ignore(tree.ledger_id)
        assert "ignored" in (fresh.adopt(decision) or "")
        assert fresh.messages() == []


async def test_the_same_decision_a_second_time_adds_nothing(make_tree, talk, folder):
    _, _, messages = await _talked(make_tree, talk)
    more = [*messages, talk.user("more", "u9")]
    async with make_tree().writing() as tree:
        tree.adopt(reconcile(tree, None, more))
    before = (folder / "s-1.log.jsonl").read_bytes()
    async with make_tree().writing() as tree:
        assert tree.adopt(reconcile(tree, None, more)) is None
    assert (folder / "s-1.log.jsonl").read_bytes() == before


# ---- what the ledger left behind is no news to it


async def _decision(tree, position, messages):
    return reconcile(tree, position, messages, await tree.message_ids())


@pytest.mark.parametrize("position", [None, {}, {"ledgerId": "another", "seq": 3, "hash": "00" * 32}])
async def test_rewound_turns_do_not_come_back_from_a_snapshot_without_a_position(make_tree, talk, position):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 0)
        end = tree.leaf
        await talk.turn(tree, 1)
        messages = tree.messages()
        await tree.branch(end)
        await tree.commit()
        assert talk.ids(tree) == ["u0", "a0"]
        assert await _decision(tree, position, messages) == LedgerWins()


async def test_summarised_messages_do_not_come_back_from_a_snapshot_without_a_position(make_tree, talk):
    async with make_tree().writing() as tree:
        for number in range(3):
            await talk.turn(tree, number)
        old = tree.messages()
        turns = tree.view().turns
        tree.append_compaction("First.", turns[0].id, turns[0].id, "m", 1)
        await tree.commit()
        middle = tree.messages()
        tree.append_compaction("Second.", turns[1].id, turns[1].id, "m", 1)
        await tree.commit()
        assert await _decision(tree, None, old) == LedgerWins()
        assert await _decision(tree, None, middle) == LedgerWins()


async def test_what_was_said_behind_a_rewound_turn_becomes_a_branch(make_tree, talk):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 0)
        end = tree.leaf
        await talk.turn(tree, 1)
        messages = [*tree.messages(), talk.user("lost", "u2")]
        await tree.branch(end)
        await tree.commit()
        assert await _decision(tree, None, messages) == Branch("a0", (messages[-1],))


async def test_a_snapshot_that_names_no_ledger_is_ignored_where_one_was_deleted(make_tree, talk, folder):
    _, _, messages = await _talked(make_tree, talk)
    await SessionCatalog(folder, "notes", ("alice",)).delete("s-1")
    async with make_tree().writing() as fresh:
        assert reconcile(fresh, None, messages) == Ignore(None)
        assert reconcile(fresh, {"ledgerId": 7}, messages) == Ignore(None)
        await talk.turn(fresh, 7)
        assert reconcile(fresh, None, messages) == Ignore(None)
        assert reconcile(fresh, None, fresh.messages()) == LedgerWins()


async def test_an_answer_whose_commit_was_cut_off_comes_back_from_a_snapshot(make_tree, talk):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 0)
        end = tree.leaf
        await talk.turn(tree, 1)
        await tree.branch(end)
        tree.add_message(talk.user("question", "u2"), via="user")
        tree.add_message(talk.assistant("answer", "a2"), via="model", request=talk.request(tree))
        await tree.commit()
    async with make_tree().writing() as tree:
        assert await tree.message_ids() == {"u0", "a0", "u1", "a1", "u2"}
        messages = [*tree.messages(), talk.assistant("answer", "a2")]
        assert await _decision(tree, None, messages) == AppendMissing((messages[-1],))
