"""Work that is confined to a folder reads nothing outside, wherever a name has come to lead."""

from pathlib import Path

import pytest

from harness.errors import PersistenceError
from harness.filesystem import disk
from harness.filesystem.confined import inside


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path.resolve() / "mine"
    made.mkdir()
    (made / "file").write_text("mine")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "file").write_text("theirs")
    return made


def test_what_lies_in_the_folder_is_read(folder: Path) -> None:
    assert inside(folder, disk.read, folder / "file") == b"mine"


def test_a_link_that_took_the_place_of_a_file_is_not_followed_out(folder: Path) -> None:
    (folder / "file").unlink()
    (folder / "file").symlink_to(folder.parent / "theirs" / "file")
    with pytest.raises(PersistenceError, match="remove the link"):
        inside(folder, disk.read, folder / "file")


def test_a_link_that_took_the_place_of_a_folder_is_not_followed_out(folder: Path) -> None:
    (folder / "file").unlink()
    folder.rmdir()
    folder.symlink_to(folder.parent / "theirs")
    with pytest.raises(PersistenceError, match="remove the link"):
        inside(folder, disk.read, folder / "file")


def test_a_link_within_the_folder_is_followed(folder: Path) -> None:
    (folder / "other").symlink_to(folder / "file")
    assert inside(folder, disk.read, folder / "other") == b"mine"


def test_other_work_is_not_confined(folder: Path) -> None:
    inside(folder, disk.read, folder / "file")
    assert disk.read(folder.parent / "theirs" / "file") == b"theirs"


def test_a_file_that_only_has_a_name_that_begins_alike_is_outside(folder: Path) -> None:
    other = folder.with_name("mine-too")
    other.mkdir()
    (other / "file").write_text("theirs")
    with pytest.raises(PersistenceError):
        inside(folder, disk.read, other / "file")
