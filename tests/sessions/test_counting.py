"""Turns in the list of sessions are those in the ledgers, each counted once, whoever notes it."""

import json

import pytest

from harness.sessions import SessionCatalog


@pytest.fixture
def catalog(folder):
    return SessionCatalog(folder, "notes", ("alice",), interval=0.01)


async def _make(make_tree, talk, *names):
    for name in names:
        async with make_tree(name).writing() as tree:
            await talk.turn(tree, 1)


async def _more(make_tree, talk, number, session="s-1"):
    async with make_tree(session).writing() as tree:
        await talk.turn(tree, number)


async def test_a_turn_counts_once_whoever_notes_it_and_in_whatever_order(make_tree, talk, folder, catalog):
    await _make(make_tree, talk, "s-1")
    other = SessionCatalog(folder, "notes", ("alice",))
    catalog.note_turn("s-1", prompt="question 1")
    assert [info.turns for info in await other.list()] == [1]
    await catalog.flush()
    for number, first, second in ((2, catalog, other), (4, other, catalog)):
        await _more(make_tree, talk, number)
        first.note_turn("s-1")
        await _more(make_tree, talk, number + 1)
        second.note_turn("s-1")
        await second.flush()
        await first.flush()
    assert [info.turns for info in await catalog.list()] == [5]
    await other.aclose()


async def test_a_note_of_what_is_not_in_the_ledger_counts_nothing(make_tree, talk, catalog):
    await _make(make_tree, talk, "s-1")
    await catalog.list()
    for _ in range(2):
        catalog.note_turn("s-1")
        catalog.note_title("s-1", " ")
    assert [(info.turns, info.title) for info in await catalog.list()] == [(1, "question 1")]


async def test_only_what_is_new_is_read_to_count_turns(make_tree, talk, folder, catalog):
    await _make(make_tree, talk, "s-1")
    await catalog.list()
    path = folder / "s-1.log.jsonl"
    before = path.read_bytes()
    await _more(make_tree, talk, 2)
    path.write_bytes(b"x" * (len(before) - 1) + path.read_bytes()[len(before) - 1 :])
    catalog.note_turn("s-1")
    assert [info.turns for info in await catalog.list()] == [2]


@pytest.mark.parametrize("said", [0, 1, 70])
@pytest.mark.parametrize("kind", ["not known", "nonsense", "torn"])
async def test_where_nobody_knows_what_was_counted_the_next_turn_has_it_counted(
    make_tree, talk, folder, catalog, kind, said
):
    await _make(make_tree, talk, "s-1")
    await catalog.list()
    ledger, index = folder / "s-1.log.jsonl", folder / "sessions.json"
    listed = json.loads(index.read_bytes())
    if kind == "torn":
        ledger.write_bytes(ledger.read_bytes() + b'{"type":"mes')
    listed["counted"] = {"s-1": {"seq": "x"}} if kind == "nonsense" else {}
    listed["sessions"]["s-1"]["turns"] = said
    index.write_bytes(json.dumps(listed).encode())
    catalog.note_turn("s-1")
    assert [info.turns for info in await catalog.list()] == [1]
    await _more(make_tree, talk, 3)
    await _more(make_tree, talk, 4)
    catalog.note_turn("s-1")
    assert [info.turns for info in await catalog.list()] == [3]
    catalog.note_turn("s-1")
    assert [info.turns for info in await catalog.list()] == [3]


@pytest.mark.parametrize("kind", ["shorter", "cut within", "another"])
async def test_turns_are_counted_anew_where_the_ledger_is_not_the_one_that_was_counted(
    make_tree, talk, folder, catalog, kind
):
    await _make(make_tree, talk, "s-1")
    await _more(make_tree, talk, 2)
    await catalog.list()
    ledger, index = folder / "s-1.log.jsonl", folder / "sessions.json"
    raw, listed = ledger.read_bytes(), json.loads(index.read_bytes())
    lines = raw.splitlines(keepends=True)
    if kind == "shorter":
        ledger.write_bytes(b"".join(lines[: len(lines) // 2]))
    elif kind == "cut within":
        ledger.write_bytes(raw[:-9] + b"\n" + raw[-9:] * 9)
    elif kind == "another":
        ledger.write_bytes(raw + lines[1])
    listed["sessions"]["s-1"]["turns"] = 70
    index.write_bytes(json.dumps(listed).encode())
    expected = {"shorter": 1, "another": 3}.get(kind, 2)
    for _ in range(2):
        catalog.note_turn("s-1")
        assert [info.turns for info in await catalog.list()] == [expected]
