"""Whatever a redactor does, only content changes; one that errs is named, and leaves nothing half-written."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, agent_of, call_of, inexact, ledger, of_kind, shown

from harness.agent import open_session
from harness.errors import ConfigError, ModelRejected
from harness.hooks import CompactionConfig
from harness.messages import Media, MediaBlock, Msg, Usage
from harness.sessions import SessionTree, redact_texts
from harness.sessions.lines.content import with_structure
from harness.sessions.lines.redact import redacted
from harness.testing import ScriptedModel
from harness.tools import tool

MASKED = redact_texts(lambda text: "#" * len(text))
CONTENT = {
    "binding.system.text",
    "compaction.summary",
    "event.data.message", "event.data.title",
    "label.name",
    "message.message.content.content.text", "message.message.content.input.text", "message.message.content.text",
    "message.message.meta.note",
    "state.value.note",
    "turn_card.answered", "turn_card.asked", "turn_card.did.args.text",
}  # fmt: skip


@tool
async def echo(text: str) -> str:
    """Say it again."""
    return text * 400


class Notes:
    """A state module with a text in it."""

    name = "notes"

    def save(self) -> dict[str, Any]:
        return {"note": "call 0176 1234567"}

    def load(self, value: dict[str, Any]) -> None:
        """Nothing."""


async def talk(workspace: Path, redact: Callable[[dict[str, Any]], dict[str, Any]] | None) -> list[dict[str, Any]]:
    """A conversation with a call, a failure, a compaction, a label, a title and a branch."""
    model = ScriptedModel([
        [call_of("echo", text="0176 1234567 again and again")], "done 0176 1234567", "two", ModelRejected("no 0176 1234567"),
        "four", "five",
    ])  # fmt: skip
    config = CompactionConfig(trigger_messages=400, keep_messages=2, model=ScriptedModel(["sum 0176 1234567"] * 3))
    options: dict[str, Any] = {"redact": redact} if redact else {}
    async with agent_of(
        workspace, model, echo, compaction=config, state_module=Notes, system_prompt="Be brief, 0176 1234567.",
        **options,
    ) as agent:  # fmt: skip
        sessions = agent.sessions("alice")
        await agent.call(Msg.user("one 0176 1234567").with_changes(meta={"note": "0176 1234567"}), ALICE)
        second = agent.call("two", ALICE)
        await second
        with pytest.raises(ModelRejected):
            await agent.call("three", ALICE)
        await agent.call("four", ALICE)
        assert await sessions.compact("s1")
        await sessions.label("s1", second.entry_id, "label 0176 1234567")
        await sessions.rename("s1", "title 0176 1234567")
        await sessions.branch("s1", second.entry_id)
        await agent.call("five", ALICE)
        assert (await sessions.verify("s1")).findings == ()
        assert await inexact(agent, ALICE) == []
    return ledger(workspace)


def masked_paths(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, member in value.items():
            yield from masked_paths(member, f"{path}.{key}")
    elif isinstance(value, list):
        for member in value:
            yield from masked_paths(member, path)
    elif isinstance(value, str) and value and set(value) <= {"#", "…"}:
        yield path


def structure(value: Any, path: str) -> Any:
    """What stands outside of content, without what is another one each time."""
    if isinstance(value, dict):
        return {
            key: structure(member, f"{path}.{key}") for key, member in value.items() if f"{path}.{key}" not in CONTENT
        }
    return [structure(member, path) for member in value] if isinstance(value, list) else type(value)


async def test_all_that_is_masked_is_content(workspace: Path) -> None:
    lines = await talk(workspace, MASKED)
    assert {path for line in lines for path in masked_paths(line, line["type"])} == CONTENT


@pytest.mark.parametrize("pattern", ["\\d{7,}", "\\d", "[a-z]"])
async def test_lines_have_the_same_form_with_and_without_a_redactor(tmp_path: Path, pattern: str) -> None:
    before = await talk(tmp_path / "plain", None)
    after = await talk(tmp_path / "redacted", redact_texts(lambda text: re.sub(pattern, "#", text)))
    assert [structure(line, line["type"]) for line in after] == [structure(line, line["type"]) for line in before]
    ids = {line["id"] for line in after}
    compaction, label = of_kind(after, "compaction")[0], of_kind(after, "label")[0]
    assert {compaction["firstTurn"], compaction["lastTurn"], label["target"]} <= ids
    assert [line["status"] for line in of_kind(after, "request_end")] == [
        line["status"] for line in of_kind(before, "request_end")
    ]


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (
            "request_end",
            {"status": "completed", "stop": "end", "attempts": [{"reason": "initial", "settlement": "ok"}]},
        ),
        ("branch", {"to": "0176", "boundary": {"seq": 1, "offset": 0}}),
        ("event", {"kind": "eviction", "data": {"path": "results/c-1.txt", "call": "c", "media": {"sha256": "ab"}}}),
        ("event", {"kind": "arguments_cut", "data": {"lastTurn": "0176", "truncationText": "..."}}),
        ("event", {"kind": "packet_begin", "data": {"turns": [1, 2]}}),
        ("event", {"kind": "capacity", "data": {"provider": "p", "model": "m"}}),
        ("state", {"module": "handoff", "value": {"session": "0176", "entry": "0177"}}),
        ("state", {"module": "active_tool_groups", "value": {"on": ["web"], "off": []}}),
    ],
)
def test_what_is_no_content_is_given_back_as_it_was(kind: str, fields: dict[str, Any]) -> None:
    assert with_structure(kind, fields, wrecked(fields)) == fields
    assert redacted(lambda value: 1 / 0, kind, fields) == fields, "nobody is asked"


@pytest.mark.parametrize(
    ("kind", "fields", "kept"),
    [
        ("event", {"kind": "packet", "data": {"first": "a", "text": "sum"}}, {"kind": "packet", "data": {"first": "a", "text": "###"}}),
        ("event", {"kind": "own", "data": {"a": ["b"]}}, {"kind": "own", "data": {"a": ["#"]}}),
        ("custom", {"kind": "own", "data": {"id": "b"}}, {"kind": "own", "data": {"id": "#"}}),
        ("their_own", {"a": "b", "c": ["d"]}, {"a": "#", "c": ["#"]}),
        ("state", {"module": "own", "value": {"a": "b"}}, {"module": "own", "value": {"a": "#"}}),
        (
            "turn_card",
            {"turn": "t", "asked": "a", "did": [{"tool": "b", "call": "c", "args": "d"}], "outcome": "stopped"},
            {"turn": "t", "asked": "#", "did": [{"tool": "b", "call": "c", "args": "#"}], "outcome": "stopped"},
        ),
    ],
)  # fmt: skip
def test_content_of_entries_is_what_the_redactor_made_of_it(kind: str, fields: Any, kept: Any) -> None:
    assert with_structure(kind, fields, MASKED(fields)) == kept


MESSAGE = {
    "id": "m", "role": "tool", "model": "a", "provider": "b", "stop": "c", "usage": {"input": 1},
    "content": [
        {"type": "toolUse", "id": "1", "name": "n", "input": {"id": "secret"}},
        {"type": "toolResult", "id": "1", "name": "n", "isError": False, "content": [{"type": "text", "text": "secret"}]},
        {"type": "image", "media": {"sha256": "ab", "mediaType": "image/png", "bytes": 3, "name": "secret"}},
        {"type": "thinking", "text": "hm", "opaque": {"provider": "p", "model": "q", "data": "secret"}},
    ],
}  # fmt: skip


def wrecked(value: Any) -> Any:
    """Every text and number another one, under every key."""
    if isinstance(value, dict):
        return {key: wrecked(member) for key, member in value.items()}
    return [wrecked(member) for member in value] if isinstance(value, list) else "#"


def test_of_a_message_all_that_it_is_found_by_stays() -> None:
    assert with_structure("message", MESSAGE, wrecked(MESSAGE)) == {
        **MESSAGE,
        "content": [
            {"type": "toolUse", "id": "1", "name": "n", "input": {"id": "#"}},
            {"type": "toolResult", "id": "1", "name": "n", "isError": False, "content": [{"type": "text", "text": "#"}]},
            {"type": "image", "media": {"sha256": "ab", "mediaType": "image/png", "bytes": 3, "name": "#"}},
            {"type": "thinking", "text": "#", "opaque": {"provider": "p", "model": "q", "data": "#", "altered": True}},
        ],
    }  # fmt: skip


def test_a_text_may_take_the_place_of_a_picture_and_blocks_may_go_but_for_calls_and_results() -> None:
    use, result, *_ = MESSAGE["content"]
    text = {"type": "text", "text": "[picture]"}
    for blocks in ([use, result, text, text], [use, result], [text, use, result]):
        assert with_structure("message", MESSAGE, {**MESSAGE, "content": blocks}) == {**MESSAGE, "content": blocks}
    for blocks in ([use], [use, {**result, "id": "2"}], []):
        with pytest.raises(ValueError, match="other tool calls"):
            with_structure("message", MESSAGE, {**MESSAGE, "content": blocks})


SIGNED = {"provider": "p", "model": "m", "data": "signature"}
SHOWN = {
    "id": "m", "role": "assistant", "content": [
        {"type": "text", "text": "go on", "handoff": {"session": "s"}},
        {"type": "thinking", "text": "hm", "opaque": SIGNED},
        {"type": "image", "media": {"sha256": "ab", "mediaType": "image/png", "bytes": 3, "name": "me"}},
        {"type": "text", "text": "of 0176"},
    ],
}  # fmt: skip
FORGED = {"synthetic": "interrupted", "isError": True, "evicted": {"path": "x"}, "handoff": {"session": "t"}, "id": "9"}


def masked(block: Any) -> Any:
    """A block with other content."""
    content = {"text", "data", "name"}
    members = block.items() if isinstance(block, dict) else ()
    return {key: "#" if key in content else masked(value) for key, value in members} if members else block


@pytest.mark.parametrize("left_out", range(4))
def test_the_blocks_that_a_redactor_leaves_keep_their_structure(left_out: int) -> None:
    kept = [block for number, block in enumerate(SHOWN["content"]) if number != left_out]
    changed = {**SHOWN, "content": [masked(block) for block in kept]}
    expected = [
        {"type": "text", "text": "#", "handoff": {"session": "s"}},
        {"type": "thinking", "text": "#", "opaque": {**SIGNED, "data": "#", "altered": True}},
        {"type": "image", "media": {"sha256": "ab", "mediaType": "image/png", "bytes": 3, "name": "#"}},
        {"type": "text", "text": "#"},
    ]
    del expected[left_out]
    assert with_structure("message", SHOWN, changed)["content"] == expected
    result = {"type": "toolResult", "id": "1", "name": "n"}
    held, given = [{"content": [{**result, "content": content}]} for content in (SHOWN["content"], changed["content"])]
    assert with_structure("message", held, given)["content"] == [{**result, "content": expected}]


def test_a_payload_that_stays_as_it_was_is_of_use_though_the_one_before_it_went() -> None:
    blocks = [{"type": "thinking", "text": n, "opaque": {**SIGNED, "data": n}} for n in "ab"]
    before = {"id": "m", "role": "assistant", "content": blocks}
    for left in blocks:
        assert with_structure("message", before, {**before, "content": [left]})["content"] == [left]


def test_a_block_that_went_does_not_come_back_in_the_place_of_one_that_stayed() -> None:
    pictures = [{"type": "image", "media": {"sha256": n}} for n in ("ab", "cd")]
    before = {"id": "m", "role": "user", "content": pictures}
    for left in pictures:
        assert with_structure("message", before, {**before, "content": [left]})["content"] == [left]
    with pytest.raises(ValueError, match="was not there"):
        with_structure("message", before, {**before, "content": [{"type": "image", "media": {"sha256": "ef"}}]})


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "media": {"sha256": "cd", "mediaType": "image/png", "bytes": 3}},
        {"type": "image", "url": "https://x"},
        {"type": "thinking", "text": "hm", "opaque": SIGNED},
        {"type": "theirs"},
        {**SHOWN["content"][2], "synthetic": "no"},
        {"text": "of no type"},
    ],
)
def test_no_block_comes_in_through_a_redactor_but_a_text(block: dict[str, Any]) -> None:
    message = {"id": "m", "role": "user", "content": [{"type": "text", "text": "a"}]}
    for blocks in ([block, *message["content"]], [*message["content"], block], [block, block]):
        with pytest.raises(ValueError, match="gave a block for `content` that was not there"):
            with_structure("message", message, {**message, "content": blocks})
    more = {"type": "text", "text": "b"}
    forged = {**more, "opaque": SIGNED, "media": {"sha256": "ab"}, "stored": {"sha256": "ab"}, **FORGED}
    assert with_structure("message", message, {**message, "content": [*message["content"], forged]})["content"] == [
        *message["content"], more,
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["media", "opaque"])
@pytest.mark.parametrize("given", ["[redacted]", ["x"], 5, None])
def test_a_redactor_that_gives_something_else_for_an_object_is_named(name: str, given: Any) -> None:
    block = {"type": "image", "media": {"sha256": "ab"}, "opaque": SIGNED}
    message = {"id": "m", "role": "user", "content": [block]}
    with pytest.raises(ConfigError, match=f"gave no object for `{name}`"):
        redacted(lambda value: {**value, "content": [{**block, name: given}]}, "message", message)


def test_a_text_in_the_place_of_a_picture_is_no_more_than_a_text() -> None:
    message = {"id": "m", "role": "user", "content": [{"type": "image", "media": {"sha256": "ab"}}]}
    given = {"type": "text", "text": "[picture]", "media": {"sha256": "cd"}, "opaque": SIGNED, **FORGED}
    made = with_structure("message", message, {**message, "content": [given]})
    assert made["content"] == [{"type": "text", "text": "[picture]"}]


def test_a_number_that_becomes_another_kind_of_number_changes_no_structure() -> None:
    usage = {"input": 5, "output": 2}
    message = {"role": "assistant", "content": [], "usage": usage}
    made = redacted(lambda value: json.loads(json.dumps(value), parse_int=float), "message", message)
    assert [type(count) for count in made["usage"].values()] == [int, int]


def files_with(folder: Path, data: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and data in path.read_bytes()]


CARD = {"turn": "t", "asked": "a", "did": [{"tool": "x", "args": "y"}]}


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (None, "a NoneType for a turn_card"),
        ({**CARD, "asked": 5}, "a int for `asked`, which is a str"),
        ({**CARD, "did": []}, "0 members for `did`, which has 1"),
        ({**CARD, "did": [{"tool": "x"}]}, "no `args`"),
        ({"turn": "t", "did": CARD["did"]}, "no `asked`"),
    ],
)
def test_what_has_another_form_is_named(given: Any, what: str) -> None:
    with pytest.raises(ConfigError, match=f"gave {what}; it must give an object of the same form"):
        redacted(lambda _: given, "turn_card", CARD)


PICTURE = Media.from_bytes(b"pixels" * 50, "image/png")


@pytest.mark.parametrize("errs", [False, True], ids=["taken out", "refused"])
async def test_a_picture_that_a_redactor_takes_out_is_not_stored(workspace: Path, errs: bool) -> None:
    def without(value: dict[str, Any]) -> dict[str, Any]:
        blocks = value.get("content", [])
        kept = [{"type": "text", "text": "[picture]"} if "media" in block else block for block in blocks]
        return {**value, "content": "none" if errs else kept} if kept != blocks else value

    asked = Msg.user("look", MediaBlock(type="image", media=PICTURE))
    async with agent_of(workspace, ScriptedModel(["one", "two"]), redact=without) as agent:
        with pytest.raises(ConfigError) if errs else nullcontext():
            await agent.call(asked, ALICE)
        await agent.call("again", ALICE)
        assert (await agent.sessions("alice").verify("s1")).findings == ()
    assert files_with(workspace, b"pixels") == []


async def test_a_picture_that_stays_is_stored(workspace: Path) -> None:
    asked = Msg.user("look", MediaBlock(type="image", media=PICTURE))
    async with agent_of(workspace, ScriptedModel(["one"]), redact=MASKED) as agent:
        await agent.call(asked, ALICE)
        assert (await agent.sessions("alice").verify("s1")).files == 1


WRONG: dict[str, Callable[[Any], Any]] = {
    "raises": lambda value: 1 / 0,
    "none": lambda value: None,
    "list": lambda value: [value],
    "empty": lambda value: {},
    "emptied": lambda value: value.clear() or value,
    "content as text": lambda value: {**value, "content": "text"} if "content" in value else value,
    "content of texts": lambda value: {**value, "content": ["text"]} if "content" in value else value,
    "meta as text": lambda value: {**value, "meta": "text"} if "content" in value else value,
}
"""Redactors that give nothing that could be stored."""


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("from_call", [1, 2, 3, 4, 5, 6, 7, 8])
async def test_an_erring_redactor_is_an_error_of_ours_and_leaves_whole_lines(
    workspace: Path, wrong: Callable[[Any], Any], from_call: int
) -> None:
    asked = 0

    def errs(value: dict[str, Any]) -> dict[str, Any]:
        nonlocal asked
        asked += 1
        return wrong(value) if asked >= from_call else value

    model = ScriptedModel([[call_of("echo", text="x")], "done"])
    async with agent_of(workspace, model, echo, redact=errs) as agent:
        with suppress(ConfigError):  # no other error comes out
            await agent.call("one", ALICE)
    open_session._cache._open.clear()
    model = ScriptedModel(["yes"])
    async with agent_of(workspace, model, echo) as agent:
        await agent.call("two", ALICE)
        assert (await agent.sessions("alice").verify("s1")).findings == ()
        assert await inexact(agent, ALICE) == []
    assert shown(model.requests[0])[-1] == ("user", "two")


@pytest.mark.parametrize(
    "odd",
    [
        lambda value: {**value, "usage": None},
        lambda value: {**value, "id": 5, "role": "robot", "model": 3},
        lambda value: {key: member for key, member in value.items() if key not in ("role", "usage", "id")},
        lambda value: {**value, "meta": {"n": 2**70, "x": float("nan"), "o": object()}} if "content" in value else value,
    ],
    ids=["usage", "names", "dropped", "meta"],
)  # fmt: skip
async def test_what_a_redactor_does_to_structure_has_no_effect(
    workspace: Path, odd: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    for prompt in ("one", "two"):
        open_session._cache._open.clear()
        model = ScriptedModel([f"answer {prompt}"], usage=Usage(input=7, output=2))
        async with agent_of(workspace, model, redact=odd) as agent:
            await agent.call(prompt, ALICE)
            assert (await agent.sessions("alice").verify("s1")).findings == ()
    assert [text for _, text in shown(model.requests[0])] == ["one", "answer one", "two"]
    answers = [entry["message"] for entry in of_kind(ledger(workspace), "message") if entry["via"] == "model"]
    assert [answer["usage"] for answer in answers] == [{"input": 7, "cacheRead": 0, "cacheWrite": 0, "output": 2}] * 2


@pytest.mark.parametrize(
    "usage",
    [
        Usage(input=2**63), Usage(input=2**64), Usage(output=2**70), Usage(input=2**53), Usage(input=-1),
        Usage.model_construct(input=1.5, cache_read=0, cache_write=0, output=0, reasoning=None),
    ],
    ids=["2**63", "2**64", "2**70", "2**53", "negative", "broken"],
)  # fmt: skip
async def test_an_answer_with_a_usage_that_cannot_be_is_kept_without_it(workspace: Path, usage: Usage) -> None:
    refused = ModelRejected("no")
    refused.usage = usage
    async with agent_of(workspace, ScriptedModel(["answer", refused], usage=usage)) as agent:
        await agent.call("one", ALICE)
        with pytest.raises(ModelRejected):
            await agent.call("two", ALICE)
    open_session._cache._open.clear()
    model = ScriptedModel(["yes"])
    async with agent_of(workspace, model) as agent:
        await agent.call("three", ALICE)
        assert (await agent.sessions("alice").verify("s1")).findings == ()
        assert (await agent.sessions("alice").usage("s1")).billed.unknown == 3
    assert shown(model.requests[0])[:2] == [("user", "one"), ("assistant", "answer")]
    assert all("usage" not in entry for entry in of_kind(ledger(workspace), "request_end"))


async def test_a_usage_that_a_hook_puts_in_and_no_reader_takes_is_left_out(workspace: Path) -> None:
    class Counter:
        async def on_event(self, event: Any) -> Any:
            if event.event_name() == "post_reasoning":
                return event.change(message=event.message.with_changes(usage=Usage(input=2**64)))
            return event

    async with agent_of(workspace, ScriptedModel(["answer"]), hooks=[Counter()]) as agent:
        await agent.call("one", ALICE)
        assert (await agent.sessions("alice").verify("s1")).findings == ()
        assert [message.text for message in await agent.sessions("alice").history("s1", 2)] == ["one", "answer"]
    assert "usage" not in of_kind(ledger(workspace), "message")[-1]["message"]


@pytest.mark.parametrize(
    ("part", "odd"),
    [("message.role", {"role": "robot"}), ("message.content", {"content": "text"}), ("message.meta", {"meta": 5})],
)
async def test_what_is_no_message_is_refused_before_anything_is_written(tmp_path: Path, part: str, odd: Any) -> None:
    tree = SessionTree(tmp_path, "s", agent="a", namespace=())
    async with tree.writing():
        with pytest.raises(ConfigError, match=part):
            tree.add_message({"id": "m", "role": "user", "content": [], **odd}, via="user")
    assert not tree.files.ledger.exists()


def test_an_error_of_ours_that_a_redactor_raises_comes_out_as_it_is() -> None:
    def refuses(value: dict[str, Any]) -> dict[str, Any]:
        raise ConfigError("not without a key")

    with pytest.raises(ConfigError, match=r"^not without a key$"):
        redacted(refuses, "message", MESSAGE)
