"""The list of sessions is a copy of what the files say (case B14); history, search and delete go by the ledger."""

import asyncio
import json
import os
import sys

import pytest

from harness.errors import PersistenceError, SessionBusy, SessionDamaged, SessionNotFound
from harness.sessions import SessionCatalog, SessionInfo
from harness.sessions.catalog import index, usage
from harness.sessions.catalog import session_catalog as catalog_module
from harness.sessions.catalog.usage import read_usage
from harness.sessions.lines.entries import START
from harness.sessions.lines.layout import Owner, SessionFiles
from harness.sessions.lines.skimming import read_entries, skim


@pytest.fixture
def catalog(folder):
    return SessionCatalog(folder, "notes", ("alice",), interval=0.01)


async def _make(make_tree, talk, *names):
    for name in names:
        async with make_tree(name).writing() as tree:
            await talk.turn(tree, 1)


async def _ids(catalog):
    return [info.id for info in await catalog.list()]


# ---- the list

DAMAGE = {
    "deleted": None,
    "zero": b"",
    "truncated": b'{"version":1,"sessions":{"s-1":{"summary":"Garden","updatedAt":"2026-03-0',
    "extra data": b'{"version":1,"sessions":{}}{"version":1,"sess',
    "wrong type": b"[]",
    "wrong inner type": b'{"version":1,"sessions":[]}',
    "nul": b"\x00" * 40,
    "dangling": json.dumps(
        {
            "version": 1,
            "sessions": {
                "gone": {"title": "", "summary": "", "createdAt": "2026-03-01T00:00:00Z",
                         "updatedAt": "2026-03-01T00:00:00Z", "turns": 1},
                "../../outside": {"summary": "bad id", "updatedAt": "2026-03-01T00:00:00Z"},
                "s-1": {"summary": 7, "updatedAt": "soon"},
            },
        }
    ).encode(),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGE)
async def test_sessions_are_listed_whatever_became_of_the_index(make_tree, talk, folder, catalog, kind):
    await _make(make_tree, talk, "s-1", "s-2", "s-3")
    await catalog.list()
    _put(folder / "sessions.json", DAMAGE[kind])

    assert await _ids(SessionCatalog(folder, "notes", ("alice",))) == ["s-1", "s-2", "s-3"]
    await _make(make_tree, talk, "s-4")
    assert await _ids(SessionCatalog(folder, "notes", ("alice",))) == ["s-1", "s-2", "s-3", "s-4"]
    assert list(json.loads((folder / "sessions.json").read_bytes())["sessions"]) == ["s-1", "s-2", "s-3", "s-4"]


@pytest.mark.parametrize("kind", DAMAGE)
async def test_the_first_write_after_damage_does_not_make_the_loss_final(make_tree, talk, folder, catalog, kind):
    await _make(make_tree, talk, "s-1", "s-2", "s-3")
    await catalog.list()
    _put(folder / "sessions.json", DAMAGE[kind])
    await _make(make_tree, talk, "s-4")
    catalog.note_turn("s-4", prompt="hi")
    await catalog.aclose()
    assert list(json.loads((folder / "sessions.json").read_bytes())["sessions"]) == ["s-1", "s-2", "s-3", "s-4"]


@pytest.mark.parametrize("kind", ["zero", "truncated", "extra data", "wrong type", "nul"])
async def test_a_damaged_index_is_kept_under_another_name(make_tree, talk, folder, catalog, kind):
    await _make(make_tree, talk, "s-1")
    _put(folder / "sessions.json", DAMAGE[kind])
    await catalog.list()
    assert [path.read_bytes() for path in folder.glob("sessions.json.damaged-*")] == [DAMAGE[kind]]


async def test_the_case_files(make_tree, talk, folder, shared):
    await _make(make_tree, talk, "s-1", "s-2", "s-3")
    for path in sorted((shared / "cases" / "B14").glob("sessions-*.json")):
        _put(folder / "sessions.json", path.read_bytes())
        assert await _ids(SessionCatalog(folder, "notes", ("alice",))) == ["s-1", "s-2", "s-3"]


