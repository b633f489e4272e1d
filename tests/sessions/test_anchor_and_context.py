"""The copies beside the ledger: they make resuming cheap, and may be lost at any time."""

import json
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.ids import MAX_ID_BYTES, new_id
from harness.sessions import Anchor, Position, SessionTree
from harness.sessions.lines.anchor import encode_anchor, is_deleted, parse_anchor

HASH = "ab" * 32
LEDGER = "01a22e21-7630-7feb-9bcc-1d7a9820ae8c"


def _anchor(session="s-1", **fields):
    given = {"count": 12, "bytes": 3456, "hash": HASH, "leaf": LEDGER, **fields}
    return Anchor(LEDGER, session, **given)


def test_the_block_has_512_bytes_and_its_fields_in_order():
    block = encode_anchor(_anchor(boundary=Position(3, 200), deleted=("old",)))
    assert len(block) == 512
    assert block.endswith(b" \n")
    assert list(json.loads(block)) == [
        "v", "ledgerId", "session", "count", "bytes", "hash", "leaf", "boundary", "deleted", "sum",
    ]  # fmt: skip


@pytest.mark.parametrize("session", ["s", "x" * 64, "x" * 65, "x" * MAX_ID_BYTES, "日" * 1000, '"' * 60, "\x01" * 50])
def test_any_session_id_and_any_size_fit(session):
    anchor = _anchor(session, count=10**12, bytes=10**15, boundary=Position(10**12, 10**15), deleted=(LEDGER,))
    parsed = parse_anchor(encode_anchor(anchor))
    assert parsed is not None
    assert parsed.names(session)
    assert not parsed.names("other")
    assert (parsed.count, parsed.bytes, parsed.boundary) == (10**12, 10**15, Position(10**12, 10**15))
    assert parsed.deleted == (LEDGER,)


def test_of_many_deleted_ledgers_the_newest_are_remembered():
    parsed = parse_anchor(encode_anchor(_anchor(deleted=tuple(f"{n:036}" for n in range(50)))))
    assert parsed is not None
    assert 1 <= len(parsed.deleted) < 50
    assert parsed.deleted[-1] == f"{49:036}"


@pytest.mark.parametrize("timed_every", [1, 2, 7, 100])
def test_of_deleted_ledgers_none_is_forgotten_though_their_ids_tell_no_time(timed_every):
    ids = [new_id() if number % timed_every == 0 else str(uuid.uuid4()) for number in range(40)]
    alive, deleted = [new_id(), "no id of ours"], ()
    for ledger_id in ids:
        parsed = parse_anchor(encode_anchor(_anchor("e" * 66, deleted=(*deleted, ledger_id))))
        assert parsed is not None
        deleted = parsed.deleted
    assert [is_deleted(ledger_id, deleted) for ledger_id in ids] == [True] * 40
    assert [is_deleted(ledger_id, deleted) for ledger_id in alive] == [False, timed_every > 1]
    assert len(deleted) > 1


def test_while_all_deleted_ledgers_are_named_no_other_counts_as_deleted():
    named = (str(uuid.uuid4()), str(uuid.uuid4()))
    parsed = parse_anchor(encode_anchor(_anchor(deleted=named)))
    assert parsed is not None
    assert parsed.deleted == named
    assert not is_deleted(str(uuid.uuid4()), parsed.deleted)


@pytest.mark.parametrize("session", ["s", "x" * 60, "\u00e9" * 100])
@pytest.mark.parametrize("key", [None, b"k" * 16])
def test_of_deleted_ledgers_none_is_forgotten_however_many_there_are(session, key):
    ids, deleted = [new_id() for _ in range(40)], ()
    for ledger_id in ids:
        # A ledger lives behind each deletion: its anchor has less room than the one that stays behind.
        for count in (0, 10**9):
            anchor = _anchor(session, count=count, bytes=count, boundary=Position(count, count), deleted=deleted)
            parsed = parse_anchor(encode_anchor(anchor, key))
            assert parsed is not None
            deleted = parsed.deleted
        deleted = (*deleted, ledger_id)
    assert [is_deleted(ledger_id, deleted) for ledger_id in ids] == [True] * 40
    assert not is_deleted(new_id(), deleted)
    assert not is_deleted("no id of ours", deleted)


