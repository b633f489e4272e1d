"""Values that were made past validation, by `model_copy` or `model_construct`: refused by name wherever one comes in."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, agent_of, call_of, ledger, logged, of_kind

from harness import tool
from harness.errors import ConfigError, HookError, ModelMalformed
from harness.hooks import (
    Event,
    PostActing,
    PostReasoning,
    PostSummary,
    PreActing,
    PreCall,
    PreReasoning,
    PreSummary,
    SystemPart,
)
from harness.messages import Media, MediaBlock, Msg, Opaque, TextBlock, ToolResult, ToolUse, Usage
from harness.models import ToolSpec
from harness.models.base import Done
from harness.models.retry import RetryPolicy
from harness.testing import ScriptedModel

Cases = list[tuple[dict[str, Any], str]]
NOTHING: Any = None
TEXT = TextBlock(text="x")
RESULT = ToolResult(id="c1", name="look", content="x")
USE = ToolUse(id="c1", name="look")
PICTURE = MediaBlock(type="image", media=Media.from_bytes(b"x", "image/png"))

RESULTS: Cases = [
    ({"content": 5}, "content"),
    ({"content": (7,)}, "content"),
    ({"content": (TEXT.model_copy(update={"text": None}),)}, "content.0.text"),
    ({"content": (PICTURE.model_copy(update={"media": "x"}),)}, "content.0.media"),
    ({"is_error": "no"}, "is_error"),
    ({"id": None}, "id"),
    ({"name": 7}, "name"),
    ({"synthetic": 7}, "synthetic"),
    ({"opaque": Opaque(provider="p").model_copy(update={"provider": 7})}, "opaque.provider"),
]
USES: Cases = [
    ({"input": []}, "input"),
    ({"input": {1: 2}}, "input.1"),
    ({"id": None}, "id"),
    ({"name": b"look"}, "name"),
]
MESSAGES: Cases = [
    ({"blocks": 5}, "blocks"),
    ({"blocks": (TEXT.model_copy(update={"text": 7}),)}, "blocks.0.text"),
    ({"blocks": (TEXT, RESULT.model_copy(update={"content": (TEXT, 7)}))}, "blocks.1.content"),
    ({"id": None}, "id"),
    ({"meta": "text"}, "meta"),
    ({"name": 7}, "name"),
    ({"usage": Usage().model_copy(update={"output": "many"})}, "usage.output"),
]


def corrupt(value: Any, cases: Cases) -> list[tuple[Any, str]]:
    return [(value.model_copy(update=fields), place) for fields, place in cases]


CHANGES: list[tuple[type[Event], str, Any, str]] = [
    *((PostActing, "result", value, place) for value, place in corrupt(RESULT, RESULTS)),
    *((PreActing, "result", value, place) for value, place in corrupt(RESULT, RESULTS)),
    *((PreActing, "tool_use", value, place) for value, place in corrupt(USE, USES)),
    *((PreCall, "messages", (value,), place) for value, place in corrupt(Msg.user("x"), MESSAGES)),
    *((PreReasoning, "additions", (value,), place) for value, place in corrupt(Msg.user("x"), MESSAGES)),
    *((PostReasoning, "message", value, place) for value, place in corrupt(Msg.assistant("x"), MESSAGES)),
    *((PostSummary, "message", value, place) for value, place in corrupt(Msg.assistant("x"), MESSAGES)),
    (PostReasoning, "message", Msg.model_construct(id="m1"), "role"),  # type: ignore[call-arg]  # that is the fault
    (PreReasoning, "tools", (ToolSpec(NOTHING, "d", {}),), "name"),
    (PreReasoning, "tools", (ToolSpec("x", NOTHING, {}),), "description"),
    (PreCall, "system", (SystemPart(NOTHING, "text"),), "name"),
    (PreReasoning, "system", (SystemPart(NOTHING, "text"),), "name"),
    (PreSummary, "system", (SystemPart("name", NOTHING),), "text"),
    (PreSummary, "instruction", 7, "int"),
    (PreReasoning, "options", ["a"], "list"),
]


@tool
def look() -> str:
    """Look at something."""
    return "seen"


class Careless:
    """Puts something into one field of one kind of event."""

    def __init__(self, kind: type[Event], field: str, value: Any) -> None:
        self.events = (kind,)
        self._fields = {field: value}

    async def on_event(self, event: Event) -> Event:
        return event.change(**self._fields)


@pytest.mark.parametrize(("kind", "field", "value", "place"), CHANGES)
async def test_what_a_hook_gives_that_is_not_what_it_claims_ends_the_call_in_an_error_that_names_hook_event_and_field(
    workspace: Path, kind: type[Event], field: str, value: Any, place: str
) -> None:
    hooks = [Careless(kind, field, value)]
    async with agent_of(workspace, ScriptedModel([call_of("look"), "done"]), look, hooks=hooks, max_steps=1) as agent:
        with pytest.raises(HookError) as caught:
            await agent.call("a", ALICE)
    told = str(caught.value)
    assert told.startswith("hook Careless (")
    assert f"into {kind.__name__}.{field}" in told
    assert place in told
    assert Path(__file__).name in told
    await assert_whole(workspace)


async def assert_whole(workspace: Path) -> None:
    """The session is what verification takes, and it goes on."""
    async with agent_of(workspace, ScriptedModel(["well"])) as agent:
        assert (await agent.sessions(ALICE).verify("s1")).ok
        assert (await agent.call("and now?", ALICE)).text == "well"
    assert all(isinstance(entry["message"]["content"], list) for entry in of_kind(ledger(workspace), "message"))


@pytest.mark.parametrize(("value", "place"), corrupt(Msg.user("x"), MESSAGES))
async def test_a_message_of_the_caller_that_is_not_what_it_claims_is_refused_and_nothing_is_logged(
    workspace: Path, value: Msg, place: str
) -> None:
    async with agent_of(workspace, ScriptedModel([])) as agent:
        call = agent.call("a", ALICE)
        for say in (lambda: agent.call(value, ALICE), lambda: call.steer(value)):
            with pytest.raises(ConfigError, match=rf"{place}\b.*; make it with the constructor"):
                await say()  # type: ignore[misc]  # it raises before there is anything to await
        assert await agent.sessions(ALICE).list() == []


@pytest.mark.parametrize(("value", "place"), corrupt(Msg.assistant("x"), MESSAGES[:-1]))
async def test_an_answer_of_a_model_that_is_not_what_it_claims_is_malformed(
    workspace: Path, value: Msg, place: str
) -> None:
    model = ScriptedModel([[Done(value)]])
    async with agent_of(workspace, model, retry=RetryPolicy(attempts=1)) as agent:
        with pytest.raises(ModelMalformed, match=rf"{place}\b"):
            await agent.call("a", ALICE)
    await assert_whole(workspace)


@pytest.mark.parametrize(
    ("value", "place"), [case for case in corrupt(RESULT, RESULTS) if case[1] not in ("id", "name")]
)
async def test_a_result_of_a_tool_that_is_not_what_it_claims_is_an_error_result(
    workspace: Path, value: ToolResult, place: str
) -> None:
    @tool
    def give() -> ToolResult:
        """Give it."""
        return value

    async with agent_of(workspace, ScriptedModel([call_of("give"), "done"]), give) as agent:
        assert (await agent.call("a", ALICE)).text == "done"
    assert f"cannot be read: ConfigError: {place}" in logged(workspace)[2][2]
    await assert_whole(workspace)


async def test_a_list_of_blocks_and_a_text_do_where_the_constructor_takes_them(workspace: Path) -> None:
    async def lists(event: PostActing) -> Event:
        return event.change(result=event.result.model_copy(update={"content": [TEXT]}))

    async def text(event: PostReasoning) -> Event:
        return (
            event.change(message=event.message.model_copy(update={"blocks": "words"})) if event.message.text else event
        )

    async with agent_of(workspace, ScriptedModel([call_of("look"), "done"]), look, hooks=[lists, text]) as agent:
        assert (await agent.call("a", ALICE)).text == "words"
    assert [words for _, role, words in logged(workspace) if role != "user"] == ["look({})", "x", "words"]
    await assert_whole(workspace)


def test_a_value_that_is_what_it_claims_is_given_back_itself() -> None:
    message = Msg(role="tool", blocks=[ToolResult(id="c", content=[TEXT, PICTURE])], meta={"a": [1]}, strange={"b": 2})
    assert message.checked() is message


MISPLACED = [
    (Msg.assistant("x", RESULT), "a ToolResult in a message of a model"),
    (Msg.user("x", USE), "a ToolUse in a message of role user"),
    (Msg(role="tool", blocks=(RESULT, USE)), "a ToolUse in a message of role tool"),
]


@pytest.mark.parametrize(("message", "wrong"), MISPLACED, ids=lambda value: value if isinstance(value, str) else "")
@pytest.mark.parametrize("way", ["call", "dict", "PreCall", "PreReasoning"])
async def test_a_call_or_a_result_where_it_can_have_no_partner_is_refused(
    workspace: Path, way: str, message: Msg, wrong: str
) -> None:
    async def adds(event: PreCall | PreReasoning) -> Event | None:
        if isinstance(event, PreCall):
            return event.change(messages=(*event.messages, message)) if way == "PreCall" else None
        return event.change(additions=(message,)) if way == "PreReasoning" else None

    given: Any = {"call": message, "dict": [message.to_dict()]}.get(way, "hi")
    error, by = (ConfigError, "blocks") if way in ("call", "dict") else (HookError, "hook .*adds")
    async with agent_of(workspace, ScriptedModel(["hello"]), hooks=[adds]) as agent:
        with pytest.raises(error, match=rf"{by}.*{wrong}"):
            await agent.call(given, ALICE)


async def test_a_hooks_answer_in_which_a_model_answers_its_own_tools_is_refused(workspace: Path) -> None:
    async def answers(event: PostReasoning) -> Event:
        return event.change(message=Msg.assistant(RESULT))

    async with agent_of(workspace, ScriptedModel(["hello"]), hooks=[answers]) as agent:
        with pytest.raises(HookError, match=r"answers .*a ToolResult in a message of a model.*PostReasoning\.message"):
            await agent.call("hi", ALICE)
    await assert_whole(workspace)
