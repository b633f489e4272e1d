"""Half a line at the end harms nothing before it and nothing after it (case B01)."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.sessions import SessionTree, verify_chain


async def _five_records(make_tree, talk, folder):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 1)
        await talk.turn(tree, 2)
    return (folder / "s-1.log.jsonl").read_bytes()


async def test_a_torn_line_becomes_a_line_of_its_own_and_the_next_one_is_whole(make_tree, talk, folder):
    whole = await _five_records(make_tree, talk, folder)
    ledger = folder / "s-1.log.jsonl"
    ledger.write_bytes(whole[:-97])
    context = folder / "s-1.jsonl"
    context.write_bytes(context.read_bytes()[:-97])

    async with make_tree().writing() as tree:
        assert [found.kind for found in tree.damage] == ["torn", "truncated"]
        tree.add_message(talk.user("after the crash", "u3"), via="user")

    data = ledger.read_bytes()
    assert data.startswith(whole[:-97] + b"\n{")
    entry = json.loads(data.split(b"\n")[-2])
    assert entry["message"]["id"] == "u3"
    assert entry["seq"] == data.count(b"\n")
    assert [finding.kind for finding in verify_chain(data)] == ["torn"]
    assert not any(finding.error for finding in verify_chain(data))


async def test_reopening_again_and_again_reports_one_fragment_and_writes_nothing(make_tree, talk, folder):
    whole = await _five_records(make_tree, talk, folder)
    ledger = folder / "s-1.log.jsonl"
    ledger.write_bytes(whole[:-97])
    async with make_tree().writing() as tree:
        tree.add_message(talk.user("after", "u3"), via="user")
    after = ledger.read_bytes()

    for _ in range(3):
        cold = make_tree()
        async with cold.writing():
            assert [found.kind for found in cold.damage] == ["bad"]
    assert ledger.read_bytes() == after


async def test_a_whole_record_without_its_line_end_is_kept(make_tree, talk, folder):
    whole = await _five_records(make_tree, talk, folder)
    ledger = folder / "s-1.log.jsonl"
    ledger.write_bytes(whole[:-1])

    async with make_tree().writing() as tree:
        assert talk.ids(tree) == ["u1", "a1", "u2", "a2"]
        tree.add_message(talk.user("next", "u3"), via="user")

    data = ledger.read_bytes()
    assert data.startswith(whole)
    assert verify_chain(data) == []
    assert [m["id"] for m in (await make_tree().load()).messages] == ["u1", "a1", "u2", "a2", "u3"]


async def test_a_reader_heals_nothing(make_tree, talk, folder):
    whole = await _five_records(make_tree, talk, folder)
    ledger = folder / "s-1.log.jsonl"
    ledger.write_bytes(whole[:-97])

    await make_tree().load()
    async with make_tree().writing():
        pass
    assert ledger.read_bytes() == whole[:-97]


async def test_a_cut_at_every_byte_of_the_last_two_lines_loses_no_line_before_it(tmp_path, talk):
    folder = tmp_path / "cut"
    folder.mkdir()

    async def check(cut: int, data: bytes, anchor: bytes) -> None:
        (folder / "s.head.json").write_bytes(anchor)
        (folder / "s.log.jsonl").write_bytes(data[:cut])
        tree = SessionTree(folder, "s", agent="a", namespace=(), durability="none")
        async with tree.writing():
            tree.add_message(talk.user("after", "after"), via="user")
        after = (folder / "s.log.jsonl").read_bytes()
        assert after.startswith(data[:cut])
        assert not any(finding.error for finding in verify_chain(after))
        cold = SessionTree(folder, "s", agent="a", namespace=())
        assert (await cold.load()).messages == tree.messages()
        assert talk.ids(cold)[-1] == "after"
        assert talk.ids(cold)[:2] == ["u1", "a1"]

    base = tmp_path / "base"
    tree = SessionTree(base, "s", agent="a", namespace=())
    async with tree.writing():
        await talk.turn(tree, 1)
        tree.add_message(talk.user("second", "u2"), via="user")
        tree.add_message(talk.user("third \u2028 日本", "u3"), via="user")
    data, anchor = (base / "s.log.jsonl").read_bytes(), (base / "s.head.json").read_bytes()
    start = len(b"\n".join(data.split(b"\n")[:-3])) + 1
    for cut in range(start, len(data)):
        await check(cut, data, anchor)


@given(garbage=st.binary(min_size=1, max_size=60), line=st.integers(1, 5))
def test_a_line_of_garbage_anywhere_is_stepped_over_and_left_in_place(tmp_path_factory, talk, garbage, line):
    async def check() -> None:
        folder = tmp_path_factory.mktemp("garbage")
        tree = SessionTree(folder, "s", agent="a", namespace=())
        async with tree.writing():
            await talk.turn(tree, 1)
        path = folder / "s.log.jsonl"
        lines = path.read_bytes().split(b"\n")
        lines[line] = b"\x00" + garbage.replace(b"\n", b" ")
        path.write_bytes(b"\n".join(lines))
        cold = SessionTree(folder, "s", agent="a", namespace=())
        async with cold.writing():
            cold.add_message(talk.user("goes on", "u2"), via="user")
        assert path.read_bytes().startswith(b"\n".join(lines))
        assert [m["id"] for m in (await SessionTree(folder, "s", agent="a", namespace=()).load()).messages][-1] == "u2"

    asyncio.run(check())


async def test_a_bad_header_line_keeps_its_bytes_and_the_session_its_identity(make_tree, talk, folder):
    whole = await _five_records(make_tree, talk, folder)
    known = (await _loaded(make_tree())).ledger_id
    ledger = folder / "s-1.log.jsonl"
    ledger.write_bytes(b"x" + whole[1:])

    async with make_tree().writing() as tree:
        assert tree.ledger_id == known
        assert [found.kind for found in tree.damage] == ["bad", "header"]
        assert talk.ids(tree) == ["u1", "a1", "u2", "a2"]
        await talk.turn(tree, 3)
    assert ledger.read_bytes().startswith(b"x" + whole[1:])
    assert talk.ids(await _loaded(make_tree()))[-1] == "a3"


async def test_without_header_and_anchor_the_identity_is_still_the_same_each_time(make_tree, talk, folder):
    whole = await _five_records(make_tree, talk, folder)
    (folder / "s-1.log.jsonl").write_bytes(b"x" + whole[1:])
    (folder / "s-1.head.json").unlink()

    first, second = await _loaded(make_tree()), await _loaded(make_tree())
    assert first.ledger_id == second.ledger_id
    assert first.ledger_id is not None


async def _loaded(tree):
    await tree.load()
    return tree


@pytest.mark.parametrize("tail", [b"\n", b"\n\n\n", b"\x00" * 40, b"   "])
async def test_blank_lines_and_zeros_at_the_end_count_as_lines(make_tree, talk, folder, tail):
    whole = await _five_records(make_tree, talk, folder)
    ledger = folder / "s-1.log.jsonl"
    ledger.write_bytes(whole + tail)

    async with make_tree().writing() as tree:
        tree.add_message(talk.user("next", "u3"), via="user")

    data = ledger.read_bytes()
    assert data.startswith(whole + tail)
    assert json.loads(data.split(b"\n")[-2])["seq"] == data.count(b"\n")
    assert not any(finding.error for finding in verify_chain(data))
