"""Many writers of one session at once, in one process and in several (case B21)."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

import harness.state
from harness.errors import ListMoved, SessionBusy
from harness.filesystem import pool
from harness.filesystem.locks import FileLock
from harness.sessions.snapshots import state_files
from harness.sessions.snapshots.json_session import JsonSession
from harness.state import SessionKey

KEY = SessionKey(("alice",), "notes", "s-1")
PARTS = 200

SAVER = """
import asyncio, sys
from harness.sessions.snapshots.json_session import JsonSession
from harness.state import SessionKey

async def main(path, writer, rounds):
    store, key = JsonSession(path), SessionKey(("alice",), "notes", "s-1")
    for version in range(rounds):
        await store.save(key, "memory", {"version": [writer, version], "parts": [f"{writer}/{version}"] * 200})

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""

APPENDER = """
import asyncio, sys
from harness.errors import ListMoved
from harness.sessions.snapshots.json_session import JsonSession
from harness.state import SessionKey

async def main(path, writer, rounds):
    store, key = JsonSession(path), SessionKey(("alice",), "notes", "s-1")
    count = 0
    for n in range(rounds):
        while True:
            try:
                await store.append(key, "messages", [{"by": writer, "n": n}], count)
                break
            except ListMoved as moved:
                count = moved.count
        count += 1

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


def start(script, path, writer, rounds):
    home = str(Path(harness.state.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": home}
    arguments = [sys.executable, "-c", script, str(path), writer, str(rounds)]
    return subprocess.Popen(arguments, env=environment)


async def ended(processes):
    return await asyncio.gather(*(asyncio.to_thread(process.wait) for process in processes))


def is_whole(value):
    writer, version = value["version"]
    return value["parts"] == [f"{writer}/{version}"] * PARTS


@pytest.mark.slow
async def test_every_load_during_a_race_of_savers_sees_one_whole_version(tmp_path, caplog):
    store = JsonSession(tmp_path)
    processes = [start(SAVER, tmp_path, f"process{n}", 700) for n in range(4)]
    seen = []

    async def save(writer):
        for version in range(50):
            await store.save(KEY, "memory", {"version": [writer, version], "parts": [f"{writer}/{version}"] * PARTS})

    async def load(savers):
        while not savers.done() or any(process.poll() is None for process in processes):
            seen.append(await store.get(KEY, "memory"))
            await asyncio.sleep(0)

    savers = asyncio.gather(*(save(f"task{n}") for n in range(40)))
    await asyncio.gather(savers, load(savers))
    assert await ended(processes) == [0, 0, 0, 0]
    found = [value for value in seen if value is not None]
    assert len({tuple(value["version"]) for value in found}) > 20
    assert all(is_whole(value) for value in found)
    assert is_whole(await JsonSession(tmp_path).get(KEY, "memory"))
    assert [path.name for path in (tmp_path / "alice/notes/s-1").iterdir()] == ["memory.json"]
    assert caplog.text == ""


@pytest.mark.slow
async def test_appends_of_several_processes_are_all_kept_each_once(tmp_path, caplog):
    processes = [start(APPENDER, tmp_path, f"process{n}", 40) for n in range(4)]
    assert await ended(processes) == [0, 0, 0, 0]
    items = await JsonSession(tmp_path).get_list(KEY, "messages")
    for writer in range(4):
        assert [item["n"] for item in items if item["by"] == f"process{writer}"] == list(range(40))
    assert len(items) == 160
    assert caplog.text == ""


async def test_a_reader_of_a_list_sees_only_whole_versions_of_it(tmp_path):
    store, reader = JsonSession(tmp_path), JsonSession(tmp_path)
    await store.replace(KEY, "messages", [{"version": 0}] * 50)
    seen = []

    async def rewrite():
        for version in range(1, 60):
            await store.replace(KEY, "messages", [{"version": version}] * 50)

    async def read(writer):
        while not writer.done():
            seen.append(await reader.get_list(KEY, "messages"))

    writer = asyncio.create_task(rewrite())
    await asyncio.gather(writer, read(writer))
    assert {len(items) for items in seen} == {50}
    assert {len({item["version"] for item in items}) for items in seen} == {1}


async def test_a_list_held_by_another_writer_for_too_long_is_an_error_that_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(state_files, "_HOLD_SECONDS", 0.05)
    store = JsonSession(tmp_path)
    await store.append(KEY, "messages", [{"n": 1}], 0)
    lock = FileLock(tmp_path / "alice" / "notes" / "s-1" / ".hold")
    await lock.acquire(1)
    try:
        with pytest.raises(SessionBusy, match="another writer held"):
            await store.append(KEY, "messages", [{"n": 2}], 1)
        await store.save(KEY, "memory", {"needs": "no lock"})
    finally:
        lock.release()
    await store.append(KEY, "messages", [{"n": 2}], 1)
    assert await store.get_list(KEY, "messages") == [{"n": 1}, {"n": 2}]


async def test_writers_that_wait_for_a_list_keep_no_thread_of_the_pool(tmp_path):
    store = JsonSession(tmp_path)
    await store.append(KEY, "messages", [{"n": 0}], 0)
    lock = FileLock(tmp_path / "alice" / "notes" / "s-1" / ".hold")
    await lock.acquire(1)
    waiting = [asyncio.create_task(store.append(KEY, "messages", [{"n": n}], 1)) for n in range(20)]
    await asyncio.sleep(0)
    assert await pool.run(lambda: "free") == "free"
    lock.release()
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == [ListMoved.__name__] * 19 + ["NoneType"]


async def test_a_cancelled_append_is_whole_or_not_there(tmp_path):
    store = JsonSession(tmp_path)
    for yields in range(6):
        count = len(await store.get_list(KEY, "messages"))
        task = asyncio.create_task(store.append(KEY, "messages", [{"text": "x" * 100_000}] * 3, count))
        for _ in range(yields):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert len(await store.get_list(KEY, "messages")) in {count, count + 3}
