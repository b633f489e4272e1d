"""Java files whose fields are not of their types: what was said comes along, and no session keeps another back."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, agent_of, ledger, logged, of_kind, shown

from harness.agent import open_session
from harness.errors import ConfigError, SessionDamaged
from harness.messages import Usage
from harness.models import ModelRequest
from harness.testing import ScriptedModel

Line = dict[str, Any]


def said(role: str, content: Any, **fields: Any) -> Line:
    return {"type": "message", "role": role, "content": content, "timestamp": 1, **fields}


def kept(role: str, *blocks: Any, **fields: Any) -> Line:
    return {"role": role, "content": list(blocks), **fields}


def words(text: Any) -> Line:
    return {"type": "text", "text": text}


def transcript(workspace: Path, lines: list[Line], name: str = "s1.log.jsonl") -> None:
    write(workspace / "alice" / "agents" / "notes" / "sessions" / name, lines)


def memory(workspace: Path, lines: list[Line], session: str = "s1") -> None:
    write(workspace / "agents" / "notes" / "context" / session / "memory_messages.jsonl", lines)


def write(path: Path, lines: list[Line]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


async def call(workspace: Path, words: str = "Go on.") -> ModelRequest:
    open_session._cache._open.clear()
    model = ScriptedModel(["Yes."])
    async with agent_of(workspace, model) as agent:
        await agent.call(words, ALICE)
        assert (await agent.sessions("alice").verify("s1")).findings == ()
    return model.requests[0]


def spoken(workspace: Path) -> list[str]:
    return [text for _, via, text in logged(workspace) if via != "repair"][:-2]


FOUR = [("USER", "one"), ("ASSISTANT", "a1"), ("USER", "two"), ("ASSISTANT", "a2")]


@pytest.mark.parametrize(
    "fields",
    [{}, {"id": None}, {"id": None, "parentId": None}, {"id": ""}, {"id": ["x"]}, {"id": "e"}, {"id": 5}],
    ids=["none", "null", "null with parent", "blank", "list", "equal", "equal numbers"],
)
async def test_each_line_is_a_message_whatever_its_id(workspace: Path, fields: Line) -> None:
    transcript(workspace, [said(role, text, **fields) for role, text in FOUR])
    await call(workspace)
    assert spoken(workspace) == ["one", "a1", "two", "a2"]
    ids = [entry["message"]["id"] for entry in of_kind(ledger(workspace), "message")]
    assert len(set(ids)) == len(ids)


async def test_lines_without_ids_may_say_the_same(workspace: Path) -> None:
    both = [said("USER", "yes"), said("ASSISTANT", "ok")] * 2
    for name in ("s1.log.jsonl", "s1.jsonl"):
        transcript(workspace, both, name)
    await call(workspace)
    assert spoken(workspace) == ["yes", "ok", "yes", "ok"]


@pytest.mark.parametrize("fields", [{}, {"id": None}, {"id": "same"}, {"id": {}}])
async def test_each_message_of_a_memory_is_one_whatever_its_id(workspace: Path, fields: Line) -> None:
    transcript(workspace, [said("USER", "one", id="1"), said("USER", "two", id="2", parentId="1")])
    memory(workspace, [kept(role, words(text), **fields) for role, text in FOUR])
    request = await call(workspace)
    assert [text for _, text in shown(request)] == ["one", "a1", "two", "a2", "Go on."]


async def test_the_same_message_twice_under_its_id_is_one(workspace: Path) -> None:
    answers = [said("ASSISTANT", "a1", id="2", parentId="1")] * 2
    transcript(workspace, [said("USER", "one", id="1"), *answers])
    await call(workspace)
    assert spoken(workspace) == ["one", "a1"]


@pytest.mark.parametrize(
    ("content", "text"), [(None, ""), (5, "5"), (["x"], '["x"]'), ({"a": 2**70}, '{"a":"1180591620717411303424"}')]
)
async def test_what_stands_in_the_place_of_a_text_is_text(workspace: Path, content: Any, text: str) -> None:
    transcript(workspace, [said("USER", content, id="1"), said("ASSISTANT", "ok", id="2", parentId="1")])
    await call(workspace)
    assert spoken(workspace) == [text, "ok"]


async def test_a_compaction_that_names_no_ids_is_none(workspace: Path) -> None:
    odd = {"type": "compaction", "id": [], "firstKeptEntryId": ["1"], "summaryEntryId": {}}
    transcript(workspace, [said("USER", "one", id="1"), odd, {"type": "summary", "id": [4], "summary": "S"}])
    assert shown(await call(workspace))[0] == ("user", "one")
    assert of_kind(ledger(workspace), "compaction") == []


@pytest.mark.parametrize(
    ("output", "text"),
    [(5, "5"), ("plain", "plain"), (None, ""), (words("one block"), "one block"), (["x", words(1)], "x1")],
)
async def test_a_result_that_is_no_list_of_blocks_is_its_text(workspace: Path, output: Any, text: str) -> None:
    transcript(workspace, [said("USER", "one", id="1")])
    use = {"type": "tool_use", "id": "c", "name": "look", "input": [1]}
    memory(workspace, [
        kept("USER", words("one"), id="1"), kept("ASSISTANT", use, id="2"),
        kept("TOOL", {"type": "tool_result", "id": "c", "name": ["n"], "output": output}, id="3"),
    ])  # fmt: skip
    await call(workspace)
    result = of_kind(ledger(workspace), "message")[2]["message"]["content"][0]
    assert "".join(block["text"] for block in result["content"]) == text


async def test_a_block_whose_type_is_no_word_is_kept(workspace: Path) -> None:
    transcript(workspace, [said("USER", "one", id="1")])
    memory(workspace, [kept("USER", words("one"), {"type": 5, "a": 1}, {"b": 2}, id="1")])
    await call(workspace)
    blocks = of_kind(ledger(workspace), "message")[0]["message"]["content"]
    assert blocks[1:] == [{"type": "java", "data": {"type": 5, "a": 1}}, {"type": "java", "data": {"b": 2}}]


@pytest.mark.parametrize("count", [2**64, 2**70, 2**53, -1, 1.5, "7", None])
async def test_a_count_that_nobody_can_have_counted_is_left_out(workspace: Path, count: Any) -> None:
    transcript(workspace, [said("USER", "one", id="1"), said("ASSISTANT", "a", id="2", parentId="1")])
    usage = {"_chat_usage": {"inputTokens": count, "outputTokens": 3}}
    memory(workspace, [kept("USER", words("one"), id="1"), kept("ASSISTANT", words("a"), id="2", metadata=usage)])
    await call(workspace)
    assert of_kind(ledger(workspace), "message")[1]["message"]["usage"] == {"output": 3}
    assert [text for _, text in shown(await call(workspace))][:2] == ["one", "a"]


async def test_names_that_are_no_utf8_are_nobodys(workspace: Path) -> None:
    transcript(workspace, [said("USER", "one", id="1")])
    folder = os.fsencode(workspace / "alice" / "agents" / "notes" / "sessions")
    try:
        os.link(folder + b"/s1.log.jsonl", folder + b"/\xff.log.jsonl")
    except OSError:
        pytest.skip("the file system takes no such names")
    os.makedirs(os.fsencode(workspace / "alice" / "agents" / "notes" / "context") + b"/\xff\xfe")
    os.makedirs(os.fsencode(workspace) + b"/\xfe\xff/agents/notes/sessions")
    async with agent_of(workspace, ScriptedModel()) as agent:
        assert await agent.sessions("alice").import_java() == ["s1"]


async def test_a_session_that_cannot_be_taken_over_keeps_no_other_back(workspace: Path) -> None:
    for session in ("bad", "good"):
        transcript(workspace, [said("USER", "one", id="1")], f"{session}.log.jsonl")
    other = workspace / "tenants" / "alice" / "agents" / "notes" / "sessions" / "bad.log.jsonl"
    write(other, [{"type": "header", "id": "h", "seq": 1, "session": "other", "agent": "notes", "tenant": ["alice"]}])
    async with agent_of(workspace, ScriptedModel()) as agent:
        assert await agent.sessions("alice").import_java() == ["good"]
        with pytest.raises(SessionDamaged, match="bad"):
            await agent.sessions("alice").import_java()


@pytest.mark.parametrize("from_call", range(1, 8))
async def test_an_error_on_the_way_leaves_nothing_half_taken_over(workspace: Path, from_call: int) -> None:
    transcript(workspace, [said(role, text, id=text, parentId="x") for role, text in FOUR])
    asked = 0

    def errs(value: Line) -> Line:
        nonlocal asked
        asked += 1
        return value if asked < from_call else {}

    async with agent_of(workspace, ScriptedModel(["Yes."]), redact=errs) as agent:
        with pytest.raises(ConfigError, match="redactor"):
            await agent.call("Go on.", ALICE)
    texts = [text for _, text in shown(await call(workspace, "Now."))]
    assert texts[:4] == ["one", "a1", "two", "a2"]
    assert texts[-1] == "Now."


@pytest.mark.parametrize(
    "usage", [Usage(input=2**53), Usage(output=-1), Usage(reasoning=2**64), Usage.model_construct(input=1.5)]
)
def test_a_usage_is_possible_in_whole_numbers_that_json_holds(usage: Usage) -> None:
    assert not usage.is_possible
    assert Usage(input=2**53 - 1, output=0).is_possible