def _put(path, data):
    path.unlink(missing_ok=True)
    if data is not None:
        path.write_bytes(data)


async def test_an_entry_is_made_from_the_ledger_where_the_index_has_none(make_tree, talk, catalog):
    async with make_tree().writing() as tree:
        tree.add_message(talk.user("Plan the garden\nwith care", "u0"), via="user")
        await talk.answer(tree, "ok", "a0")
        await talk.turn(tree, 1)
    (info,) = await catalog.list()
    assert (info.id, info.title, info.turns) == ("s-1", "Plan the garden", 2)
    assert info.created_at == tree.header["created"]
    assert info.updated_at >= info.created_at


async def test_titles_are_cut_at_80_characters(make_tree, talk, catalog):
    async with make_tree().writing() as tree:
        tree.add_message(talk.user("日" * 200, "u1"), via="user")
    assert (await catalog.list())[0].title == "日" * 80


@pytest.mark.parametrize("name", ["a.log", "A b", "日本", "x" * 300, "../up"])
async def test_any_session_id_comes_back_from_its_file(make_tree, talk, catalog, name):
    await _make(make_tree, talk, name)
    assert await _ids(catalog) == [name]


async def _more(make_tree, talk, number, session="s-1"):
    async with make_tree(session).writing() as tree:
        await talk.turn(tree, number)


async def test_noted_turns_are_counted_on_top_of_the_index(make_tree, talk, folder, catalog):
    await _make(make_tree, talk, "s-1")
    await catalog.list()
    for number in (2, 3, 4):
        await _more(make_tree, talk, number)
        catalog.note_turn("s-1", prompt="later", summary="sum")
    await catalog.aclose()
    stored = json.loads((folder / "sessions.json").read_bytes())["sessions"]["s-1"]
    assert (stored["title"], stored["summary"], stored["turns"]) == ("question 1", "sum", 4)


async def test_the_first_turn_is_not_counted_twice(make_tree, talk, folder, catalog):
    await _make(make_tree, talk, "s-1")
    catalog.note_turn("s-1", prompt="question 1")
    assert [info.turns for info in await catalog.list()] == [1]
    await catalog.aclose()
    assert json.loads((folder / "sessions.json").read_bytes())["sessions"]["s-1"]["turns"] == 1


async def test_listing_between_notes_counts_each_once(make_tree, talk, catalog):
    await _make(make_tree, talk, "s-1")
    await catalog.list()
    await _more(make_tree, talk, 2)
    catalog.note_turn("s-1")
    await catalog.list()
    assert [info.turns for info in await catalog.list()] == [2]
    await catalog.aclose()


async def test_changes_are_written_in_the_background(make_tree, talk, folder, catalog):
    await _make(make_tree, talk, "s-1")
    when = "2026-01-01T00:00:00.000000Z"
    catalog.note(SessionInfo("s-1", "Title", "Summary", when, when, 9))
    for _ in range(500):
        await asyncio.sleep(0.01)
        if (folder / "sessions.json").exists():
            break
    assert json.loads((folder / "sessions.json").read_bytes())["sessions"]["s-1"]["title"] == "Title"
    await catalog.aclose()


async def test_two_processes_do_not_undo_each_others_entries(make_tree, talk, folder, catalog):
    await _make(make_tree, talk, "s-1", "s-2")
    other = SessionCatalog(folder, "notes", ("alice",))
    await catalog.list()
    catalog.note_turn("s-1", summary="by one")
    other.note_turn("s-2", summary="by the other")
    await catalog.aclose()
    await other.aclose()
    assert [info.summary for info in await catalog.list()] == ["by one", "by the other"]