@given(st.integers(0, 511 * 8 - 1))
def test_a_block_with_one_bit_changed_is_no_anchor_or_the_same_one(bit):
    block = bytearray(encode_anchor(_anchor()))
    block[bit // 8] ^= 1 << bit % 8
    parsed = parse_anchor(bytes(block))
    assert parsed in (None, _anchor())


async def _three_turns(tree, talk, compacted):
    for number in (1, 2, 3):
        await talk.turn(tree, number, tool=number == 2)
    if compacted:
        turns = tree.view().turns
        tree.append_compaction("Summary.", turns[0].id, turns[0].id, "m-1", 100)
        await tree.commit()


def _spoil(path, how):
    if how == "missing":
        path.unlink()
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "cut":
        path.write_bytes(path.read_bytes()[:-97])
    elif how == "garbage":
        path.write_bytes(b"\x00\xff" * 256)
    else:
        path.write_bytes(b'{"type":"context","ledgerId":"other"}\n' + path.read_bytes().partition(b"\n")[2])


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("how", ["missing", "empty", "cut", "garbage"])
async def test_a_lost_anchor_is_made_anew_by_the_next_writer(make_tree, talk, folder, how, compacted):
    async with make_tree().writing() as tree:
        await _three_turns(tree, talk, compacted)
    known, boundary = tree.messages(), tree.boundary
    _spoil(folder / "s-1.head.json", how)

    async with make_tree().writing() as cold:
        assert [found.kind for found in cold.damage] == ["anchor"]
        assert (cold.messages(), cold.boundary) == (known, boundary)
        await talk.turn(cold, 4)
    after = make_tree()
    await after.load()
    assert after.damage == []
    assert after.boundary == boundary


async def test_the_anchor_of_another_ledger_is_not_believed(make_tree, talk, folder):
    async with make_tree("other").writing() as other:
        await talk.turn(other, 7)
    async with make_tree().writing() as tree:
        await _three_turns(tree, talk, True)
    (folder / "s-1.head.json").write_bytes((folder / "other.head.json").read_bytes())
    assert (await make_tree().load()).messages == tree.messages()


async def test_a_ledger_cut_below_its_anchor_is_read_and_reported(make_tree, talk, folder):
    async with make_tree().writing() as tree:
        await _three_turns(tree, talk, False)
    ledger = folder / "s-1.log.jsonl"
    ledger.write_bytes(b"\n".join(ledger.read_bytes().split(b"\n")[:8]) + b"\n")
    cold = make_tree()
    assert (await cold.load()).messages[0]["id"] == "u1"
    assert [found.kind for found in cold.damage] == ["truncated"]


async def test_a_changed_line_above_the_boundary_makes_the_reader_read_everything(make_tree, talk, folder):
    async with make_tree().writing() as tree:
        await _three_turns(tree, talk, True)
    ledger = folder / "s-1.log.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b'"question 1"', b'"longer question 1"'))
    cold = make_tree()
    assert (await cold.load()).messages == tree.messages()
    assert [found.kind for found in cold.damage] == ["anchor"]


async def test_lines_written_after_the_last_sync_are_read(make_tree, talk, folder):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 1)
        anchored = (folder / "s-1.head.json").read_bytes()
        await talk.turn(tree, 2)
    (folder / "s-1.head.json").write_bytes(anchored)
    cold = make_tree()
    assert (await cold.load()).messages == tree.messages()
    assert cold.damage == []


async def test_a_boundary_that_the_anchor_does_not_name_yet_counts(make_tree, talk, folder):
    async with make_tree().writing() as tree:
        await _three_turns(tree, talk, False)
        anchored = (folder / "s-1.head.json").read_bytes()
        turns = tree.view().turns
        tree.append_compaction("Summary.", turns[0].id, turns[1].id, "m-1", 100)
    (folder / "s-1.head.json").write_bytes(anchored)
    cold = make_tree()
    assert (await cold.load()) == tree.view()
    assert cold.boundary == tree.boundary


# ---- the context file


