"""What is special to places that fsspec reaches."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from harness.errors import ConfigError, FilesystemError, PathRefused
from harness.filesystem import FsspecFilesystem, fsspec_tree

pytestmark = pytest.mark.usefixtures("empty_memory")


async def names(fs: FsspecFilesystem) -> list[str]:
    return [item.path for item in (await fs.glob("**")).items]


def test_the_room_loads_without_fsspec() -> None:
    code = "import sys, harness.filesystem; sys.exit('fsspec' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_two_workspaces_in_memory_share_nothing() -> None:
    first, second, longer = (FsspecFilesystem(f"memory://{name}") for name in ("a", "b", "a-longer"))
    await first.write("x", "first")
    await longer.write("y", "longer")

    assert await names(second) == []
    assert await names(first) == ["x"]


async def test_the_bare_memory_url_is_a_place_too() -> None:
    fs = FsspecFilesystem("memory://")
    await fs.write("d/x", "1")
    await fs.for_namespace(("alice",)).write("y", "2")

    assert [item.path for item in (await fs.ls()).items] == ["d"]
    assert sorted(MemoryFileSystem.store) == ["/d/x", "/tenants/alice/y"]


@pytest.mark.parametrize("protocol", ["memory", "file"])
async def test_what_another_writer_added_is_listed(protocol: str, tmp_path: Path) -> None:
    url = f"{protocol}://{tmp_path}/w"
    reader, writer = FsspecFilesystem(url), FsspecFilesystem(url)
    await writer.write("a", "1")
    assert await names(reader) == ["a"]
    await writer.write("b", "2")
    await writer.delete("a")

    assert await names(reader) == ["b"]


@pytest.mark.parametrize(
    "url",
    [
        "nosuch://x", "simplecache::memory://x", "dir::file:///etc", "dir://x", "filecache://x", "memory://a/../b",
        "file:///tmp/../etc", "zip://x::file:///a.zip",
    ],
)  # fmt: skip
def test_a_place_that_cannot_be_walled_is_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        FsspecFilesystem(url)


def test_the_wrapper_of_a_folder_is_refused_with_options_too() -> None:
    with pytest.raises(ConfigError):
        FsspecFilesystem("dir://", path="/etc", target_protocol="file")


async def test_a_name_that_fsspec_reads_as_a_chain_is_refused() -> None:
    with pytest.raises(PathRefused, match="chain"):
        await FsspecFilesystem("memory://a").write("x::file", "")


async def test_a_store_that_cannot_be_reached_is_an_ordinary_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: MemoryFileSystem, **_: object) -> None:
        raise ConnectionError("secret host refused")

    monkeypatch.setattr(MemoryFileSystem, "__init__", refuse)
    with pytest.raises(FilesystemError, match="cannot reach the store") as caught:
        await FsspecFilesystem("memory://a").ls()
    assert "secret host" not in str(caught.value)


async def test_a_lasting_failure_is_reported_after_three_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def fail(self: MemoryFileSystem, path: str, value: bytes, **_: object) -> None:
        calls.append(path)
        raise TimeoutError("the store at secret host is overloaded")

    fs = FsspecFilesystem("memory://a")
    await fs.write("f", "old")
    monkeypatch.setattr(MemoryFileSystem, "pipe_file", fail)
    with pytest.raises(FilesystemError, match=r"cannot write f: the store failed \(TimeoutError\)") as caught:
        await fs.write_bytes("f", b"new")

    assert calls == ["/a/f"] * 3
    assert "secret host" not in str(caught.value)
    assert (await fs.read("f")).text == "old"


async def test_a_refusal_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def refuse(self: MemoryFileSystem, path: str, **_: object) -> None:
        calls.append(path)
        raise PermissionError(path)

    monkeypatch.setattr(MemoryFileSystem, "info", refuse)
    with pytest.raises(FilesystemError, match="PermissionError"):
        await FsspecFilesystem("memory://a").read("f")
    assert calls == ["/a/f"]


async def test_a_move_that_fails_half_way_loses_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    fs = FsspecFilesystem("memory://a")
    for name in ("d/x", "d/y"):
        await fs.write(name, name)
    real = MemoryFileSystem.cp_file

    def fail(self: MemoryFileSystem, path1: str, path2: str, **_: object) -> None:
        if path1.endswith("y"):
            raise TimeoutError
        real(self, path1, path2)

    monkeypatch.setattr(MemoryFileSystem, "cp_file", fail)
    with pytest.raises(FilesystemError):
        await fs.move("d", "e")

    assert [(await fs.read(path)).text for path in ("e/x", "d/y")] == ["d/x", "d/y"]


async def test_where_a_write_is_not_whole_the_name_appears_last(monkeypatch: pytest.MonkeyPatch) -> None:
    fs = FsspecFilesystem("failing://a")
    await fs.write("f", "old")
    written: list[str] = []
    real = MemoryFileSystem.pipe_file

    def note(self: MemoryFileSystem, path: str, value: bytes, **options: object) -> None:
        written.append(os.path.basename(path))
        real(self, path, value, **options)

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", note)
    await fs.write_bytes("f", b"new")
    assert [name.startswith(".tmp-") for name in written] == [True]
    assert (await fs.read("f")).text == "new"
    assert await names(fs) == ["f"]


async def test_on_a_disk_links_are_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "link").symlink_to(tmp_path / "secret")

    with pytest.raises(PathRefused, match="link"):
        await FsspecFilesystem(f"file://{tmp_path}/w").read("link")


async def test_a_file_in_memory_has_a_time(workspace: Path) -> None:
    made = await FsspecFilesystem("memory://a").write("f", "")

    assert made.modified.endswith("Z")
    assert len(made.modified) == 27


async def test_a_file_over_the_limit_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    await FsspecFilesystem("memory://a").write("f", "01234567890")
    monkeypatch.setattr(MemoryFileSystem, "cat_file", None)

    with pytest.raises(FilesystemError, match="11 bytes, the most is 10"):
        await FsspecFilesystem("memory://a", max_file_bytes=10).read("f")


async def test_markers_links_and_chains_in_a_listing_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        {"name": "/a/", "size": 0, "type": "file"},
        {"name": "/a/link", "size": 0, "type": "link"},
        {"name": "/a/link2", "size": 0, "type": "file", "islink": True},
        {"name": "/a/x::y", "size": 0, "type": "file"},
        {"name": "/a/f", "size": None, "type": "file", "LastModified": "2026-01-02T03:04:05Z"},
    ]
    monkeypatch.setattr(MemoryFileSystem, "ls", lambda *_, **__: found)

    assert [(i.path, i.size, i.modified) for i in (await FsspecFilesystem("memory://a").ls()).items] == [
        ("f", 0, "2026-01-02T03:04:05Z")
    ]


async def test_a_change_that_lasts_elsewhere_is_waited_for_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fsspec_tree, "_TURN_TIMEOUT", 0.05)
    fs = FsspecFilesystem("memory://a")
    await fs.write("f", "old")
    with fsspec_tree._turns.of(fs._own.place), pytest.raises(FilesystemError, match="try again later"):
        await fs.edit("f", "old", "new")
    assert (await fs.read("f")).text == "old"


async def test_a_removal_whose_answer_was_lost_is_a_removal(monkeypatch: pytest.MonkeyPatch) -> None:
    fs = FsspecFilesystem("memory://a")
    await fs.write("f", "x")
    real = MemoryFileSystem.rm_file

    def remove_then_fail(self: MemoryFileSystem, path: str) -> None:
        real(self, path)
        raise TimeoutError

    monkeypatch.setattr(MemoryFileSystem, "rm_file", remove_then_fail)
    assert await fs.delete("f")
    assert not await fs.exists("f")
