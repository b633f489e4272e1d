"""A line lists the contents that it names, once, where it is built; of a line without a list its places tell."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from referencekit import (
    HELD,
    IMAGE,
    LONG,
    NAMED,
    OWNER,
    PICTURE,
    PIXELS,
    SUM,
    Write,
    look_alikes,
    pictured,
    result,
    written,
)

from harness.errors import ConfigError
from harness.sessions import SessionCatalog, SessionTree, verify_session
from harness.sessions.lines.blobs import expand_message, shrink_message
from harness.sessions.lines.entries import MAX_LINE, digest
from harness.sessions.lines.layout import Owner, SessionFiles
from harness.sessions.moving.exporting import export_session
from harness.sessions.moving.forking import fork_session
from harness.sessions.moving.importing import place_beside, unpack
from harness.text import dumps

COPY = Owner("s-2", "notes", ("alice",))
# Before the list, nothing told of the media within blocks that stand in a file.
SEEN_AT_THEIR_PLACE = [name for name in NAMED if not ("long" in name and "picture" in name)]


def stored(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "files").glob("*/*") if len(path.name) == 64)


def lists(ledger: Path) -> list[list[str]]:
    """The list of each line that has one."""
    entries = map(json.loads, ledger.read_bytes().splitlines())
    return [[item["sha256"] for item in entry["files"]] for entry in entries if "files" in entry]


def without_lists(ledger: Path, **more: Any) -> None:
    """Make it what version 0.1.0 wrote; `more` is what an application put into its own lines."""
    lines: list[bytes] = []
    for raw in ledger.read_bytes().splitlines():
        entry = {key: value for key, value in json.loads(raw).items() if key != "files"}
        link = {"prevHash": digest(lines[-1])} if lines else {}
        lines.append(dumps(entry | link | (more if entry["type"] == "custom" else {})))
    ledger.write_bytes(b"\n".join([*lines, b""]))
    for derived in ("s-1.jsonl", "s-1.head.json"):
        ledger.with_name(derived).unlink(missing_ok=True)


async def talk_with(tree: SessionTree, talk: Any, *writes: Write) -> None:
    async with tree.writing():
        await talk.turn(tree, 1)
        for write in writes:
            write(tree)
        await talk.turn(tree, 2)


async def forked(make_tree: Any) -> Path:
    """The ledger of a copy."""
    source, target = make_tree().files, make_tree("s-2").files
    await fork_session(source, OWNER, target, "s-2", None, 30)
    assert verify_session(target, COPY).ok
    return target.ledger


def missed(tree: SessionTree) -> list[str]:
    """The contents that verify reads."""
    report = verify_session(tree.files, OWNER)
    assert {found.kind for found in report.findings} <= {"unanchored"}
    for name in (names := stored(tree.files.folder)):
        place = tree.files.blobs / name[:2] / name
        data = place.read_bytes()
        place.unlink()
        kinds = {found.kind for found in verify_session(tree.files, OWNER).findings}
        place.write_bytes(data)
        if "missing_file" not in kinds:
            names.remove(name)
    assert report.files == len(names)
    return names


@pytest.mark.parametrize("what", NAMED)
async def test_a_line_lists_each_content_that_it_names_once_and_in_order(what, make_tree, folder):
    tree, cold = make_tree(), make_tree()
    await written(tree, NAMED[what])
    assert lists(tree.files.ledger) == [stored(folder)]
    await cold.load()
    assert [entry.data.get("files") for entry in cold.path()] == [entry.data.get("files") for entry in tree.path()]


async def test_a_content_that_is_named_several_times_is_listed_once(make_tree, folder):
    twice = pictured("user", IMAGE, IMAGE, result(IMAGE, IMAGE, result(IMAGE)))
    await written(make_tree(), twice)
    assert lists(make_tree().files.ledger) == [[PIXELS]]


@pytest.mark.parametrize("where", HELD)
async def test_what_looks_like_a_reference_is_in_no_list_and_what_was_moved_for_it_is(where, make_tree, folder):
    tree = make_tree()
    await written(tree, *map(HELD[where], look_alikes(SUM)))
    assert sorted({name for names in lists(tree.files.ledger) for name in names}) == stored(folder)


async def test_a_line_that_names_nothing_has_no_list(make_tree, talk):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 1)
    assert lists(tree.files.ledger) == []


@pytest.mark.parametrize(
    "name", ["files", "type", "id", "parentId", "seq", "prevHash", "timestamp", "turnId", "requestId", "inherited"]
)
async def test_nobody_but_the_ledger_says_what_a_line_says_of_itself(name, make_tree, folder):
    """Neither an application, nor a redactor in an entry all of which is content."""
    forged = {name: [{"sha256": SUM}]}
    async with make_tree().writing() as tree:
        with pytest.raises(ConfigError, match=f"`{name}`, which is the ledger's own"):
            tree.add("custom", {"kind": "theirs", **forged})
        tree.add("custom", {"kind": "theirs", "data": forged})
    async with make_tree("s-2", redact=lambda value: value | forged).writing() as tree:
        with pytest.raises(ConfigError, match=f"`{name}`, which is the ledger's own"):
            tree.add("theirs", {"one": 1})
        tree.add("state", {"module": "plan", "value": {}})
    for owner in (OWNER, COPY):
        files = make_tree(owner.session).files
        assert lists(files.ledger) == []
        assert verify_session(files, owner).ok


async def test_a_redactor_cannot_take_a_content_off_the_list(make_tree, folder):
    def bare(value: dict[str, Any]) -> dict[str, Any]:
        return {key: item for key, item in value.items() if key != "files"}

    tree = make_tree(redact=bare)
    await written(tree, *NAMED.values())
    assert sorted({name for names in lists(tree.files.ledger) for name in names}) == stored(folder)


@pytest.mark.parametrize("text", ["", LONG], ids=["short", "long"])
@pytest.mark.parametrize("pictures", [1, 2000, 6500, 12_000])
def test_a_message_with_thousands_of_pictures_fits_into_a_line(pictures, text):
    media = [{"sha256": digest(b"%d" % number), "mediaType": "image/png", "bytes": 4} for number in range(pictures)]
    blocks = [{"type": "text", "text": text}, *({"type": "image", "media": each} for each in media)]
    message = {"id": "m", "role": "user", "content": blocks, "meta": {"note": "x" * 900_000}}
    small, moved, files = shrink_message(message, dumps(message))
    assert len(dumps({"message": small, **files})) < MAX_LINE - 4096
    assert [item["sha256"] for item in files["files"]] == sorted({*moved, *(each["sha256"] for each in media)})
    assert expand_message(small, moved.__getitem__) == message


@pytest.mark.parametrize("what", SEEN_AT_THEIR_PLACE)
async def test_of_a_line_without_a_list_the_places_tell_what_it_names(what, make_tree, folder, tmp_path):
    tree = make_tree()
    await written(tree, NAMED[what])
    without_lists(tree.files.ledger)
    assert lists(tree.files.ledger) == []
    names = stored(folder)
    assert missed(tree) == names
    bundle = export_session(tree.files, OWNER, tmp_path / "s.zip")
    assert sorted(Path(member.path).name for member in bundle.members if "files/" in member.path) == names
    await SessionCatalog(folder, "notes", ("alice",)).delete("s-1")
    assert stored(folder) == []


@pytest.mark.parametrize("where", HELD)
async def test_without_a_list_what_looks_like_a_reference_names_nothing(where, make_tree, folder):
    tree = make_tree()
    await written(tree, *map(HELD[where], look_alikes(SUM)))
    without_lists(tree.files.ledger)
    assert missed(tree) == stored(folder)


OWN = [["a.txt"], [], [{"sha256": "no sum"}], [{"sha256": SUM}, 5], {"sha256": SUM}, 5, "files"]


@pytest.mark.parametrize("own", OWN, ids=str)
async def test_a_field_of_that_name_that_is_an_applications_own_is_no_list(own, make_tree, talk):
    """As version 0.1.0 allowed it; nobody changes it, and the line names what it does."""
    tree = make_tree()
    await talk_with(tree, talk, NAMED["a content that an application keeps"])
    without_lists(tree.files.ledger, files=own)
    assert missed(tree) == [PIXELS]
    copied = map(json.loads, (await forked(make_tree)).read_bytes().splitlines())
    assert [entry.get("files") for entry in copied if entry["type"] == "custom"] == [own]
    assert verify_session(make_tree("s-2").files, COPY).files == 1


@pytest.mark.parametrize("listed", [True, False], ids=["with lists", "without"])
async def test_a_line_that_is_copied_lists_what_it_names(listed, make_tree, tmp_path, talk):
    """In a fork, and in a session that was taken over."""
    tree, bob = make_tree(), Owner("s-3", "notes", ("bob",))
    await talk_with(tree, talk, *(NAMED[name] for name in (NAMED if listed else SEEN_AT_THEIR_PLACE)))
    before = lists(tree.files.ledger)
    if not listed:
        without_lists(tree.files.ledger)
        async with tree.writing():
            await tree.rebuild()
    export_session(tree.files, OWNER, tmp_path / "s.zip")
    assert lists(await forked(make_tree)) == before
    elsewhere = SessionFiles(tmp_path / "elsewhere", "s-3")
    unpacked = place_beside(elsewhere, bob)
    unpack(tmp_path / "s.zip", unpacked, elsewhere, take_over=True)
    assert lists(unpacked.files.ledger) == before
    assert verify_session(unpacked.files, bob).ok


async def test_a_copied_line_that_has_no_room_for_its_list_has_none(make_tree, talk, monkeypatch):
    """A list that is not whole would be believed."""
    await talk_with(make_tree(), talk, NAMED["a picture"])
    without_lists(make_tree().files.ledger)
    monkeypatch.setattr("harness.sessions.lines.listed.MAX_LINE", 500)
    assert lists(await forked(make_tree)) == []
    assert verify_session(make_tree("s-2").files, COPY).files == 1


async def test_a_copied_binding_lists_the_text_that_only_another_branch_wrote(make_tree, talk):
    tree = make_tree()
    async with tree.writing():
        await talk.turn(tree, 1)
        end = tree.path()[-1].id
        tree.add_message(talk.user("question 2", "u2"), via="user")
        tree.bind([{"name": "prompt", "text": LONG}], [], "m-1", "test", {})
        tree._store.plan("request_end", {"status": "failed"}, request="none")
        await tree.branch(end)
        bare = {"name": "prompt", "sha256": digest(LONG.encode())}  # as versions up to 0.1.0 wrote it
        fields = {"system": [bare], "tools": [], "model": "m-2", "provider": "test", "options": {}}
        tree.add("binding", fields)
        await talk.turn(tree, 3)
    copied = (await forked(make_tree)).read_bytes().splitlines()
    [binding] = [entry for entry in map(json.loads, copied) if entry.get("model") == "m-2"]
    assert binding["system"][0]["stored"]["sha256"] == bare["sha256"]
    assert binding["files"] == [{"sha256": bare["sha256"]}]


async def test_a_picture_in_a_long_block_stays_while_a_line_lists_it(make_tree, folder):
    """Within the file of a block nothing is looked for: the line says it."""
    await written(make_tree(), NAMED["a picture in a long result"])
    await written(make_tree("s-2"), pictured("user", IMAGE))
    await SessionCatalog(folder, "notes", ("alice",)).delete("s-2")
    assert (folder / "files" / PIXELS[:2] / PIXELS).read_bytes() == PICTURE
