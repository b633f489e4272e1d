"""The two file stores of track 1: where the bytes are, and that nobody else's get in."""

import json
import os
import stat
import time

import pytest

from harness.errors import InvalidId, PersistenceError, SessionDamaged
from harness.filesystem import disk
from harness.sessions.snapshots.json_session import JsonSession
from harness.sessions.snapshots.list_file import Recent
from harness.sessions.snapshots.workspace_session import WorkspaceSession
from harness.state import SessionKey

KEY = SessionKey(("alice",), "notes", "s-1")
LONG = "x" * 300


def json_store(path):
    return JsonSession(path), path / "alice" / "notes" / "s-1"


def workspace_store(path):
    return WorkspaceSession(path, "notes"), path / "tenants" / "alice" / "agents" / "notes" / "context" / "s-1"


@pytest.fixture(params=[json_store, workspace_store], ids=["json", "workspace"])
def placed(request, tmp_path):
    return request.param(tmp_path / "store")


def files_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def refuse_to_read_lists(monkeypatch):
    read = disk.read

    def refuse(path, *args):
        assert path.suffix != ".jsonl", f"{path} was read"
        return read(path, *args)

    monkeypatch.setattr(disk, "read", refuse)


async def test_json_session_files_are_where_and_what_the_format_page_says(tmp_path):
    store = JsonSession(tmp_path)
    await store.save(KEY, "memory", {"ledgerId": "l-1", "seq": 2, "text": "é"})
    await store.append(KEY, "memory_messages", [{"id": "m-1"}, {"id": "m-2"}], 0)
    folder = tmp_path / "alice" / "notes" / "s-1"
    assert (folder / "memory.json").read_bytes() == '{"ledgerId":"l-1","seq":2,"text":"é"}'.encode()
    assert (folder / "memory_messages.jsonl").read_bytes() == b'{"id":"m-1"}\n{"id":"m-2"}\n'
    assert files_below(tmp_path) == [
        "alice/notes/s-1/.hold",
        "alice/notes/s-1/memory.json",
        "alice/notes/s-1/memory_messages.jsonl",
    ]


async def test_workspace_session_files_are_where_the_design_says(tmp_path):
    store = WorkspaceSession(tmp_path, "Notes")
    await store.save(SessionKey(("Alice", "x.y"), "Notes", "s/1"), "memory", {"seq": 1})
    await store.save(SessionKey((), "Notes", "s"), "memory", {"seq": 2})
    assert files_below(tmp_path) == [
        "tenants/%41lice+x%2ey/agents/%4eotes/context/s%2f1/memory.json",
        "tenants/%41lice+x%2ey/tenant.json",
        "tenants/_/agents/%4eotes/context/s/memory.json",
        "tenants/_/tenant.json",
    ]
    assert json.loads((tmp_path / "tenants/%41lice+x%2ey/tenant.json").read_text()) == {"namespace": ["Alice", "x.y"]}


async def test_keys_of_another_agent_are_kept_apart_in_the_folder_of_the_stores_agent(tmp_path):
    store = WorkspaceSession(tmp_path, "notes")
    await store.save(SessionKey((), "other", "s"), "memory", {"seq": 1})
    assert files_below(tmp_path / "tenants" / "_" / "agents") == ["notes/context/other+s/memory.json"]


async def test_making_a_store_and_reading_from_it_writes_nothing(tmp_path):
    for store in (JsonSession(tmp_path / "a"), WorkspaceSession(tmp_path / "b", "notes")):
        assert await store.get(KEY, "memory") is None
        assert await store.get_list(KEY, "messages") == []
        assert await store.list_keys(("alice",), "notes") == []
        await store.delete(KEY)
    assert list(tmp_path.iterdir()) == []


async def test_files_and_folders_are_for_their_owner_only(placed, tmp_path):
    store, _ = placed
    await store.save(KEY, "memory", {"seq": 1})
    await store.append(KEY, "messages", [{"n": 1}], 0)
    modes = {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in (tmp_path / "store").rglob("*")}
    assert modes == {(True, 0o700), (False, 0o600)}


