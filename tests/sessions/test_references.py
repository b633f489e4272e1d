"""A line names a content where this library writes a reference, and nowhere else: for verify, export and deletion."""

import hashlib
import importlib.util
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from harness.sessions import SessionCatalog, SessionTree, verify_session
from harness.sessions.lines.layout import Owner, SessionFiles
from harness.sessions.moving.exporting import export_session
from harness.sessions.moving.importing import place_beside, unpack
from harness.sessions.tree.results import keep_result

OWNER = Owner("s-1", "notes", ("alice",))
SCRIPT = Path(__file__).parents[2] / "examples/verify_ledger.py"
SUM = "ab" * 32
LONG = "x" * 300_000
IDS = count()
Write = Callable[[SessionTree], Any]


@pytest.fixture
def stranger() -> Callable[[Path], list[str]]:
    """What a program that knows the page about formats alone says of a ledger."""
    spec = importlib.util.spec_from_file_location("verify_ledger", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda ledger: list(module.problems(ledger))


def said(role: str, *blocks: dict[str, Any], **rest: Any) -> Write:
    message = {"id": f"m-{next(IDS)}", "role": role, "content": [*blocks], **rest}
    return lambda tree: tree.add_message(message, via="hook")


def noted(kind: str, /, **fields: Any) -> Write:
    return lambda tree: tree.add(kind, fields)


def bound(system: str = "Be brief.", schema: Any = None, options: Any = None) -> Write:
    tools = [{"name": "t", "schema": schema or {}}]
    return lambda tree: tree.bind([{"name": "p", "text": system}], tools, "m", "p", options)


def look_alikes(sha256: str) -> list[dict[str, Any]]:
    """Objects of a stranger that look like what this library writes, alone and in others."""
    reference = {"sha256": sha256, "bytes": 3}
    both = [{"stored": reference}, {"media": {**reference, "mediaType": "image/png"}}]
    image = {"type": "image", "media": reference}
    return [
        *both, {"a": both[0], "b": [both[1]]}, {"stored": reference, "media": reference}, image,
        {"type": "toolResult", "id": "1", "name": "n", "content": [image]}, {"content": [both[0], image]},
        {"type": "message", "message": {"content": [image]}}, {"kind": "eviction", "data": {"media": reference}},
        {"stored": {"sha256": sha256}}, {"stored": {"apples": 3}}, {"stored": {}}, {"stored": 5},
    ]  # fmt: skip


def use(value: Any) -> dict[str, Any]:
    return {"type": "toolUse", "id": "1", "name": "n", "input": value}


def result(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"type": "toolResult", "id": "1", "name": "n", "content": [*blocks]}


HELD: dict[str, Callable[[Any], Write]] = {
    "the input of a tool": lambda value: said("assistant", use(value)),
    "a member of the input": lambda value: said("assistant", use({"stored": value, "media": value})),
    "a block of a stranger": lambda value: said("assistant", {**value, "type": "theirs", "held": value}),
    "a block in a result": lambda value: said("tool", result({"type": "theirs", "held": value, "stored": value})),
    "a payload of a provider": lambda value: said(
        "assistant", {"type": "text", "text": "", "opaque": {"provider": "p", "model": "m", "data": value}}
    ),
    "the meta of a message": lambda value: said("user", {"type": "text", "text": "hi"}, meta=value),
    "a field of a message": lambda value: said("user", {"type": "text", "text": "hi"}, theirs=value),
    "a long message": lambda value: said("user", {"type": "text", "text": LONG}, use(value), meta=value, theirs=value),
    "a state": lambda value: noted("state", module="plan", value=value),
    "a long state": lambda value: noted("state", module="plan", value={"text": LONG * 4, **value}),
    "an entry of an application": lambda value: noted("custom", kind="theirs", data=value),
    "an entry of a type of its own": lambda value: noted("theirs", one=value, two={"media": value}),
    "an event": lambda value: noted("event", kind="theirs", data=value),
    "a validated output": lambda value: noted("artifact", turn="t", payload=value, digest="d"),
    "a card": lambda value: noted("turn_card", turn="t", did=[value]),
    "the options of a request": lambda value: bound(options=value),
    "a tool that is offered": lambda value: bound(schema=value),
}


async def written(tree: SessionTree, *writes: Write) -> None:
    async with tree.writing():
        tree.add_message({"id": "u-0", "role": "user", "content": [{"type": "text", "text": "hi"}]}, via="user")
        for write in writes:
            write(tree)


def said_in(tree: SessionTree) -> list[dict[str, Any]]:
    placed = ("timestamp", "prevHash", "seq")
    return [{key: value for key, value in entry.data.items() if key not in placed} for entry in tree.path()]


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


PICTURE = b"pixels"
PIXELS = hashlib.sha256(PICTURE).hexdigest()
IMAGE = {"type": "image", "media": {"sha256": PIXELS, "mediaType": "image/png", "bytes": 6}}


def pictured(role: str, *blocks: dict[str, Any]) -> Write:
    message = {"id": "m-1", "role": role, "content": [*blocks]}
    return lambda tree: tree.add_message(message, via="hook", media={PIXELS: PICTURE})


def kept_by_an_application(tree: SessionTree) -> None:
    tree.add("custom", {"kind": "theirs", "media": {"sha256": tree.keep(PICTURE), "bytes": 6}})


NAMED: dict[str, Write] = {
    "a long block": said("user", {"type": "text", "text": LONG}),
    "blocks that are long together": said("user", *[{"type": "text", "text": LONG[:200_000]}] * 6),
    "a long field of a message": said("user", {"type": "text", "text": ""}, meta={"note": LONG * 4}),
    "a long state": noted("state", module="plan", value={"note": LONG * 4}),
    "a long prompt": bound(system=LONG),
    "a long schema": bound(schema={"description": LONG}),
    "long options": bound(options={"note": LONG * 4}),
    "a picture": pictured("user", IMAGE),
    "a picture whose digest is not named first": pictured(
        "user", {"type": "image", "media": dict(reversed(IMAGE["media"].items()))}
    ),
    "a picture in a result": pictured("tool", result(IMAGE)),
    "a picture in a result in a result": pictured("tool", result(result(IMAGE))),
    "a picture in a long result": pictured("tool", result({"type": "text", "text": LONG}, IMAGE)),
    "a long picture": pictured("user", {**IMAGE, "opaque": {"provider": "p", "model": "m", "data": LONG}}),
    "a picture among blocks that are long together": pictured(
        "user", IMAGE, *[{"type": "text", "text": LONG[:200_000]}] * 6
    ),
    "a result that was evicted": lambda tree: keep_result(tree, "call", "tool", LONG),
    "a content that an application keeps": kept_by_an_application,
}


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
