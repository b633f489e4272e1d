"""Large contents and media stand in files by their digest, and come back exactly."""

import hashlib
import json

import pytest

from harness.errors import FileMissing, SessionDamaged
from harness.sessions import SessionCatalog, verify_chain

LARGE = "日本\u2028 " * 60_000


def _longest_line(folder):
    return max(len(line) for line in (folder / "s-1.log.jsonl").read_bytes().split(b"\n"))


async def _round_trip(make_tree, folder, message, via="user"):
    async with make_tree().writing() as tree:
        tree.add_message(message, via=via)
        hot = tree.messages()
    cold = make_tree()
    assert (await cold.load()).messages == hot
    assert cold.damage == []
    assert _longest_line(folder) <= 1024 * 1024
    assert verify_chain((folder / "s-1.log.jsonl").read_bytes()) == []
    return hot


async def test_a_large_text_comes_back_exactly(make_tree, talk, folder):
    message = talk.user(LARGE, "u1")
    assert (await _round_trip(make_tree, folder, message)) == [message]


async def test_a_large_tool_result_comes_back_exactly(make_tree, talk, folder):
    async with make_tree().writing() as tree:
        tree.add_message(talk.user("hi", "u1"), via="user")
        await talk.answer(tree, "", "a1", "x")
        tree.add_message(talk.result("t1", "x", text=LARGE), via="tool")
    assert (await make_tree().load()).messages[2] == talk.result("t1", "x", text=LARGE)


async def test_many_blocks_that_are_large_together_come_back_exactly(make_tree, folder):
    blocks = [{"type": "text", "text": f"{n} " + "x" * 200_000} for n in range(9)]
    message = {"id": "u1", "role": "user", "content": blocks}
    assert (await _round_trip(make_tree, folder, message)) == [message]


async def test_a_large_payload_of_a_provider_keeps_order_and_numbers(make_tree, folder):
    opaque = {
        "provider": "p",
        "model": "m",
        "data": {"z": 1.0, "a": 1e-07, "big": 9007199254740993, "s": "x" * 300_000},
    }
    message = {"id": "u1", "role": "user", "content": [{"type": "thinking", "text": "", "opaque": opaque}]}
    hot = await _round_trip(make_tree, folder, message)
    assert json.dumps(hot[0]) == json.dumps(message)


async def test_a_block_with_a_field_called_stored_is_the_users_own(make_tree, folder):
    block = {"type": "custom", "stored": {"sha256": "ab" * 32, "bytes": 3}}
    message = {"id": "u1", "role": "user", "content": [block]}
    assert (await _round_trip(make_tree, folder, message)) == [message]


async def test_large_fields_of_other_entries_come_back_exactly(make_tree, folder):
    value = {"notes": ["x" * 700_000, "y" * 700_000]}
    async with make_tree().writing() as tree:
        tree.add("state", {"module": "plan", "value": value})
        assert tree.states() == {"plan": value}
    cold = make_tree()
    await cold.load()
    assert cold.states() == {"plan": value}
    assert _longest_line(folder) <= 1024 * 1024


async def test_a_large_prompt_of_a_binding_is_in_the_file_of_its_digest(make_tree, folder, lines):
    text = "rule " * 300_000
    async with make_tree().writing() as tree:
        tree.bind([{"name": "p", "text": text}], [], "m", "p")
    item = next(line for line in lines(folder / "s-1.log.jsonl") if line["type"] == "binding")["system"][0]
    assert list(item) == ["name", "sha256", "stored"]
    assert (folder / "files" / item["sha256"][:2] / item["sha256"]).read_text() == text


async def test_a_preview_stands_in_the_line(make_tree, talk, folder, lines):
    async with make_tree().writing() as tree:
        tree.add_message(talk.user(LARGE, "u1"), via="user")
    block = lines(folder / "s-1.log.jsonl")[1]["message"]["content"][0]
    assert block["text"] == LARGE[:2000]
    data = (folder / "files" / block["stored"]["sha256"][:2] / block["stored"]["sha256"]).read_bytes()
    assert len(data) == block["stored"]["bytes"]
    assert json.loads(data) == [{"type": "text", "text": LARGE}]


async def test_a_missing_file_leaves_the_preview_and_is_reported(make_tree, talk, folder):
    async with make_tree().writing() as tree:
        tree.add_message(talk.user(LARGE, "u1"), via="user")
    for path in (folder / "files").glob("*/*"):
        path.unlink()
    cold = make_tree()
    assert (await cold.load()).messages[0]["content"][0]["text"] == LARGE[:2000]
    assert [found.kind for found in cold.damage] == ["file"]


async def test_changed_media_are_refused(make_tree, folder):
    sha256 = hashlib.sha256(b"sound").hexdigest()
    media = {"sha256": sha256, "mediaType": "audio/wav", "bytes": 5}
    message = {"id": "u1", "role": "user", "content": [{"type": "audio", "media": media}]}
    async with make_tree().writing() as tree:
        tree.add_message(message, via="user", media={sha256: b"sound"})
    path = folder / "files" / sha256[:2] / sha256
    assert await make_tree().load_media(sha256) == b"sound"
    path.write_bytes(b"noise")
    with pytest.raises(SessionDamaged):
        await make_tree().load_media(sha256)
    path.unlink()
    with pytest.raises(FileMissing):
        await make_tree().load_media(sha256)


@pytest.mark.parametrize("name", ["../../etc/passwd", "", "ab", "AB" * 32, "/" + "a" * 63])
async def test_what_is_no_digest_names_no_file(make_tree, name):
    with pytest.raises(SessionDamaged):
        await make_tree().load_media(name)


async def test_files_are_written_before_the_line_that_names_them(make_tree, talk, folder, monkeypatch):
    from harness.sessions.ledger import committing

    def refused(*args, **options):
        raise OSError("no files today")

    async with make_tree().writing() as tree:
        await talk.turn(tree, 1)
        before = (folder / "s-1.log.jsonl").read_bytes()
        tree.add_message(talk.user(LARGE, "u2"), via="user")
        with monkeypatch.context() as patch:
            patch.setattr(committing, "write_blobs", refused)
            with pytest.raises(OSError, match="no files today"):
                await tree.commit()
        assert (folder / "s-1.log.jsonl").read_bytes() == before
    assert (await make_tree().load()).messages[2]["content"][0]["text"] == LARGE


async def test_deleting_takes_the_contents_that_no_other_session_names(make_tree, talk, folder):
    for name, texts in {"s-1": ["a" * 300_000, "b" * 300_000], "s-2": ["b" * 300_000]}.items():
        async with make_tree(name).writing() as tree:
            for number, text in enumerate(texts):
                tree.add_message(talk.user(text, f"u{number}"), via="user")
    catalog = SessionCatalog(folder, "notes", ("alice",))
    await catalog.delete("s-1")
    left = [path.read_bytes() for path in (folder / "files").glob("*/*")]
    assert [b"bbb" in data for data in left] == [True]
    assert (await make_tree("s-2").load()).messages[0]["content"][0]["text"] == "b" * 300_000


@pytest.mark.parametrize("held", [{"apples": 3}, {"sha256": hashlib.sha256(b'"another session\'s"').hexdigest()}])
async def test_a_field_of_a_message_that_looks_like_a_reference_comes_back_as_it_was(make_tree, talk, folder, held):
    async with make_tree().writing() as tree:
        tree.keep(b'"another session\'s"')
        await tree.commit()
    message = {**talk.user("hi", "u1"), "meta": {"stored": held}}
    assert (await _round_trip(make_tree, folder, message)) == [message]
