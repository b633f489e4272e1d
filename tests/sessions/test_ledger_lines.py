"""What a line of the ledger is, and that every line is linked to the bytes before it."""

import hashlib
import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.errors import ConfigError, SessionDamaged
from harness.messages import Media, MediaBlock, Msg
from harness.sessions import SessionTree, verify_chain
from harness.sessions.lines.entries import own_copy
from harness.text import clean, dumps, loads

LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text())
VALUES = st.recursive(LEAVES, lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)))


async def test_envelope_keys_stand_in_their_order_and_nothing_is_null(make_tree, talk, folder):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 1, tool=True)

    order = ["type", "id", "parentId", "seq", "prevHash", "timestamp", "turnId", "requestId"]
    for raw in (folder / "s-1.log.jsonl").read_bytes().split(b"\n")[:-1]:
        keys = list(json.loads(raw))
        envelope = [key for key in keys if key in order]
        assert envelope == [key for key in order if key in keys]
        assert keys[: len(envelope)] == envelope
        assert b":null" not in raw


async def test_first_line_is_a_header_that_says_whose_ledger_it_is(make_tree, talk, folder, lines):
    async with make_tree().writing() as tree:
        tree.describe(provider="test", model="m-1", context_window=1000)
        await talk.turn(tree, 1)

    header = lines(folder / "s-1.log.jsonl")[0]
    assert header["type"] == "header"
    assert (header["format"], header["session"], header["agent"], header["tenant"]) == (1, "s-1", "notes", ["alice"])
    assert (header["provider"], header["model"], header["contextWindow"]) == ("test", "m-1", 1000)
    assert header["ledgerId"] == tree.ledger_id
    assert "parentId" not in header
    assert "prevHash" not in header


async def test_each_line_names_its_number_and_the_hash_of_the_bytes_before_it(make_tree, talk, folder):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 1, tool=True)

    raw = (folder / "s-1.log.jsonl").read_bytes().split(b"\n")[:-1]
    for number, (before, line) in enumerate(itertools.pairwise(raw), start=2):
        entry = json.loads(line)
        assert entry["seq"] == number
        assert entry["prevHash"] == hashlib.sha256(before).hexdigest()
    assert tree.last_hash == hashlib.sha256(raw[-1]).hexdigest()
    assert (tree.count, tree.bytes) == (len(raw), sum(len(line) + 1 for line in raw))


async def test_a_directive_is_its_own_turn_and_later_lines_belong_to_it(make_tree, talk, folder, lines):
    async with make_tree().writing() as tree:
        entry = tree.add_message(talk.user("hi", "u1"), via="user")
        await talk.answer(tree, "hello", "a1")

    messages = [line for line in lines(folder / "s-1.log.jsonl") if line["type"] == "message"]
    assert [line["turnId"] for line in messages] == [entry, entry]
    assert messages[0]["id"] == entry


async def test_lines_of_a_request_carry_its_id(make_tree, talk, folder, lines):
    async with make_tree().writing() as tree:
        tree.add_message(talk.user("hi", "u1"), via="user")
        request = await talk.answer(tree, "hello", "a1")

    of_request = [line["type"] for line in lines(folder / "s-1.log.jsonl") if line.get("requestId") == request]
    assert of_request == ["request_begin", "message", "request_end"]


async def test_times_are_utc_with_six_decimals(make_tree, talk, folder, lines):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 1)

    pattern = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
    assert all(pattern.fullmatch(line["timestamp"]) for line in lines(folder / "s-1.log.jsonl"))


@pytest.mark.parametrize("text", ["a\u2028b", "a\u2029b", "a\u0085b", "a\r\nb", "a\x0bb\x0cc", "\ufeffx", "日本\u0000"])
async def test_text_with_other_line_ends_stays_on_one_line(make_tree, talk, folder, text):
    async with make_tree().writing() as tree:
        tree.add_message(talk.user(text, "u1"), via="user")

    assert (folder / "s-1.log.jsonl").read_bytes().count(b"\n") == 2
    cold = make_tree()
    assert (await cold.load()).messages[0]["content"][0]["text"] == text


async def test_a_surrogate_that_passed_the_edge_does_not_stop_the_log(make_tree, talk):
    async with make_tree().writing() as tree:
        tree.add_message(talk.user("half \ud83d", "u1"), via="user")
        tree.add("event", {"kind": "warning", "data": {"text": "half \ud83d"}})
        tree.bind([{"name": "p", "text": "half \ud83d"}], [], "m", "p")

    assert (await make_tree().load()).messages[0]["content"][0]["text"] == "half \ufffd"


async def test_files_and_folders_are_private(make_tree, talk, folder):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 1)

    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700


async def test_making_a_tree_touches_no_disk(make_tree, folder):
    tree = make_tree()
    assert (await tree.load()).messages == []
    assert not folder.exists()