async def test_an_equal_value_is_not_written_again(placed):
    store, folder = placed
    await store.save(KEY, "plan", {"a": 1})
    before = disk.mark(folder / "plan.json")
    await store.save(KEY, "plan", {"a": 1})
    assert disk.mark(folder / "plan.json") == before
    await store.save(KEY, "plan", {"a": 2})
    assert disk.mark(folder / "plan.json") != before


async def test_a_growing_list_is_never_read_again(placed, monkeypatch):
    store, folder = placed
    await store.append(KEY, "messages", [{"n": 0}], 0)

    refuse_to_read_lists(monkeypatch)
    for count in range(1, 6):
        await store.append(KEY, "messages", [{"n": count}], count)
    assert (folder / "messages.jsonl").read_bytes() == b'{"n":0}\n{"n":1}\n{"n":2}\n{"n":3}\n{"n":4}\n{"n":5}\n'


async def test_a_list_that_was_loaded_is_not_read_again_to_append(placed, monkeypatch):
    store, folder = placed
    await store.append(KEY, "messages", [{"n": 0}], 0)
    await store.aclose()
    assert await store.get_list(KEY, "messages") == [{"n": 0}]
    refuse_to_read_lists(monkeypatch)
    await store.append(KEY, "messages", [{"n": 1}], 1)
    assert (folder / "messages.jsonl").read_bytes() == b'{"n":0}\n{"n":1}\n'


async def test_what_another_process_wrote_is_noticed(tmp_path):
    ours, theirs = JsonSession(tmp_path), JsonSession(tmp_path)
    await ours.append(KEY, "messages", [{"n": 1}], 0)
    await theirs.append(KEY, "messages", [{"n": 2}], 1)
    await ours.append(KEY, "messages", [{"n": 3}], 2)
    await theirs.replace(KEY, "messages", [{"n": 4}])
    await ours.append(KEY, "messages", [{"n": 5}], 1)
    assert await theirs.get_list(KEY, "messages") == [{"n": 4}, {"n": 5}]


async def test_a_list_whose_count_was_pushed_out_is_counted_anew(placed):
    store, _ = placed
    store._lists = Recent(2)
    for name in ("a", "b", "c", "d"):
        await store.append(KEY, name, [{"n": 1}], 0)
    for name in ("a", "b", "c", "d"):
        await store.append(KEY, name, [{"n": 2}], 1)
        assert await store.get_list(KEY, name) == [{"n": 1}, {"n": 2}]


def test_recent_values_keep_their_place_and_the_oldest_makes_room():
    recent = Recent(2)
    recent.put("a", 1)
    recent.put("b", 2)
    assert recent.get("a") == 1
    recent.put("c", 3)
    assert [recent.get(name) for name in "abc"] == [1, None, 3]


async def test_old_leftovers_of_a_crash_are_removed_and_young_ones_are_left(placed):
    store, folder = placed
    folder.mkdir(parents=True)
    old, young = folder / ".tmp-0123456789abcdef", folder / ".tmp-fedcba9876543210"
    old.write_bytes(b"{")
    young.write_bytes(b"{")
    two_hours_ago = time.time() - 7200
    os.utime(old, (two_hours_ago, two_hours_ago))
    await store.save(KEY, "memory", {"seq": 1})
    assert files_below(folder) == [".tmp-fedcba9876543210", "memory.json"]


async def test_leftovers_set_aside_files_and_foreign_folders_are_no_sessions(placed):
    store, folder = placed
    await store.save(KEY, "memory", {"seq": 1})
    for name in ("s-2/.tmp-00", "s-3/memory.json.damaged-20260101T000000Z-00ff", "s-4/.hold", "Not Ours/memory.json"):
        (folder.parent / name).parent.mkdir()
        (folder.parent / name).write_bytes(b"{}")
    (folder.parent / "s-5.json").write_bytes(b"{}")
    assert await store.list_keys(("alice",), "notes") == [KEY]
    assert await store.exists(SessionKey(("alice",), "notes", "s-3")) is False


async def test_a_hash_file_of_another_program_is_ignored(placed):
    store, folder = placed
    await store.append(KEY, "messages", [{"n": 1}], 0)
    (folder / "messages.hash").write_text("empty:0")
    await store.append(KEY, "messages", [{"n": 2}], 1)
    assert await store.get_list(KEY, "messages") == [{"n": 1}, {"n": 2}]


