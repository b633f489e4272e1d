"""A line names a content where this library writes a reference, and nowhere else: for verify, export and deletion."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from referencekit import HELD, NAMED, OWNER, PIXELS, SUM, look_alikes, said, said_in, written

from harness.sessions import SessionCatalog, verify_session
from harness.sessions.lines.layout import SessionFiles
from harness.sessions.moving.exporting import export_session
from harness.sessions.moving.importing import place_beside, unpack

SCRIPT = Path(__file__).parents[2] / "examples/verify_ledger.py"


@pytest.fixture
def stranger() -> Callable[[Path], list[str]]:
    """What a program that knows the page about formats alone says of a ledger."""
    spec = importlib.util.spec_from_file_location("verify_ledger", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda ledger: list(module.problems(ledger))


@pytest.mark.parametrize("where", HELD)
async def test_what_looks_like_a_reference_is_content_and_comes_back_as_it_was(where, make_tree, stranger):
    tree, cold = make_tree(), make_tree()
    await written(tree, *map(HELD[where], look_alikes(SUM)))
    await cold.load()
    for given, found in zip(said_in(tree), said_in(cold), strict=True):
        assert found == given
    assert cold.damage == []
    assert verify_session(tree.files, OWNER).findings == ()
    assert stranger(tree.files.ledger) == []


@pytest.mark.parametrize("where", HELD)
async def test_a_content_of_another_session_does_not_go_to_who_has_its_name(where, make_tree, folder, tmp_path):
    """It does not take the place of what was said, it is not exported with it and not deleted with it."""
    other, tree, cold = make_tree("other"), make_tree(), make_tree()
    async with other.writing():
        kept = other.keep(b'"of the other session"')
        other.add("custom", {"kind": "theirs", "media": {"sha256": kept, "bytes": 22}})
    await written(tree, *map(HELD[where], look_alikes(kept)))
    await cold.load()
    assert said_in(cold) == said_in(tree)
    bundle = export_session(tree.files, OWNER, tmp_path / "s.zip")
    assert [member.path for member in bundle.members if kept in member.path] == []
    other.files.ledger.rename(tmp_path / "out of the way")
    await SessionCatalog(folder, "notes", ("alice",)).delete("s-1")
    assert await other.load_media(kept) == b'"of the other session"'


@pytest.mark.parametrize("what", NAMED)
async def test_each_content_that_a_line_names_is_missed_is_exported_and_is_deleted_with_it(
    what, make_tree, folder, tmp_path, stranger
):
    tree = make_tree()
    await written(tree, NAMED[what])
    contents = sorted(path.name for path in (folder / "files").glob("*/*"))
    long = "long" in what and "picture" in what
    assert len(contents) == (2 if long else 1)
    assert verify_session(tree.files, OWNER).files == len(contents)
    assert verify_session(tree.files, OWNER).findings == ()
    assert stranger(tree.files.ledger) == []

    bundle = export_session(tree.files, OWNER, tmp_path / "s.zip")
    assert bundle.missing == ()
    assert sorted(Path(member.path).name for member in bundle.members)[: len(contents)] == contents

    for name in contents:
        place = folder / "files" / name[:2] / name
        data = place.read_bytes()
        place.unlink()
        found = [(one.kind, one.line) for one in verify_session(tree.files, OWNER).findings]
        assert found == [("missing_file", 3)]
        assert stranger(tree.files.ledger) == [f"line 3 names a file that is missing or changed: {name}"]
        assert export_session(tree.files, OWNER, tmp_path / f"{name}.zip").missing == (name,)
        place.write_bytes(data)

    await SessionCatalog(folder, "notes", ("alice",)).delete("s-1")
    assert list((folder / "files").glob("*/*")) == []
    elsewhere = SessionFiles(tmp_path / "elsewhere", "s-1")
    unpacked = place_beside(elsewhere, OWNER)
    unpack(tmp_path / "s.zip", unpacked, elsewhere)
    assert verify_session(unpacked.files, OWNER).findings == ()
    assert verify_session(unpacked.files, OWNER).files == len(contents)


@pytest.mark.parametrize("what", [name for name in NAMED if "picture" in name])
async def test_a_picture_stays_while_another_session_shows_it(what, make_tree, folder):
    await written(make_tree(), NAMED[what])
    await written(make_tree("s-2"), NAMED["a picture"])
    catalog = SessionCatalog(folder, "notes", ("alice",))
    await catalog.delete("s-2")
    assert verify_session(make_tree().files, OWNER).findings == ()
    await written(make_tree("s-2"), NAMED["a picture"])
    await catalog.delete("s-1")
    assert [path.name for path in (folder / "files").glob("*/*")] == [PIXELS]


async def test_what_a_damaged_line_may_have_named_stays(make_tree, folder):
    await written(make_tree(), NAMED["a picture"])
    await written(make_tree("s-2"), NAMED["a picture"])
    ledger = make_tree("s-2").files.ledger
    ledger.write_bytes(
        ledger.read_bytes().replace(
            b'"role":"user","content":[{"type":"image"', b'"role":"user,"content":[{"type":"image"'
        )
    )
    await SessionCatalog(folder, "notes", ("alice",)).delete("s-1")
    assert [path.name for path in (folder / "files").glob("*/*")] == [PIXELS]


async def test_no_message_makes_a_line_that_is_too_long(make_tree, folder):
    blocks = [{"type": "text", "text": "x" * 245_000} for _ in range(4)]
    tree = make_tree()
    await written(tree, said("user", *blocks, meta={"note": "y" * 900_000}, name="z", theirs=["v"] * 200_000))
    assert max(len(line) for line in tree.files.ledger.read_bytes().split(b"\n")) <= 1024 * 1024
    cold = make_tree()
    await cold.load()
    assert said_in(cold) == said_in(tree)