async def test_a_listing_reads_no_ledger_that_the_index_knows(make_tree, talk, folder, catalog):
    await _make(make_tree, talk, "s-1")
    first = await catalog.list()
    path = folder / "s-1.log.jsonl"
    times = (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    path.write_bytes(b"x" * path.stat().st_size)
    os.utime(path, ns=times)
    assert await catalog.list() == first


async def test_an_empty_folder_has_no_sessions_and_stays_absent(folder, catalog):
    assert await catalog.list() == []
    assert await catalog.search("x") == []
    await catalog.aclose()
    assert not folder.exists()


# ---- history


async def test_history_has_all_messages_compacted_ones_too(make_tree, talk, catalog):
    async with make_tree().writing() as tree:
        for number in range(5):
            await talk.turn(tree, number)
        turns = tree.view().turns
        tree.append_compaction("S.", turns[0].id, turns[3].id, "m", 1)
        await tree.commit()
        await talk.turn(tree, 5, tool=True)
    history = [message["id"] for message in await catalog.history("s-1", 1000)]
    assert history == [f"{kind}{n}" for n in range(5) for kind in "ua"] + ["u5", "c5", "r5", "a5"]
    assert [message["id"] for message in await catalog.history("s-1", 3)] == ["c5", "r5", "a5"]


async def test_history_leaves_out_what_hooks_put_in_and_what_failed(make_tree, talk, catalog):
    async with make_tree().writing() as tree:
        tree.add_message(talk.user("hi", "u1"), via="user")
        tree.add_message(talk.user("monday", "h1"), via="hook")
        failed = talk.request(tree)
        tree.add_message(talk.assistant("x", "f1"), via="model", request=failed)
        tree.end_request(failed, "failed")
        await talk.answer(tree, "hello", "a1")
    assert [message["id"] for message in await catalog.history("s-1", 10)] == ["u1", "a1"]


async def test_history_of_a_damaged_ledger_goes_on_behind_the_damage(make_tree, talk, folder, catalog):
    async with make_tree().writing() as tree:
        for number in range(4):
            await talk.turn(tree, number)
    path = folder / "s-1.log.jsonl"
    lines = path.read_bytes().split(b"\n")
    lines[8] = b"garbage"
    path.write_bytes(b"\n".join(lines))
    ids = [message["id"] for message in await catalog.history("s-1", 100)]
    assert ids[:2] == ["u0", "a0"]
    assert ids[-2:] == ["u3", "a3"]


async def test_history_read_in_small_blocks_is_the_same(make_tree, talk, catalog, monkeypatch):
    async with make_tree().writing() as tree:
        for number in range(6):
            await talk.turn(tree, number)
    whole = await catalog.history("s-1", 100)
    monkeypatch.setattr("harness.sessions.catalog.history._BLOCK", 97)
    assert await catalog.history("s-1", 100) == whole
    assert len(whole) == 12


async def test_history_of_an_unknown_session_is_an_error(catalog):
    with pytest.raises(SessionNotFound, match="s-9"):
        await catalog.history("s-9", 5)


async def test_history_of_somebody_elses_file_is_refused(make_tree, talk, folder):
    await _make(make_tree, talk, "s-1")
    with pytest.raises(SessionDamaged):
        await SessionCatalog(folder, "notes", ("bob",)).history("s-1", 5)


# ---- search


async def _say(make_tree, talk, name, *texts):
    async with make_tree(name).writing() as tree:
        for number, text in enumerate(texts):
            tree.add_message(talk.user(text, f"{name}-{number}"), via="user")


async def test_search_prefers_more_of_the_words_then_more_often(make_tree, talk, catalog):
    await _say(make_tree, talk, "s-1", "red apple", "red pear", "apple apple apple", "plum")
    hits = await catalog.search("red apple")
    assert [hit.snippet for hit in hits] == ["red apple", "apple apple apple", "red pear"]


async def test_search_finds_parts_of_words_in_any_script_and_case(make_tree, talk, catalog):
    await _say(make_tree, talk, "s-1", "京都の庭を見たい", "STRASSE", "Ölfarbe")
    assert [hit.snippet for hit in await catalog.search("の庭")] == ["京都の庭を見たい"]
    assert [hit.snippet for hit in await catalog.search("straße")] == ["STRASSE"]
    assert [hit.snippet for hit in await catalog.search("ölfarb")] == ["Ölfarbe"]


async def test_search_in_one_session_or_all(make_tree, talk, catalog):
    await _say(make_tree, talk, "s-1", "garden one")
    await _say(make_tree, talk, "s-2", "garden two")
    assert {hit.session_id for hit in await catalog.search("garden")} == {"s-1", "s-2"}
    assert [hit.session_id for hit in await catalog.search("garden", session_id="s-2")] == ["s-2"]
    assert await catalog.search("garden", session_id="unknown") == []


async def test_equal_matches_come_newest_first_and_no_more_than_asked(make_tree, talk, catalog):
    await _say(make_tree, talk, "s-1", *[f"garden {number}" for number in range(20)])
    assert [hit.snippet for hit in await catalog.search("garden", limit=3)] == ["garden 19", "garden 18", "garden 17"]


async def test_a_hit_names_where_it_is(make_tree, talk, catalog):
    async with make_tree().writing() as tree:
        entry = tree.add_message(talk.user("x" * 500 + " needle " + "y" * 500, "u1"), via="user")
    (hit,) = await catalog.search("needle")
    assert (hit.session_id, hit.entry_id, hit.turn_id, hit.role) == ("s-1", entry, entry, "user")
    assert "needle" in hit.snippet
    assert len(hit.snippet) < 250
    assert hit.snippet.startswith("…")
    assert hit.snippet.endswith("…")


async def test_search_looks_into_tool_results_and_compacted_turns(make_tree, talk, catalog):
    async with make_tree().writing() as tree:
        tree.add_message(talk.user("hi", "u1"), via="user")
        await talk.answer(tree, "", "c1", "x")
        tree.add_message(talk.result("r1", "x", text="the needle"), via="tool")
        await talk.answer(tree, "done", "a1")
        tree.append_compaction("S.", tree.turn, tree.turn, "m", 1)
    assert [hit.role for hit in await catalog.search("needle")] == ["tool"]


@pytest.mark.parametrize("query", ["", "   ", "\n"])
async def test_an_empty_query_finds_nothing(make_tree, talk, catalog, query):
    await _make(make_tree, talk, "s-1")
    assert await catalog.search(query) == []


# ---- delete


async def test_deleting_leaves_nothing_but_the_id_of_the_ledger(make_tree, talk, folder, catalog):
    await _make(make_tree, talk, "s-1", "s-2")
    await catalog.list()
    assert await catalog.exists("s-1")
    assert await catalog.delete("s-1")
    assert not await catalog.exists("s-1")
    assert [path.name for path in folder.iterdir() if path.name.startswith("s-1")] == ["s-1.head.json"]
    assert (folder / "s-1.head.json").stat().st_size == 512
    assert b"s-1" not in (folder / "sessions.json").read_bytes()
    assert await _ids(catalog) == ["s-2"]


async def test_deleting_what_is_not_there_says_so(catalog):
    assert await catalog.delete("s-9") is False


async def test_a_session_in_use_is_not_deleted(make_tree, talk, catalog):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 1)
        with pytest.raises(SessionBusy):
            await catalog.delete("s-1", timeout=0.05)
    assert await catalog.exists("s-1")


