"""A search ends within its budget, and says when it left something out."""

from pathlib import Path

import pytest

from harness.errors import FilesystemError
from harness.filesystem import LocalFilesystem, searching
from harness.filesystem.local_tree import LocalTree


@pytest.fixture
def fs(tmp_path: Path) -> LocalFilesystem:
    for number in range(5):
        (tmp_path / f"{number}.txt").write_text("word\nword\n")
    return LocalFilesystem(tmp_path)


async def test_a_glob_of_too_many_files_is_cut(fs: LocalFilesystem, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not (await fs.glob("*")).truncated
    monkeypatch.setattr(searching, "_MAX_HITS", 3)
    found = await fs.glob("*")

    assert ([item.path for item in found.items], found.truncated) == (["0.txt", "1.txt", "2.txt"], True)


async def test_a_grep_with_too_many_hits_is_cut_within_a_file(
    fs: LocalFilesystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "_MAX_HITS", 3)
    found = await fs.grep("word")

    assert [(match.path, match.line) for match in found.matches] == [("0.txt", 1), ("0.txt", 2), ("1.txt", 1)]
    assert found.truncated


@pytest.mark.parametrize(("limit", "value"), [("_MAX_FILES", 2), ("_MAX_BYTES", 25), ("_MAX_SECONDS", -1)])
async def test_a_spent_budget_is_said(
    fs: LocalFilesystem, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(searching, limit, value)
    found = await fs.grep("word")

    assert found.truncated
    assert len(found.matches) == (0 if value < 0 else 4)


async def test_folders_deeper_than_any_path_are_not_entered(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*"a" * 63)
    deep.mkdir(parents=True)
    (deep / "f").write_text("word")
    (deep / "b").mkdir()
    (deep / "b" / "g").write_text("word")
    found = await LocalFilesystem(tmp_path).grep("word")

    assert ([match.path for match in found.matches], found.truncated) == (["a/" * 63 + "f"], True)


async def test_a_file_that_cannot_be_read_is_passed_over(fs: LocalFilesystem, monkeypatch: pytest.MonkeyPatch) -> None:
    real = LocalTree.load

    def load(tree: LocalTree, parts: tuple[str, ...], limit: int) -> bytes:
        if parts == ("1.txt",):
            raise FilesystemError("1.txt: Input/output error")
        return real(tree, parts, limit)

    monkeypatch.setattr(LocalTree, "load", load)
    found = await fs.grep("word", glob="[012].txt")
    assert ({match.path for match in found.matches}, found.truncated) == ({"0.txt", "2.txt"}, True)


async def test_a_search_from_where_nothing_is_is_an_error(fs: LocalFilesystem) -> None:
    for attempt in (fs.grep("word", "absent"), fs.glob("*", "absent")):
        with pytest.raises(FilesystemError, match="absent"):
            await attempt


async def test_a_long_line_is_cut(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x" * 600)
    (match,) = (await LocalFilesystem(tmp_path).grep("x")).matches

    assert match.text == "x" * 500 + "…"
