"""Nothing escapes from a local tenant's folder by a link, whenever the link came there."""

import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from harness.errors import FilesystemError, PathRefused
from harness.filesystem import AbstractFilesystem, FsspecFilesystem, LocalFilesystem, local_tree
from harness.filesystem.local_tree import LocalTree

SECRET = "secret of somebody else"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text(SECRET)
    return folder


@pytest.fixture
def home(tmp_path: Path, outside: Path) -> Path:
    """The folder of user1, full of links; user10 lives next door."""
    tenants = tmp_path / "workspace" / "tenants"
    neighbour, home = tenants / "user10", tenants / "user1"
    for folder in (neighbour, home):
        folder.mkdir(parents=True)
    (neighbour / "secret.txt").write_text(SECRET)
    (home / "own.txt").write_text("my own secret")
    (home / "file").symlink_to(outside / "secret.txt")
    (home / "folder").symlink_to(outside)
    (home / "neighbour").symlink_to("../user10")
    (home / "itself").symlink_to("itself")
    (home / "loop").symlink_to(".")
    (home / "chain").symlink_to("chain2")
    (home / "chain2").symlink_to("folder")
    (home / "hanging").symlink_to(outside / "not yet there")
    return home


@pytest.fixture(params=["local", "file"])
def fs(request: pytest.FixtureRequest, home: Path) -> AbstractFilesystem:
    workspace = home.parent.parent
    place = LocalFilesystem(workspace) if request.param == "local" else FsspecFilesystem(f"file://{workspace}")
    return place.for_namespace(("user1",))


LINKS = ("file", "folder", "neighbour", "itself", "loop", "chain", "chain2", "hanging")
LED = [
    "file", "folder/secret.txt", "neighbour/secret.txt", "itself", "itself/x", "chain/secret.txt", "loop/own.txt",
    "loop/loop/own.txt", "hanging", "hanging/x", "folder/new.txt", "folder/new/deep.txt",
]  # fmt: skip


@pytest.mark.parametrize("path", LED)
async def test_no_method_goes_through_a_link(fs: AbstractFilesystem, outside: Path, path: str) -> None:
    attempts = (
        fs.read(path), fs.read_bytes(path), fs.write(path, "x"), fs.write_bytes(path, b"x"), fs.edit(path, "secret", "x"),
        fs.ls(path), fs.glob("*", path), fs.grep("secret", path), fs.move(path, "stolen"), fs.move("own.txt", path),
        fs.exists(path),
    )  # fmt: skip
    for attempt in attempts:
        with pytest.raises(PathRefused):
            await attempt
    assert (outside / "secret.txt").read_text() == SECRET
    assert os.listdir(outside) == ["secret.txt"]


async def test_listing_glob_and_grep_pass_links_by_and_end(fs: AbstractFilesystem) -> None:
    assert [item.path for item in (await fs.ls()).items] == ["own.txt"]
    assert [item.path for item in (await fs.glob("**")).items] == ["own.txt"]
    assert [match.path for match in (await fs.grep("secret")).matches] == ["own.txt"]


async def test_deletion_removes_the_link_and_not_its_target(fs: AbstractFilesystem, home: Path, outside: Path) -> None:
    assert [await fs.delete(name) for name in LINKS] == [True] * len(LINKS)
    assert os.listdir(home) == ["own.txt"]
    assert (outside / "secret.txt").read_text() == SECRET


async def test_deletion_of_a_folder_leaves_what_its_links_point_to(
    fs: AbstractFilesystem, home: Path, outside: Path
) -> None:
    (home / "d").mkdir()
    (home / "d" / "link").symlink_to(outside)

    assert await fs.delete("d")
    assert (outside / "secret.txt").read_text() == SECRET


async def test_deletion_below_a_link_is_refused(fs: AbstractFilesystem, outside: Path) -> None:
    with pytest.raises(PathRefused):
        await fs.delete("folder/secret.txt")
    assert (outside / "secret.txt").exists()


async def test_links_in_the_shared_definitions_are_not_followed_either(
    fs: AbstractFilesystem, home: Path, outside: Path
) -> None:
    (home.parent.parent / "knowledge").symlink_to(outside)

    with pytest.raises(PathRefused):
        await fs.read("knowledge/secret.txt")
    assert (await fs.grep(SECRET)).matches == ()


async def test_a_workspace_that_is_itself_reached_by_a_link_works(home: Path, tmp_path: Path) -> None:
    (tmp_path / "by link").symlink_to(tmp_path / "workspace")
    fs = LocalFilesystem(tmp_path / "by link").for_namespace(("user1",))

    assert (await fs.read("own.txt")).text == "my own secret"


def swap_until(stop: threading.Event, root: Path, outside: Path) -> None:
    """Make `d` a folder and a link to the outside by turns."""
    tree, new = LocalTree(root), root / "new"
    while not stop.is_set():
        for make in (new.mkdir, lambda: new.symlink_to(outside)):
            with suppress(OSError, FilesystemError):  # the test writes at the same time, and may be first at the name
                tree.discard(("new",))
                make()
                tree.discard(("d",))
                new.rename(root / "d")


def attempts(tree: LocalTree, number: int) -> list[bytes]:
    try:
        tree.store(("d", f"{number}.txt"), b"mine", exclusive=False)
        return [tree.load(("d", "secret.txt"), 1000)]
    except FilesystemError as error:
        return [type(error).__name__.encode()]


def test_a_link_swapped_in_at_any_moment_leads_nowhere(tmp_path: Path, outside: Path) -> None:
    root, stop = tmp_path / "root", threading.Event()
    root.mkdir()
    swapper = threading.Thread(target=swap_until, args=(stop, root, outside))
    swapper.start()
    try:
        seen = {attempt for number in range(400) for attempt in attempts(LocalTree(root), number)}
    finally:
        stop.set()
        swapper.join()

    assert SECRET.encode() not in seen
    assert os.listdir(outside) == ["secret.txt"]


def test_a_link_swapped_in_between_look_and_open_is_refused(
    home: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = local_tree._look

    def look_then_swap(folder: int, parts: tuple[str, ...]) -> os.stat_result:
        found = real(folder, parts)
        (home / "own.txt").unlink()
        (home / "own.txt").symlink_to(outside / "secret.txt")
        return found

    monkeypatch.setattr(local_tree, "_look", look_then_swap)
    with pytest.raises(PathRefused, match=r"own\.txt is a link"):
        LocalTree(home).load(("own.txt",), 1000)


async def test_a_pipe_is_refused_at_once(fs: AbstractFilesystem, home: Path) -> None:
    os.mkfifo(home / "odd")

    for attempt in (fs.read("odd"), fs.write_bytes("odd", b""), fs.edit("odd", "a", "b")):
        with pytest.raises(PathRefused, match="pipe"):
            await attempt
    assert [item.path for item in (await fs.ls()).items] == ["own.txt"]


async def test_names_that_could_not_be_given_back_are_not_shown(fs: AbstractFilesystem, home: Path) -> None:
    for name in (b"not \xff text", b"line\nend", b".tmp-0011", b"tenant.json", b"back\\slash"):
        (home / os.fsdecode(name)).write_text(SECRET)
    (home / "agents" / "bot").mkdir(parents=True)
    (home / "agents" / "bot" / "s.jsonl").write_text(SECRET)

    assert [item.path for item in (await fs.ls()).items] == ["own.txt"]
    assert [item.path for item in (await fs.glob("**")).items] == ["own.txt"]
    assert [match.path for match in (await fs.grep("secret")).matches] == ["own.txt"]