async def test_an_unlocked_tree_refuses_to_write(make_tree, talk):
    with pytest.raises(ConfigError, match=r"writing\(\)"):
        make_tree().add_message(talk.user("hi", "u1"), via="user")


@pytest.mark.parametrize("other", [{"namespace": ("bob",)}, {"namespace": ()}, {"agent": "other"}])
async def test_a_ledger_of_somebody_else_is_refused_and_unchanged(make_tree, talk, folder, other):
    async with make_tree().writing() as tree:
        await talk.turn(tree, 1)
    before = (folder / "s-1.log.jsonl").read_bytes()

    with pytest.raises(SessionDamaged, match="s-1"):
        await make_tree(**other).load()
    with pytest.raises(SessionDamaged):
        await make_tree(**other).lock()
    assert (folder / "s-1.log.jsonl").read_bytes() == before
    async with make_tree().writing(timeout=0):  # the refused one holds no lock
        pass


async def test_a_shortened_name_that_meets_another_session_is_refused(tmp_path, talk):
    long = "x" * 400
    first = SessionTree(tmp_path, long, agent="notes", namespace=())
    async with first.writing():
        first.add_message(talk.user("hi", "u1"), via="user")
    for path in tmp_path.iterdir():
        other = SessionTree(tmp_path, "y" * 400, agent="notes", namespace=())
        path.rename(Path(str(path).replace(first.files.name, other.files.name)))

    with pytest.raises(SessionDamaged):
        await other.load()
    assert (await SessionTree(tmp_path, long, agent="notes", namespace=()).load()).messages == []


async def test_unknown_types_and_fields_are_kept_and_ignored(make_tree, talk, folder, lines):
    async with make_tree().writing() as tree:
        tree.add("from_the_future", {"field": {"a": 1}})
        await talk.turn(tree, 1)

    assert [message["id"] for message in (await make_tree().load()).messages] == ["u1", "a1"]
    assert lines(folder / "s-1.log.jsonl")[1]["field"] == {"a": 1}


async def test_what_redact_returns_is_logged_and_shown(make_tree, talk, folder):
    def redact(message):
        return {**message, "content": [{"type": "text", "text": "[removed]"}]}

    async with make_tree(redact=redact).writing() as tree:
        tree.add_message(talk.user("my secret", "u1"), via="user")

    assert tree.messages()[0]["content"][0]["text"] == "[removed]"
    assert b"secret" not in (folder / "s-1.log.jsonl").read_bytes()


async def test_a_msg_brings_its_media_bytes_along(make_tree, folder):
    picture = Media.from_bytes(b"\x89PNG", "image/png", "a.png")
    async with make_tree().writing() as tree:
        tree.add_message(Msg.user(MediaBlock(type="image", media=picture)), via="user")
        assert await tree.load_media(picture.sha256) == b"\x89PNG"

    assert (folder / "files" / picture.sha256[:2] / picture.sha256).read_bytes() == b"\x89PNG"
    assert await make_tree().load_media(picture.sha256) == b"\x89PNG"
    assert verify_chain((folder / "s-1.log.jsonl").read_bytes()) == []


def _parts(value):
    yield id(value)
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for member in members:
        if isinstance(member, dict | list):
            yield from _parts(member)


@given(st.dictionaries(st.text(), VALUES))
@example({"calls": [{"id": "c", "seconds": 0.5}], "usage": None})
@example({"rows": [[1], [2]], "same": [None, {}]})
@example({"many": [{} for _ in range(40)]})
def test_what_memory_has_of_an_object_is_what_its_line_says_and_nobody_elses(value):
    stored = clean(value).value
    copy = own_copy(stored, dumps(stored))

    assert dumps(copy) == dumps(loads(dumps(stored)))
    assert not {*_parts(copy)} & {*_parts(stored)}


async def test_what_was_logged_stays_as_it_was_whatever_its_maker_does_to_it_afterwards(make_tree, folder, lines):
    message: Any = {"id": "u1", "role": "user", "content": [{"type": "text", "text": "hi"}], "meta": {"tags": ["a"]}}
    plain: Any = {"id": "u2", "role": "user", "content": [{"type": "text", "text": "hi"}]}
    details: Any = {"rows": [{"n": 1}]}
    async with make_tree().writing() as tree:
        tree.add_message(message, via="user")
        tree.add_message(plain, via="user")
        tree.add("event", {"kind": "of mine", "data": details})
        message["meta"]["tags"].append("b")
        for given_away in (message, plain):
            given_away["content"][0]["text"] = "bye"
            given_away["content"].append({"type": "text", "text": "more"})
        details["rows"][0]["n"] = 2
        details["rows"].append({})
        await tree.commit()
        known = [entry.data for entry in tree.path()]

    assert known == lines(folder / "s-1.log.jsonl")