def _expected_context(folder, lines):
    """The newest boundary's line and the message lines that count, copied from the ledger's bytes."""
    raw = (folder / "s-1.log.jsonl").read_bytes().split(b"\n")[:-1]
    parsed = [json.loads(line) for line in raw]
    done = {entry["requestId"] for entry in parsed if entry["type"] == "request_end" and entry["status"] == "completed"}
    return [
        line
        for line, entry in zip(raw, parsed, strict=True)
        if entry["type"] == "message" and (entry["via"] != "model" or entry["requestId"] in done)
    ]


async def test_the_context_file_holds_copies_of_the_lines_the_model_sees(make_tree, talk, folder, lines):
    async with make_tree().writing() as tree:
        await _three_turns(tree, talk, False)
    head, *copies = (folder / "s-1.jsonl").read_bytes().split(b"\n")[:-1]
    assert json.loads(head)["type"] == "context"
    assert list(json.loads(head)) == ["type", "ledgerId", "seq", "hash", "policy"]
    assert json.loads(head)["ledgerId"] == tree.ledger_id
    assert copies == _expected_context(folder, lines)


async def test_output_of_failed_requests_never_reaches_the_context_file(make_tree, talk, folder, lines):
    async with make_tree().writing() as tree:
        tree.add_message(talk.user("hi", "u1"), via="user")
        request = talk.request(tree)
        tree.add_message(talk.assistant("hel", "a0"), via="model", request=request)
        await tree.commit(sync=False)
        tree.end_request(request, "failed")
        await talk.answer(tree, "hello", "a1")
    messages = [line["message"]["id"] for line in lines(folder / "s-1.jsonl")[1:]]
    assert messages == ["u1", "a1"]


async def test_a_compaction_replaces_the_context_file(make_tree, talk, folder, lines):
    async with make_tree().writing() as tree:
        await _three_turns(tree, talk, False)
        turns = tree.view().turns
        tree.append_compaction("Summary.", turns[0].id, turns[1].id, "m-1", 100)
        await tree.commit()
        await talk.turn(tree, 4)
    head, *rest = lines(folder / "s-1.jsonl")
    shown = [line["message"]["id"] if line["type"] == "message" else line["type"] for line in rest]
    assert shown == ["u3", "a3", "compaction", "u4", "a4"]
    assert head["ledgerId"] == tree.ledger_id


@pytest.mark.parametrize("how", ["missing", "empty", "cut", "garbage", "foreign"])
async def test_a_context_file_that_is_not_right_is_rebuilt_by_the_next_writer(make_tree, talk, folder, lines, how):
    async with make_tree().writing() as tree:
        await _three_turns(tree, talk, False)
    _spoil(folder / "s-1.jsonl", how)
    async with make_tree().writing() as cold:
        await talk.turn(cold, 4)
    head, *copies = (folder / "s-1.jsonl").read_bytes().split(b"\n")[:-1]
    assert json.loads(head)["ledgerId"] == tree.ledger_id
    assert copies == _expected_context(folder, lines)


async def test_a_context_file_removed_during_a_call_is_rebuilt_at_once(make_tree, talk, folder, lines):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 1)
        (folder / "s-1.jsonl").unlink()
        await talk.turn(tree, 2)
    assert (folder / "s-1.jsonl").read_bytes().split(b"\n")[1:-1] == _expected_context(folder, lines)


async def test_appending_to_the_context_costs_what_is_new(make_tree, talk, folder, monkeypatch):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 1)
        inode = (folder / "s-1.jsonl").stat().st_ino
        for number in range(2, 6):
            await talk.turn(tree, number)
    assert (folder / "s-1.jsonl").stat().st_ino == inode


def test_two_sessions_whose_ids_look_like_files_do_not_meet(tmp_path, talk):
    import asyncio

    async def check():
        for name in ("a", "a.log", "sessions", "sessions.json", "files", "a.head"):
            tree = SessionTree(tmp_path, name, agent="n", namespace=())
            async with tree.writing():
                tree.add_message(talk.user(name, name), via="user")
        for name in ("a", "a.log", "sessions", "sessions.json", "files", "a.head"):
            view = await SessionTree(tmp_path, name, agent="n", namespace=()).load()
            assert [message["id"] for message in view.messages] == [name]

    asyncio.run(check())
