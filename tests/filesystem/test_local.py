"""What is special to files on a local disk."""

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import FileExists, FilesystemError, PathRefused
from harness.filesystem import FileLock, LocalFilesystem, local_tree
from harness.filesystem.local_tree import LocalTree


async def test_nothing_is_made_before_the_first_write(workspace: Path) -> None:
    fs = LocalFilesystem(workspace).for_namespace(("alice",))
    await fs.ls()
    await fs.grep("x")
    await fs.delete("x")

    assert os.listdir(workspace.parent) == []


async def test_a_tenants_files_stand_in_its_folder_and_are_private(workspace: Path) -> None:
    await LocalFilesystem(workspace).for_namespace(("acme", "Alice")).write("notes/a.md", "x")
    path = workspace / "tenants" / "acme+%41lice" / "notes" / "a.md"

    assert path.read_text() == "x"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_a_change_of_the_working_directory_moves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fs = LocalFilesystem("workspace")
    monkeypatch.chdir("/")
    await fs.write("a", "x")

    assert (tmp_path / "workspace" / "a").read_text() == "x"


async def test_files_over_the_limit_are_neither_read_nor_written(workspace: Path) -> None:
    fs = LocalFilesystem(workspace, max_file_bytes=10)
    await fs.write("small", "0123456789")
    (workspace / "large").write_text("01234567890")

    for attempt in (fs.read("large"), fs.read_bytes("large"), fs.write("new", "01234567890")):
        with pytest.raises(FilesystemError, match=r"11 bytes.*most is 10"):
            await attempt
    with pytest.raises(FilesystemError, match="grow over 10"):
        await fs.edit("small", "0", "00")
    found = await fs.grep("1")
    assert ([match.path for match in found.matches], found.truncated) == (["small"], True)


async def test_a_full_disk_is_said_and_leaves_the_old_file(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fs = LocalFilesystem(workspace)
    await fs.write("a", "old")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(FilesystemError, match="a: No space left on device; free space"):
        await fs.write_bytes("a", b"new")
    monkeypatch.undo()
    assert (await fs.read("a")).text == "old"
    assert os.listdir(workspace / "agents") == ["edit.lock"]
    assert sorted(os.listdir(workspace)) == ["a", "agents"]


async def test_an_unreadable_folder_is_passed_over_in_a_search(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs = LocalFilesystem(workspace)
    await fs.write("good/a", "word")
    await fs.write("bad/b", "word")
    real = LocalTree.children

    def children(tree: LocalTree, parts: tuple[str, ...]):
        if parts == ("bad",):
            raise FilesystemError("bad: Permission denied")
        return real(tree, parts)

    monkeypatch.setattr(LocalTree, "children", children)
    found = await fs.grep("word")
    assert ([match.path for match in found.matches], found.truncated) == (["good/a"], True)


EDIT = """
import asyncio, sys
from harness.filesystem import LocalFilesystem
fs = LocalFilesystem(sys.argv[1]).for_namespace(("alice",))
async def main():
    for n in range(25):
        await fs.edit("a.md", f"<{sys.argv[2]}-{n}>", f"({sys.argv[2]}-{n})")
asyncio.run(main())
"""


async def test_edits_of_two_processes_all_arrive(workspace: Path) -> None:
    fs = LocalFilesystem(workspace).for_namespace(("alice",))
    await fs.write("a.md", "".join(f"<{who}-{n}>\n" for who in "pq" for n in range(25)))
    editors = [subprocess.Popen([sys.executable, "-c", EDIT, str(workspace), who]) for who in "pq"]  # noqa: ASYNC220
    assert [editor.wait(60) for editor in editors] == [0, 0]

    assert (await fs.read("a.md")).text == "".join(f"({who}-{n})\n" for who in "pq" for n in range(25))


def no_links(*_: object, **__: object) -> None:
    raise OSError(errno.EPERM, "Operation not permitted")


async def test_new_files_can_be_made_where_there_are_no_hard_links(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", no_links)
    fs = LocalFilesystem(workspace)
    await fs.write("a", "first")

    with pytest.raises(FileExists):
        await fs.write("a", "second")
    assert (await fs.read("a")).text == "first"


def test_a_name_taken_at_the_last_moment_is_not_overwritten(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = LocalTree(workspace)
    tree.store(("a",), b"first", exclusive=True)
    monkeypatch.setattr(local_tree, "_check_storable", lambda *_: None)

    with pytest.raises(FileExists):
        tree.store(("a",), b"second", exclusive=True)
    assert (workspace / "a").read_bytes() == b"first"


def test_a_folder_removed_during_a_write_is_said(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_tree, "_check_storable", lambda *_: (workspace / "d").rmdir())

    with pytest.raises(FilesystemError, match="folder of d/a was removed meanwhile"):
        LocalTree(workspace).store(("d", "a"), b"x", exclusive=False)


async def test_a_change_that_lasts_elsewhere_is_waited_for_only_so_long(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_tree, "_TURN_TIMEOUT", 0.05)
    fs = LocalFilesystem(workspace)
    await fs.write("a", "old")
    async with FileLock(workspace / "agents" / "edit.lock").held_for(1):
        with pytest.raises(FilesystemError, match="try again later"):
            await fs.edit("a", "old", "new")
        assert (await fs.read("a")).text == "old"


async def test_a_place_that_cannot_be_made_or_locked_is_said_without_naming_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "agents").write_text("")

    for attempt in (
        LocalFilesystem(tmp_path / "file" / "w").write_bytes("a", b""),
        LocalFilesystem(tmp_path / "place").write("a", ""),
    ):
        with pytest.raises(FilesystemError, match="administrator") as caught:
            await attempt
        assert str(tmp_path) not in str(caught.value)
    assert str(tmp_path) in caplog.text


@pytest.mark.parametrize("pattern", ["", "a\nb"])
async def test_grep_needs_a_text_within_a_line(workspace: Path, pattern: str) -> None:
    with pytest.raises(FilesystemError, match="within a line"):
        await LocalFilesystem(workspace).grep(pattern)


async def test_a_name_longer_than_disks_take_is_refused(workspace: Path) -> None:
    fs = LocalFilesystem(workspace)
    await fs.write("x" * 255, "")

    for path in ("x" * 256, "用" * 86, "/".join("a" * 65)):
        with pytest.raises(PathRefused):
            await fs.write(path, "")


async def test_no_attempt_leaves_a_descriptor_open(workspace: Path) -> None:
    fs = LocalFilesystem(workspace)
    await fs.write("d/a", "x")
    await fs.glob("*")
    before = len(os.listdir("/dev/fd"))
    for attempt in (fs.read("d"), fs.read("d/a/b"), fs.read("d/absent"), fs.write("d/a", ""), fs.write("d/a/b", "")):
        with pytest.raises(FilesystemError):
            await attempt

    assert len(os.listdir("/dev/fd")) == before
