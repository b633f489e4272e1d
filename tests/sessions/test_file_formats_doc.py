"""The page on file formats is true: its examples are read with a JSON parser and SHA-256 alone."""

import hashlib
import json
import re

import pytest

from harness.ids import encode_name
from harness.sessions import SessionTree, verify_chain
from harness.sessions.catalog.index import encode_index, list_ledger, read_index
from harness.sessions.lines.anchor import parse_anchor
from harness.sessions.lines.entries import make_line


@pytest.fixture(scope="module")
def page(root):
    return (root / "docs" / "file-formats.md").read_text("utf-8")


def _blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def _sha256(data):
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def example(page):
    """The bytes of the example ledger."""
    return _blocks(page, "jsonl")[0].encode()


def test_the_lines_of_the_example_are_linked(example):
    raw = example.split(b"\n")[:-1]
    assert [json.loads(line)["seq"] for line in raw] == [1, 2, 3, 4, 5, 6]
    assert [json.loads(line)["prevHash"] for line in raw[1:]] == [_sha256(line) for line in raw[:-1]]
    assert verify_chain(example) == []


def test_the_digests_of_the_example_are_those_on_the_page(page, example):
    raw = [line.decode() for line in example.split(b"\n")[:-1]]
    user, binding, begin = raw[1], json.loads(raw[2]), json.loads(raw[3])
    start = user.index('"message":') + len('"message":')
    _, end = json.JSONDecoder().raw_decode(user, start)
    of_message = _sha256(user[start:end].encode())

    named = [{"name": part["name"], "sha256": part["sha256"]} for part in binding["system"]]
    fields = {"system": named, "tools": [], **{key: binding[key] for key in ("model", "provider", "options")}}
    of_binding = _sha256(json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode())

    of_context = _sha256(f"{of_binding}\n{of_message}\n".encode())
    assert begin["contextDigest"] == of_context
    assert binding["system"][0]["sha256"] == _sha256(binding["system"][0]["text"].encode())
    assert all(f"`{digest}`" in page for digest in (of_message, of_binding, of_context))


def test_the_anchor_of_the_example_names_its_end(page, example):
    block = _blocks(page, "json")[0].encode().rstrip(b"\n").ljust(511) + b"\n"
    data = json.loads(block)
    assert data["sum"] == _sha256(block.partition(b',"sum":')[0])
    assert (data["count"], data["bytes"]) == (6, len(example))
    assert data["hash"] == _sha256(example.split(b"\n")[5])
    assert parse_anchor(block) is not None


def test_the_context_file_of_the_example_copies_its_messages(page, example):
    head, *copies = _blocks(page, "jsonl")[1].encode().split(b"\n")[:-1]
    raw = example.split(b"\n")
    assert copies == [raw[1], raw[4]]
    assert (json.loads(head)["seq"], json.loads(head)["hash"]) == (6, _sha256(raw[5]))


def test_the_list_of_the_example_is_one(page, example, tmp_path):
    raw = _blocks(page, "json")[1].encode().rstrip(b"\n")
    listed = read_index(raw)
    assert encode_index(listed, {"agent": "notes", "tenant": ["alice"]}) == raw
    (tmp_path / "s-1.log.jsonl").write_bytes(example)
    assert listed == {"s-1": list_ledger("s-1", tmp_path / "s-1.log.jsonl")}


def test_the_library_reads_the_example(example, tmp_path):
    (tmp_path / "s-1.log.jsonl").write_bytes(example)
    tree = SessionTree(tmp_path, "s-1", agent="notes", namespace=("alice",))

    async def texts():
        return [message["content"][0]["text"] for message in (await tree.load()).messages]

    import asyncio

    assert asyncio.run(texts()) == ["Ciao, è tardi?", "No."]


def test_the_table_of_names_is_right(page):
    rows = re.findall(
        r"^\| `(\S+)` \| `(\S+)` \|$", page.partition("| id | name |")[2].partition("\n\n")[0], re.MULTILINE
    )
    assert len(rows) == 8
    assert [(value, encode_name(value)) for value, _ in rows] == rows


def test_every_envelope_key_is_on_the_page_in_its_order(page):
    line = make_line("custom", "e", {}, parent="p", seq=2, prev_hash="h", turn="t", request="r")
    rows = re.findall(r"^\| `(\w+)` \| ", page.partition("| key | |")[2].partition("\n\n")[0], re.MULTILINE)
    assert rows == list(line)
