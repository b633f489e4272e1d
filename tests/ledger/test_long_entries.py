"""Whatever an entry of any type is given, its line has at most 1 MB, and what it says comes back whole (B47)."""

from pathlib import Path
from typing import Any

import pytest

from harness.errors import ConfigError
from harness.sessions import SessionTree, verify_chain
from harness.sessions.checking.verify import verify_session
from harness.sessions.lines.layout import Owner

BIG = "é\u2028\x01" * 500_000


def tree_of(folder: Path) -> SessionTree:
    return SessionTree(folder, "s", agent="a", namespace=("u",), durability="none")


def say(tree: SessionTree, message_id: str) -> None:
    tree.add_message({"id": message_id, "role": "user", "content": [{"type": "text", "text": "hi"}]}, via="user")


def longest_line(folder: Path) -> int:
    return max(map(len, (folder / "s.log.jsonl").read_bytes().split(b"\n")))


ENTRIES: dict[str, tuple[str, dict[str, Any]]] = {
    "event data": ("event", {"kind": "warning", "data": {"text": BIG}}),
    "event kind": ("event", {"kind": BIG, "data": {}}),
    "label": ("label", {"target": "x", "name": BIG}),
    "custom": ("custom", {"kind": "mine", "data": [BIG]}),
    "artifact": ("artifact", {"turn": "t", "payload": {"a": BIG}, "digest": "d", "derivedFrom": []}),
    "state": ("state", {"module": "plan", "value": {"steps": [BIG]}}),
    "turn card": ("turn_card", {"turn": "t", "asked": BIG, "did": [], "answered": BIG}),
    "attempts": ("request_end", {"status": "failed", "attempts": [{"error": "e" * 1000}] * 3000}),
    "cards": ("compaction", {"boundary": False, "summary": BIG, "cards": [{"asked": "a" * 1000}] * 2000}),
}


@pytest.mark.parametrize("name", ENTRIES)
async def test_an_entry_that_is_too_long_for_a_line_comes_back_whole(tmp_path: Path, name: str) -> None:
    kind, fields = ENTRIES[name]
    tree = tree_of(tmp_path)
    async with tree.writing():
        say(tree, "one")
        entry_id = tree.add(kind, fields)
    assert longest_line(tmp_path) <= 1024 * 1024
    cold = tree_of(tmp_path)
    await cold.load()
    entry = next(entry for entry in cold.path() if entry.id == entry_id)
    assert {key: entry.data[key] for key in fields} == fields
    assert cold.damage == []


MESSAGES: dict[str, dict[str, Any]] = {
    "name": {"role": "user", "name": BIG, "content": []},
    "meta": {"role": "user", "meta": {"a": BIG}, "content": []},
    "many blocks": {"role": "user", "content": [{"type": "text", "text": "y" * 1000}] * 3000},
    "opaque": {"role": "assistant", "content": [{"type": "thinking", "text": "", "opaque": {"data": BIG}}]},
    "arguments": {"role": "assistant", "content": [{"type": "toolUse", "id": "c", "name": "t", "input": {"a": BIG}}]},
    "name of a tool": {"role": "assistant", "content": [{"type": "toolUse", "id": "c", "name": BIG, "input": {}}]},
}


@pytest.mark.parametrize("via", ["user", "hook", "repair"])
@pytest.mark.parametrize("name", MESSAGES)
async def test_a_message_that_is_too_long_for_a_line_comes_back_whole(tmp_path: Path, name: str, via: str) -> None:
    message = {"id": "m", **MESSAGES[name]}
    tree = tree_of(tmp_path)
    async with tree.writing():
        say(tree, "one")
        entry_id = tree.add_message(message, via=via)
    assert longest_line(tmp_path) <= 1024 * 1024
    cold = tree_of(tmp_path)
    await cold.load()
    assert next(entry for entry in cold.path() if entry.id == entry_id).data["message"] == message


BINDINGS: dict[str, tuple[list[dict[str, str]], list[dict[str, Any]], dict[str, Any]]] = {
    "one text": ([{"name": "p", "text": BIG}], [], {}),
    "sixty texts": ([{"name": f"p{i}", "text": f"{i} \x01" * 30_000} for i in range(60)], [], {}),
    "two hundred tools": ([], [{"name": f"t{i}", "schema": {"about": f"{i} " * 5000}} for i in range(200)], {}),
    "options": ([], [], {"grammar": BIG}),
}


@pytest.mark.parametrize("name", BINDINGS)
async def test_a_binding_of_any_size_is_proved_at_its_request(tmp_path: Path, name: str) -> None:
    system, tools, options = BINDINGS[name]
    tree = tree_of(tmp_path)
    async with tree.writing():
        say(tree, "one")
        binding = tree.bind(system, tools, "m", "p", options)
        request = tree.begin_request("execute", 1, binding, tree.messages(), tree.turn, "compaction")
    assert longest_line(tmp_path) <= 1024 * 1024
    cold = tree_of(tmp_path)
    await cold.load()
    seen = await cold.context_at(request)
    assert seen.exact
    assert [item["text"] for item in seen.system] == [item["text"] for item in system]
    assert [item["schema"] for item in seen.tools] == [item["schema"] for item in tools]
    assert seen.options == options
    async with cold.writing():
        assert cold.bind(system, tools, "m", "p", options) == binding


async def test_a_request_that_names_very_many_lines_is_proved_too(tmp_path: Path) -> None:
    tree = tree_of(tmp_path)
    async with tree.writing():
        say(tree, "one")
        binding = tree.bind([], [], "m", "p", {})
        shown = [tree.path()[1].id]
        many = tree.begin_request("execute", 1, binding, [], tree.turn, "compaction", select=shown * 40_000)
    assert longest_line(tmp_path) <= 1024 * 1024
    cold = tree_of(tmp_path)
    await cold.load()
    assert next(entry for entry in cold.path() if entry.id == many).data["select"] == shown * 40_000


async def test_a_text_of_the_prompt_whose_file_is_gone_is_named(tmp_path: Path) -> None:
    tree = tree_of(tmp_path)
    async with tree.writing():
        say(tree, "one")
        tree.bind([{"name": "p", "text": BIG}], [], "m", "p", {})
    (file,) = (path for path in (tmp_path / "files").glob("*/*") if len(path.name) == 64)
    file.unlink()
    report = verify_session(tree.files, Owner("s", "a", ("u",)))
    assert [(found.kind, found.line) for found in report.findings] == [("missing_file", 3)]


REFUSED: dict[str, dict[str, Any]] = {
    "id": {"message": {"id": BIG, "role": "user", "content": []}, "via": "user"},
    "key": {"message": {"id": "m", "role": "user", "content": []}, "via": "user", "idempotency_key": BIG},
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_names_a_message_and_is_too_long_is_refused_and_the_session_goes_on(
    tmp_path: Path, name: str
) -> None:
    tree = tree_of(tmp_path)
    async with tree.writing():
        say(tree, "one")
        with pytest.raises(ConfigError, match="a line at most 1048576"):
            tree.add_message(**REFUSED[name])
        say(tree, "two")
    cold = tree_of(tmp_path)
    assert [message["id"] for message in (await cold.load()).messages] == ["one", "two"]
    assert verify_chain((tmp_path / "s.log.jsonl").read_bytes()) == []