async def test_a_deletion_is_remembered_by_the_next_session_of_that_id(make_tree, talk, catalog):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 1)
    first = tree.ledger_id
    await catalog.delete("s-1")
    assert await _ids(catalog) == []
    async with make_tree().writing() as tree:
        assert tree.deleted == (first,)
        await talk.turn(tree, 2)
    cold = make_tree()
    await cold.load()
    assert cold.deleted == (first,)
    assert cold.damage == []


async def test_a_writer_that_waited_for_a_deletion_begins_anew(make_tree, talk, folder, catalog):
    script = f"""
import asyncio, pathlib
from harness.sessions import SessionCatalog
catalog = SessionCatalog(pathlib.Path({str(folder)!r}), "notes", ("alice",))
assert asyncio.run(catalog.delete("s-1"))
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    tree = make_tree()
    await tree.lock()
    await talk.turn(tree, 1)
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", script, env=env)
    await tree.release()
    assert await process.wait() == 0
    async with tree.writing():
        assert tree.messages() == []
        await talk.turn(tree, 2)
    assert [message["id"] for message in (await make_tree().load()).messages] == ["u2", "a2"]


# ---- where the list cannot be written


@pytest.fixture
def unwritable(make_tree, talk, folder):
    """A folder with a session, in which the list cannot be locked, as in a backup that is only read."""

    async def make():
        await _make(make_tree, talk, "s-1")
        (folder / "sessions.json.lock").symlink_to(folder / "nowhere")

    return make


async def test_a_list_that_cannot_be_written_is_read(unwritable, folder, catalog, caplog):
    await unwritable()
    assert [await _ids(catalog), await _ids(catalog)] == [["s-1"], ["s-1"]]
    assert not (folder / "sessions.json").exists()
    assert [record.levelname for record in caplog.records] == ["WARNING"]


async def test_a_damaged_list_that_cannot_be_written_is_left_and_not_believed(unwritable, folder, catalog):
    await unwritable()
    (folder / "sessions.json").write_bytes(b"{")
    assert await _ids(catalog) == ["s-1"]
    assert (folder / "sessions.json").read_bytes() == b"{"


async def test_closing_does_not_fail_for_a_list_that_cannot_be_written(unwritable, catalog, caplog):
    await unwritable()
    catalog.note_turn("s-1", prompt="hi")
    await catalog.aclose()
    assert "could not be written" in caplog.text


async def test_deleting_does_not_fail_for_a_list_that_cannot_be_written(unwritable, folder, catalog):
    await unwritable()
    assert await catalog.delete("s-1") is True
    assert not (folder / "s-1.log.jsonl").exists()


async def test_a_folder_in_the_place_of_the_list_is_kept_under_another_name(make_tree, talk, folder, catalog):
    await _make(make_tree, talk, "s-1")
    (folder / "sessions.json" / "within").mkdir(parents=True)
    assert await _ids(catalog) == ["s-1"]
    assert [(path / "within").is_dir() for path in folder.glob("sessions.json.damaged-*")] == [True]


# ---- one session among others


async def test_a_session_whose_ledger_cannot_be_read_is_listed_with_its_times_and_hides_no_other(
    make_tree, talk, folder, catalog, monkeypatch, caplog
):
    await _make(make_tree, talk, "s-1", "s-2")

    def failing(path, start=START):
        if path.name.startswith("s-1"):
            raise PersistenceError("could not read it: Input/output error")
        return skim(path, start)

    monkeypatch.setattr(index, "skim", failing)
    for _ in range(2):
        bad, good = await catalog.list()
        assert (bad.id, bad.title, bad.turns) == ("s-1", "", 0)
        assert (good.id, good.turns) == ("s-2", 1)
    assert caplog.text.count("'s-1' is listed without its title") == 1
    monkeypatch.setattr(index, "skim", skim)
    assert [info.turns for info in await catalog.list()] == [1, 1]


async def test_a_session_whose_ledger_cannot_be_read_is_left_out_of_search_and_usage(
    make_tree, talk, folder, catalog, monkeypatch
):
    await _make(make_tree, talk, "s-1", "s-2")
    whole = {hit.session_id for hit in await catalog.search("e")}
    names = ("s-1", "s-2")
    files = [(SessionFiles.of(folder, name), Owner(name, "notes", ("alice",))) for name in names]
    rows = read_usage(files).rows

    def failing(path):
        if path.name.startswith("s-1"):
            raise PersistenceError("could not read it: Input/output error")
        return read_entries(path)

    for module in (catalog_module, usage):
        monkeypatch.setattr(module, "read_entries", failing)
    assert {hit.session_id for hit in await catalog.search("e")} == whole - {"s-1"} == {"s-2"}
    assert read_usage(files).rows == tuple(row for row in rows if row.session == "s-2")
    assert {row.session for row in rows} == {"s-1", "s-2"}