async def test_a_shortened_name_has_its_full_key_beside_it(tmp_path):
    store = JsonSession(tmp_path)
    await store.save(SessionKey((), "notes", LONG), "memory", {"seq": 1})
    folder = next((tmp_path / "_" / "notes").iterdir())
    assert folder.name == "x" * 120 + "%%0d4e2ca9e9cbced7a7a5380eb29e1a37"
    assert json.loads((folder / "_key.json").read_text()) == {"namespace": [], "agent": "notes", "session": LONG}


@pytest.mark.parametrize("operation", ["get", "save", "append", "list", "delete"])
async def test_a_folder_that_is_noted_as_another_keys_is_refused(tmp_path, operation):
    key = SessionKey((), "notes", LONG)
    await JsonSession(tmp_path).save(key, "memory", {"seq": 1})
    folder = next((tmp_path / "_" / "notes").iterdir())
    (folder / "_key.json").write_text('{"namespace":[],"agent":"notes","session":"another"}')
    store = JsonSession(tmp_path)
    calls = {
        "get": lambda: store.get(key, "memory"),
        "save": lambda: store.save(key, "memory", {}),
        "append": lambda: store.append(key, "messages", [{}], 0),
        "list": lambda: store.get_list(key, "messages"),
        "delete": lambda: store.delete(key),
    }
    with pytest.raises(SessionDamaged, match="another"):
        await calls[operation]()
    assert (folder / "memory.json").read_bytes() == b'{"seq":1}'


async def test_an_unreadable_note_hides_the_session_from_the_list_only(tmp_path):
    key = SessionKey((), "notes", LONG)
    store = JsonSession(tmp_path)
    await store.save(key, "memory", {"seq": 1})
    note = next((tmp_path / "_" / "notes").iterdir()) / "_key.json"
    note.write_text("[]")
    assert await store.list_keys((), "notes") == []
    assert await JsonSession(tmp_path).get(key, "memory") == {"seq": 1}


@pytest.mark.parametrize("operation", ["get", "save", "list_keys"])
async def test_a_tenant_folder_of_another_namespace_is_refused(tmp_path, operation):
    root = tmp_path / "tenants" / "alice"
    root.mkdir(parents=True)
    (root / "tenant.json").write_text('{"namespace":["mallory"]}')
    store = WorkspaceSession(tmp_path, "notes")
    calls = {
        "get": lambda: store.get(KEY, "memory"),
        "save": lambda: store.save(KEY, "memory", {}),
        "list_keys": lambda: store.list_keys(("alice",), "notes"),
    }
    with pytest.raises(SessionDamaged, match="mallory"):
        await calls[operation]()
    assert files_below(tmp_path) == ["tenants/alice/tenant.json"]


async def test_a_workspace_that_vanished_is_made_anew_as_a_whole(tmp_path):
    store = WorkspaceSession(tmp_path / "w", "notes")
    await store.save(KEY, "memory", {"seq": 1})
    disk.remove_tree(tmp_path / "w")
    await store.save(KEY, "memory", {"seq": 2})
    assert files_below(tmp_path / "w") == [
        "tenants/alice/agents/notes/context/s-1/memory.json",
        "tenants/alice/tenant.json",
    ]


async def test_deleting_a_key_leaves_no_file_of_it(placed):
    store, folder = placed
    await store.save(KEY, "memory", {"seq": 1})
    await store.append(KEY, "messages", [{"n": 1}], 0)
    await store.delete(KEY)
    assert not folder.exists()


def test_an_agent_id_that_cannot_be_stored_is_refused_at_once(tmp_path):
    with pytest.raises(InvalidId):
        WorkspaceSession(tmp_path, " ")


async def test_a_link_in_the_place_of_a_list_is_not_followed(placed, tmp_path):
    store, folder = placed
    outside = tmp_path / "outside.jsonl"
    outside.write_bytes(b"")
    folder.mkdir(parents=True)
    (folder / "messages.jsonl").symlink_to(outside)
    with pytest.raises(PersistenceError, match=r"messages\.jsonl"):
        await store.append(KEY, "messages", [{"n": 1}], 0)
    assert outside.read_bytes() == b""
