"""A pipe, a device or a folder where a file belongs is refused at once: nobody waits for who never writes."""

import os
from pathlib import Path

import pytest

from harness.errors import PersistenceError
from harness.filesystem import disk

OPENING = {
    "read": disk.read,
    "read_blocks": lambda path: [*disk.read_blocks(path)],
    "write_block": lambda path: disk.write_block(path, b"x"),
    "overwrite": lambda path: disk.overwrite(path, b""),
    "append": lambda path: disk.append(path, b"x", sync=False),
    "create": lambda path: disk.create(path, b"x", sync=True),
}


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


@pytest.mark.parametrize("how", OPENING)
def test_a_pipe_keeps_nobody_waiting(pipe: Path, how: str) -> None:
    with pytest.raises(PersistenceError, match="move what is no regular file away"):
        OPENING[how](pipe)


@pytest.mark.parametrize("how", ["write_block", "overwrite", "append"])
def test_a_pipe_that_is_read_gets_nothing(pipe: Path, how: str) -> None:
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(PersistenceError, match="move what is no regular file away"):
            OPENING[how](pipe)
        assert os.read(reader, 1) == b""
    finally:
        os.close(reader)


@pytest.mark.parametrize("how", ["read", "write_block", "append"])
def test_a_folder_is_no_file(tmp_path: Path, how: str) -> None:
    with pytest.raises(PersistenceError, match="move the folder away"):
        OPENING[how](tmp_path)


def test_what_stands_where_a_file_belongs_is_told_from_a_file(tmp_path: Path, pipe: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    found = {name: disk.is_file_or_nothing(tmp_path / name) for name in ("file", "nothing", "link", "pipe", ".")}
    assert found == {"file": True, "nothing": True, "link": False, "pipe": False, ".": False}


def test_a_renamed_file_takes_the_place_of_another(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "b").write_bytes(b"b")
    assert disk.rename(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == b"a"
    assert not disk.rename(tmp_path / "a", tmp_path / "b")
