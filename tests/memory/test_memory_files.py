"""The memory files of a tenant: what is read, and that no entry is lost."""

import asyncio
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

import harness.state
from harness.errors import FilesystemError
from harness.filesystem.fsspec_fs import FsspecFilesystem
from harness.filesystem.local import LocalFilesystem
from harness.memory import MemoryFiles, daily_path

NOW = datetime(2026, 3, 1, 23, 30, 0, 125000, tzinfo=UTC)


@pytest.fixture(params=["local", "fsspec"])
def place(request, tmp_path):
    if request.param == "local":
        return LocalFilesystem(tmp_path / "w")
    return FsspecFilesystem(f"memory://{tmp_path.name}-{request.node.name}")


@pytest.fixture
def files(place):
    return place.for_namespace(("alice",))


@pytest.fixture
def memory(files):
    return MemoryFiles(files)


async def test_without_files_memory_is_empty(memory):
    assert await memory.read_memory() == ""
    assert await memory.read_daily(NOW) == ""


async def test_memory_md_is_read_as_it_is_now(memory, files):
    await files.write("MEMORY.md", "# Alice\n- likes é\r\n")
    assert await memory.read_memory() == "# Alice\n- likes é\r\n"
    await files.write_bytes("MEMORY.md", b"- new")
    assert await memory.read_memory() == "- new"


async def test_bytes_that_are_no_text_do_not_hide_the_rest(memory, files):
    await files.write_bytes("MEMORY.md", b"- a\xff\n- b\n")
    assert await memory.read_memory() == "- a\ufffd\n- b\n"


async def test_an_entry_stands_under_a_heading_with_its_moment(memory, files):
    assert await memory.append_daily("- likes tea\n", NOW) == "memory/2026-03-01.md"
    assert await memory.append_daily("\n- lives in Oslo", NOW + timedelta(minutes=1)) == "memory/2026-03-01.md"
    assert (await files.read_bytes("memory/2026-03-01.md")).decode() == (
        "## Memory Flush — 2026-03-01T23:30:00.125000Z\n\n- likes tea\n\n"
        "## Memory Flush — 2026-03-01T23:31:00.125000Z\n\n- lives in Oslo\n"
    )
    assert await memory.read_daily(NOW) == (await files.read_bytes("memory/2026-03-01.md")).decode()


async def test_the_day_is_that_of_utc(memory):
    at_home = datetime(2026, 3, 2, 1, 30, tzinfo=timezone(timedelta(hours=9)))
    assert daily_path(at_home) == "memory/2026-03-01.md"
    assert await memory.append_daily("- x", at_home) == "memory/2026-03-01.md"


@pytest.mark.parametrize("text", ["", "  \n\t"])
async def test_blank_text_adds_nothing(memory, files, text):
    assert await memory.append_daily(text, NOW) is None
    assert await files.exists("memory") is False


async def test_half_a_character_is_stored_as_its_substitute(memory):
    await memory.append_daily("- a\ud800b", NOW)
    assert "- a\ufffdb\n" in await memory.read_daily(NOW)


@pytest.mark.parametrize(
    ("before", "between"), [("", ""), ("# Notes", "\n\n"), ("# Notes\n", "\n"), ("# Notes\n\n", ""), ("\n", "\n")]
)
async def test_what_somebody_wrote_into_the_daily_file_stays_in_front(memory, files, before, between):
    await files.write_bytes("memory/2026-03-01.md", before.encode())
    await memory.append_daily("- x", NOW)
    entry = "## Memory Flush — 2026-03-01T23:30:00.125000Z\n\n- x\n"
    assert await memory.read_daily(NOW) == before + between + entry


async def test_a_text_that_repeats_the_file_is_added_all_the_same(memory):
    await memory.append_daily("- x", NOW)
    before = await memory.read_daily(NOW)
    await memory.append_daily(f"{before}\n{before}", NOW)
    await memory.append_daily("- y", NOW)
    assert (await memory.read_daily(NOW)).count("- x\n") == 3
    assert (await memory.read_daily(NOW)).endswith("- y\n")


async def test_entries_added_at_once_are_all_kept(memory):
    await asyncio.gather(*(memory.append_daily(f"- fact {n}.", NOW) for n in range(15)))
    text = await memory.read_daily(NOW)
    assert [text.count(f"- fact {n}.\n") for n in range(15)] == [1] * 15
    assert text.count("## Memory Flush") == 15


async def test_an_entry_and_an_edit_at_once_are_both_kept(memory, files):
    await files.write("memory/2026-03-01.md", "- old fact\n")

    async def correct():
        await files.edit("memory/2026-03-01.md", "- old fact", "- corrected fact")

    await asyncio.gather(memory.append_daily("- one", NOW), correct(), memory.append_daily("- two", NOW))
    text = await memory.read_daily(NOW)
    assert [fact in text for fact in ("- corrected fact\n", "- one\n", "- two\n", "- old fact")] == [
        True,
        True,
        True,
        False,
    ]


async def test_a_daily_file_that_is_no_text_is_left_alone_and_named(memory, files):
    await files.write_bytes("memory/2026-03-01.md", b"\xff\xfe")
    with pytest.raises(FilesystemError, match=r"memory/2026-03-01\.md"):
        await memory.append_daily("- x", NOW)
    assert await files.read_bytes("memory/2026-03-01.md") == b"\xff\xfe"


async def test_a_place_that_refuses_the_entry_is_an_error_and_not_tried_for_ever(tmp_path):
    files = LocalFilesystem(tmp_path, max_file_bytes=200).for_namespace(("alice",))
    memory = MemoryFiles(files)
    await memory.append_daily("- short", NOW)
    before = await memory.read_daily(NOW)
    with pytest.raises(FilesystemError, match="the most is 200"):
        await memory.append_daily("- " + "long " * 50, NOW)
    assert await memory.read_daily(NOW) == before


async def test_tenants_have_memories_of_their_own(place):
    await MemoryFiles(place.for_namespace(("alice",))).append_daily("- alice's", NOW)
    await place.for_namespace(("alice",)).write("MEMORY.md", "- alice's")
    assert await MemoryFiles(place.for_namespace(("bob",))).read_memory() == ""
    assert await MemoryFiles(place.for_namespace(())).read_daily(NOW) == ""


ADDER = """
import asyncio, sys
from datetime import UTC, datetime
from harness.filesystem.local import LocalFilesystem
from harness.memory import MemoryFiles

async def main(path, name):
    memory = MemoryFiles(LocalFilesystem(path).for_namespace(("alice",)))
    for n in range(8):
        await memory.append_daily(f"- {name} says {n}.", datetime(2026, 3, 1, tzinfo=UTC))

asyncio.run(main(*sys.argv[1:]))
"""


def start_adder(path, name):
    environment = {**os.environ, "PYTHONPATH": str(Path(harness.state.__file__).parents[1])}
    return subprocess.Popen([sys.executable, "-c", ADDER, str(path), name], env=environment)


@pytest.mark.slow
async def test_entries_of_several_processes_are_all_kept(tmp_path):
    processes = [start_adder(tmp_path, f"process{n}") for n in range(3)]
    assert await asyncio.gather(*(asyncio.to_thread(process.wait) for process in processes)) == [0, 0, 0]
    text = await MemoryFiles(LocalFilesystem(tmp_path).for_namespace(("alice",))).read_daily(NOW)
    assert [text.count(f"- process{p} says {n}.\n") for p in range(3) for n in range(8)] == [1] * 24
