"""The file stores of track 1 when files are damaged, disks are full, files vanish (cases B21, B32, B46)."""

import errno
import logging
import os

import pytest

from harness.errors import ListMoved, PersistenceError
from harness.filesystem import disk
from harness.sessions.snapshots.json_session import JsonSession
from harness.state import SessionKey

KEY = SessionKey(("alice",), "notes", "s-1")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "alice" / "notes" / "s-1"


@pytest.fixture
def store(tmp_path):
    return JsonSession(tmp_path)


def set_aside(folder):
    return {path.name.split(".damaged-")[0]: path.read_bytes() for path in folder.iterdir() if ".damaged-" in path.name}


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"  \n",
        b'{"messages":[{"role":"user","content":"hel',
        b'{"a":1}{"a":2}',
        b'{"messages":[]}\n"}]}\n',
        b"[]",
        b"null",
        b"\0" * 40,
        b'{"a":"\xff"}',
        b"[" * 100_000,
    ],
)
async def test_a_damaged_value_is_set_aside_reported_and_absent(store, folder, caplog, damaged):
    await store.save(KEY, "memory", {"seq": 1})
    (folder / "memory.json").write_bytes(damaged)
    with caplog.at_level(logging.WARNING, "harness.sessions"):
        assert await store.get(KEY, "memory") is None
    assert "memory.json is damaged" in caplog.text
    assert set_aside(folder) == {"memory.json": damaged}
    assert await store.get(KEY, "memory") is None
    await store.save(KEY, "memory", {"seq": 2})
    assert await store.get(KEY, "memory") == {"seq": 2}
    assert set_aside(folder) == {"memory.json": damaged}


@pytest.mark.parametrize("name", ["memory-extra-data.json", "memory-cut.json", "memory-empty.json"])
async def test_the_damaged_snapshots_of_case_b21_count_as_absent(store, folder, shared, name):
    raw = (shared / "cases" / "B21" / name).read_bytes()
    await store.save(KEY, "memory", {"seq": 1})
    (folder / "memory.json").write_bytes(raw)
    assert await store.get(KEY, "memory") is None
    assert set_aside(folder) == {"memory.json": raw}
    assert await store.exists(KEY) is False


async def test_a_value_that_was_replaced_meanwhile_is_not_set_aside(store, folder, monkeypatch):
    await store.save(KEY, "memory", {"seq": 1})
    (folder / "memory.json").write_bytes(b"{")
    read = disk.read

    def read_then_another_saves(path, *args):
        raw = read(path, *args)
        disk.replace(path, b'{"seq":2}', sync=False)
        return raw

    with monkeypatch.context() as patch:
        patch.setattr(disk, "read", read_then_another_saves)
        assert await store.get(KEY, "memory") is None
    assert await store.get(KEY, "memory") == {"seq": 2}


async def test_a_value_of_another_program_passes_the_text_edge(store, folder):
    await store.save(KEY, "memory", {"seq": 1})
    foreign = b'{"half":"a\\ud800b","not":NaN,"huge":18446744073709551616,"deep":' + b"[" * 300 + b"]" * 300 + b"}"
    (folder / "memory.json").write_bytes(foreign)
    value = await store.get(KEY, "memory")
    assert (value["half"], value["not"], value["huge"]) == ("a\ufffdb", "NaN", "18446744073709551616")
    await store.save(KEY, "copy", value)
    assert await store.get(KEY, "copy") == value


LINES = b'{"n":1}\n{"n":2}\n{"n":3,"text":"caf\xc3\xa9"}\n'


@pytest.mark.parametrize("cut", range(len(LINES) + 1))
async def test_a_list_cut_at_any_byte_keeps_its_whole_lines_and_grows_on(store, folder, cut):
    folder.mkdir(parents=True)
    (folder / "messages.jsonl").write_bytes(LINES[:cut])
    whole = [{"n": 1}, {"n": 2}, {"n": 3, "text": "café"}][: sum(cut >= end for end in (7, 15, len(LINES) - 1))]
    assert await store.get_list(KEY, "messages") == whole
    await store.append(KEY, "messages", [{"n": 9}], len(whole))
    assert await store.get_list(KEY, "messages") == [*whole, {"n": 9}]
    raw = (folder / "messages.jsonl").read_bytes()
    assert raw.endswith(b'{"n":9}\n')
    assert b"}{" not in raw


@pytest.mark.parametrize("loaded", [True, False], ids=["loaded", "cold"])
async def test_a_torn_line_is_moved_away_before_the_next_append(store, folder, caplog, loaded):
    folder.mkdir(parents=True)
    (folder / "messages.jsonl").write_bytes(b'{"n":1}\n{"n":2,"te')
    if loaded:
        assert await store.get_list(KEY, "messages") == [{"n": 1}]
        assert "torn line of 10 bytes" in caplog.text
    await store.append(KEY, "messages", [{"n": 3}], 1)
    assert (folder / "messages.jsonl").read_bytes() == b'{"n":1}\n{"n":3}\n'
    assert set_aside(folder) == {"messages.jsonl.part": b'{"n":2,"te'}
    assert "torn line, which was moved" in caplog.text


async def test_reading_a_torn_list_changes_nothing(store, folder):
    folder.mkdir(parents=True)
    (folder / "messages.jsonl").write_bytes(b'{"n":1}\n{"n":2,"te')
    await store.get_list(KEY, "messages")
    assert [(path.name, path.read_bytes()) for path in folder.iterdir()] == [("messages.jsonl", b'{"n":1}\n{"n":2,"te')]


