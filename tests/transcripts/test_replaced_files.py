"""A file that is replaced, written anew or cut while it is read: one of its states is read, or it is said."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.errors import FileMissing
from harness.transcripts import join, page, read, source, summary

SIZE = 400


def lines(name: str, count: int = SIZE, width: int = 900) -> bytes:
    told = {"type": "user", "sessionId": "s", "timestamp": "2026-01-01T00:00:00.000Z"}
    said = ({**told, "uuid": f"{name}{n}", "message": {"content": f"{name} {n} " + "x" * width}} for n in range(count))
    return b"".join(json.dumps(each).encode() + b"\n" for each in said)


def renamed_over(path: Path) -> None:
    (path.parent / "t").write_bytes(lines("NEW", width=907))
    os.replace(path.parent / "t", path)


def written_anew(path: Path) -> None:
    path.write_bytes(lines("NEW", width=907))


def written_anew_longer(path: Path) -> None:
    path.write_bytes(lines("NEW", 2 * SIZE))


def written_anew_of_the_same_size(path: Path) -> None:
    path.write_bytes(lines("NEW"))
    os.utime(path, (1_700_000_000, 1_700_000_000))


def cut(path: Path) -> None:
    os.truncate(path, 100_000)


CHANGES = [renamed_over, written_anew, written_anew_longer, written_anew_of_the_same_size, cut]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "s.jsonl").write_bytes(lines("OLD"))
    return tmp_path / "s.jsonl"


class Meanwhile:
    """Changes a file when the second piece of it has been read, so many times."""

    def __init__(self, patch: pytest.MonkeyPatch, change: Callable[[], object], times: int = 1) -> None:
        self.left = times
        chunks = source.FileSource._chunks

        def changing(this: source.FileSource, start: int, stop: int) -> Iterator[bytes]:
            for number, chunk in enumerate(chunks(this, start, stop)):
                if number == 1 and self.left:
                    self.left -= 1
                    change()
                yield chunk

        patch.setattr(source.FileSource, "_chunks", changing)


def said(turns: Any) -> set[str]:
    return {turn.text[:3] for turn in turns}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_while_it_is_read_is_read_as_one_of_its_states(
    path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    Meanwhile(monkeypatch, lambda: change(path))
    found = read(path)

    assert len(said(found.turns)) == 1
    assert found.stats()["bad_lines"] == (1 if change is cut else 0)
    assert [each.kind for each in found.warnings if each.kind != "bad_line"] == []


@pytest.mark.parametrize("change", CHANGES)
def test_a_page_of_a_file_that_changes_while_it_is_read_is_of_one_of_its_states(
    path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    Meanwhile(monkeypatch, lambda: change(path))
    found = page(path, window=300_000, min_turns=300)

    assert len(said(found.turns)) == 1
    assert [each.kind for each in found.warnings if each.kind != "bad_line"] == []


@pytest.mark.parametrize("reading", [read, lambda path: page(path, window=300_000, min_turns=300)])
def test_a_line_that_is_changed_in_place_behind_the_reader_is_read_as_it_is(
    path: Path, monkeypatch: pytest.MonkeyPatch, reading: Callable[[Path], Any]
) -> None:
    def change() -> None:
        path.write_bytes(path.read_bytes().replace(b"OLD 150 ", b"NEW 150 "))
        os.utime(path, (1_700_000_000, 1_700_000_000))

    Meanwhile(monkeypatch, change)

    assert [turn.text[:8] for turn in reading(path).turns if not turn.text.startswith("OLD")] == ["NEW 150 "]


def test_who_follows_a_file_that_was_replaced_while_the_page_was_read_has_one_of_its_states(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Meanwhile(monkeypatch, lambda: renamed_over(path))
    first = page(path, window=300_000)
    more = page(path, where="after", cursor=first.after, window=300_000)

    assert said(join([more]) if more.gap else (*first.turns, *more.turns)) == {"NEW"}


def test_a_file_that_is_written_anew_again_and_again_is_read_with_a_warning(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = iter(range(100))
    Meanwhile(monkeypatch, lambda: path.write_bytes(lines(f"N{next(names)}", width=880)), times=100)

    for found in (read(path).warnings, summary(path).warnings, page(path, window=300_000, min_turns=300).warnings):
        assert [each.text for each in found if each.kind == "rewritten"] == [
            "the file was written anew while it was read, and parts of two states may stand here; read it again"
        ]


def test_a_file_that_is_removed_while_it_is_read_is_read_to_its_end(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Meanwhile(monkeypatch, path.unlink)

    assert len(read(path).turns) == SIZE
    with pytest.raises(FileMissing):
        read(path)


def test_a_file_that_only_grows_while_it_is_read_is_read_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def grow() -> None:
        with path.open("ab") as file:
            file.write(lines("OLD", 3))

    meanwhile = Meanwhile(monkeypatch, grow, times=2)
    found = read(path)

    assert (len(found.turns), found.warnings, meanwhile.left) == (SIZE, (), 1)


def test_no_file_stays_open_behind_a_reading_that_was_left(path: Path) -> None:
    before = len(os.listdir("/dev/fd"))
    for _ in range(5):
        next(source.FileSource(path).lines())

    assert len(os.listdir("/dev/fd")) == before
