"""A file that holds several: what is no longer as it was written is refused, whichever bit it is."""

import ast
from pathlib import Path

import pytest

from harness.errors import PersistenceError, SessionDamaged
from harness.filesystem import disk
from harness.filesystem.archives import new_archive, open_archive

MEMBERS = {"a.jsonl": b'{"n": 1}\n', "files/ab/cd": b"zz" * 40}


def packed(path: Path) -> bytes:
    with new_archive(path) as archive:
        for name, data in MEMBERS.items():
            archive.add(name, [data])
    return path.read_bytes()


def contents(path: Path) -> dict[str, bytes]:
    with open_archive(path) as archive:
        return {name: archive.read(name, 1000) for name in archive.sizes}


def test_what_was_packed_is_unpacked(tmp_path: Path) -> None:
    packed(tmp_path / "a.zip")
    assert contents(tmp_path / "a.zip") == MEMBERS


def test_any_flipped_bit_is_damage_or_changes_no_content(tmp_path: Path) -> None:
    raw, changed, refused = packed(tmp_path / "a.zip"), tmp_path / "b.zip", 0
    for bit in range(8 * len(raw)):
        flipped = raw[bit // 8] ^ 1 << bit % 8
        changed.write_bytes(raw[: bit // 8] + bytes([flipped]) + raw[bit // 8 + 1 :])
        try:
            found = contents(changed)
        except SessionDamaged:
            refused += 1
        else:
            assert set(found.values()) <= set(MEMBERS.values()), bit
    assert refused > 3 * len(raw)


def test_an_archive_that_is_cut_anywhere_is_damage(tmp_path: Path) -> None:
    raw, cut = packed(tmp_path / "a.zip"), tmp_path / "b.zip"
    for end in range(len(raw)):
        cut.write_bytes(raw[:end])
        with pytest.raises(SessionDamaged):
            contents(cut)


def test_a_disk_that_fails_is_no_damage_of_the_file(tmp_path: Path) -> None:
    disk.make_folder(tmp_path / "folder.zip")
    with pytest.raises(PersistenceError):
        contents(tmp_path / "folder.zip")


def test_whatever_is_opened_by_its_name_is_asked_whether_it_is_a_file(root: Path) -> None:
    opened = []
    for path in (root / "harness").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open":
                names = {word.arg for word in node.keywords}
                opened.append((path.name, bool(names & {"opener", "closefd"})))
    assert len(opened) > 3
    assert [name for name, is_asked in opened if not is_asked] == []