async def test_a_torn_list_of_another_length_is_left_as_it_is(store, folder):
    folder.mkdir(parents=True)
    (folder / "messages.jsonl").write_bytes(b'{"n":1}\n{"n":2,"te')
    with pytest.raises(ListMoved):
        await store.append(KEY, "messages", [{"n": 3}], 2)
    assert (folder / "messages.jsonl").read_bytes() == b'{"n":1}\n{"n":2,"te'


async def test_a_whole_record_without_its_newline_is_kept(store, folder):
    folder.mkdir(parents=True)
    (folder / "messages.jsonl").write_bytes(b'{"n":1}\n{"n":2}')
    await store.append(KEY, "messages", [{"n": 3}], 2)
    await store.append(KEY, "messages", [{"n": 4}], 3)
    assert (folder / "messages.jsonl").read_bytes() == b'{"n":1}\n{"n":2}\n{"n":3}\n{"n":4}\n'
    assert set_aside(folder) == {}


async def test_damaged_lines_are_left_out_reported_and_copied_when_the_list_is_replaced(store, folder, caplog):
    damaged = b'{"n":1}\nnot json\n\n{"n":2}{"n":3}\n[4]\n{"n":5}\n'
    folder.mkdir(parents=True)
    (folder / "messages.jsonl").write_bytes(damaged)
    assert await store.get_list(KEY, "messages") == [{"n": 1}, {"n": 5}]
    assert "read without line 2, line 4, line 5" in caplog.text
    await store.append(KEY, "messages", [{"n": 6}], 2)
    assert (folder / "messages.jsonl").read_bytes() == damaged + b'{"n":6}\n'
    await store.replace(KEY, "messages", [{"n": 7}])
    assert (folder / "messages.jsonl").read_bytes() == b'{"n":7}\n'
    assert set_aside(folder) == {"messages.jsonl.part": damaged + b'{"n":6}\n'}


async def test_a_long_report_of_damage_stays_short(store, folder, caplog):
    folder.mkdir(parents=True)
    (folder / "messages.jsonl").write_bytes(b"x\n" * 1000)
    assert await store.get_list(KEY, "messages") == []
    assert "line 10, 990 more lines" in caplog.text
    assert len(caplog.text) < 600


async def test_an_undamaged_list_is_replaced_without_a_copy(store, folder):
    await store.append(KEY, "messages", [{"n": 1}], 0)
    await store.replace(KEY, "messages", [{"n": 2}])
    assert set_aside(folder) == {}


async def test_a_list_file_that_vanished_is_reported_and_not_continued_as_a_fragment(store, folder):
    await store.append(KEY, "messages", [{"n": 1}, {"n": 2}], 0)
    (folder / "messages.jsonl").unlink()
    with pytest.raises(ListMoved) as caught:
        await store.append(KEY, "messages", [{"n": 3}], 2)
    assert caught.value.count == 0
    assert not (folder / "messages.jsonl").exists()
    await store.replace(KEY, "messages", [{"n": 1}, {"n": 2}, {"n": 3}])
    assert len(await store.get_list(KEY, "messages")) == 3


async def test_a_folder_in_the_place_of_a_file_is_an_error_that_names_it(store, folder):
    (folder / "memory.json").mkdir(parents=True)
    with pytest.raises(PersistenceError, match=r"memory\.json"):
        await store.get(KEY, "memory")
    with pytest.raises(PersistenceError, match=r"memory\.json"):
        await store.save(KEY, "memory", {"seq": 1})


async def test_a_folder_deleted_while_a_value_is_saved_is_made_again(store, folder, monkeypatch):
    replace = disk.replace
    calls = []

    def replace_after_a_deletion(path, data, *, sync):
        if not calls:
            disk.remove_tree(folder)
        calls.append(path)
        replace(path, data, sync=sync)

    monkeypatch.setattr(disk, "replace", replace_after_a_deletion)
    await store.save(KEY, "memory", {"seq": 1})
    assert await store.get(KEY, "memory") == {"seq": 1}


@pytest.fixture
def full_disk(monkeypatch):
    """A disk that takes `room` more bytes; `room = None` frees it."""
    write = os.write

    class Disk:
        room = None

    def limited(descriptor, data):
        if Disk.room is None:
            return write(descriptor, data)
        if Disk.room == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        done = write(descriptor, bytes(data)[: Disk.room])
        Disk.room -= done
        return done

    monkeypatch.setattr(os, "write", limited)
    yield Disk
    Disk.room = None


@pytest.mark.parametrize("room", [0, 5, 8])
async def test_a_full_disk_is_reported_and_leaves_a_list_as_it_was(store, folder, full_disk, room):
    await store.append(KEY, "messages", [{"n": 1}], 0)
    full_disk.room = room
    with pytest.raises(PersistenceError, match="free space"):
        await store.append(KEY, "messages", [{"n": 2}, {"n": 3}], 1)
    with pytest.raises(PersistenceError, match="free space"):
        await store.replace(KEY, "messages", [{"n": 4}, {"n": 5}])
    assert (folder / "messages.jsonl").read_bytes() == b'{"n":1}\n'
    full_disk.room = None
    await store.append(KEY, "messages", [{"n": 2}, {"n": 3}], 1)
    assert (folder / "messages.jsonl").read_bytes() == b'{"n":1}\n{"n":2}\n{"n":3}\n'
    assert [path.name for path in folder.iterdir() if path.name.startswith(".tmp-")] == []


async def test_a_full_disk_leaves_a_value_as_it_was(store, folder, full_disk):
    await store.save(KEY, "memory", {"seq": 1})
    full_disk.room = 4
    with pytest.raises(PersistenceError, match="free space"):
        await store.save(KEY, "memory", {"seq": 2})
    assert await store.get(KEY, "memory") == {"seq": 1}
    full_disk.room = None
    await store.save(KEY, "memory", {"seq": 2})
    assert [path.name for path in folder.iterdir()] == ["memory.json"]
