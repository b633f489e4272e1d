"""A recording said again: what a loop is given, and how the differences are counted."""

from typing import Any

import pytest

from harness.context import CallScope, RuntimeContext
from harness.errors import ConfigError, ScriptError
from harness.messages import Media, MediaBlock, Msg, Opaque, TextBlock, ThinkingBlock, ToolResult, ToolUse
from harness.models import Model
from harness.models.base import Chunk, Done, ModelRequest, TextDelta, ThinkingDelta, ToolCallDelta
from harness.testing import Adaptations, ReplayModel
from harness.tools import ToolCall

SIGNED = ThinkingBlock(text="Hm.", opaque=Opaque(provider="anthropic", model="claude-x", data={"signature": "c2ln"}))
SCOPE = CallScope(ctx=RuntimeContext(), namespace=(), agent_id="a", session_id="s", services={})


def call(key: str, name: str = "Bash") -> ToolUse:
    return ToolUse(id=key, name=name, input={"n": key})


def result(key: str, text: str = "ok", **fields: Any) -> Msg:
    return Msg.tool(ToolResult(id=key, content=(TextBlock(text=text),), **fields))


async def answers(model: ReplayModel, count: int) -> list[Msg]:
    return [[chunk async for chunk in ask(model)][-1].message for _ in range(count)]


def ask(model: ReplayModel) -> Any:
    return model.stream(ModelRequest(messages=(Msg.user("x"),)))


class Loop:
    """The least a loop does: ask, run the tools, ask again."""

    def __init__(self, model: ReplayModel) -> None:
        self.model = model
        self.tools = {tool.name: tool for tool in model.tools()}
        self.said: list[Msg] = []

    async def call(self, msg: Msg, ctx: RuntimeContext) -> Msg:
        self.said.append(msg)
        while True:
            chunks: list[Chunk] = [chunk async for chunk in self.model.stream(ModelRequest(tuple(self.said)))]
            done = chunks[-1]
            assert isinstance(done, Done)
            self.said.append(done.message)
            if not done.message.tool_uses:
                return done.message
            for use in done.message.tool_uses:
                found = await self.tools[use.name].run(ToolCall(use.id, use.name, use.input), SCOPE)
                self.said.append(Msg.tool(found))


async def test_every_answer_comes_back_as_it_was_recorded() -> None:
    recorded = Msg.assistant(SIGNED, "Found.", call("c1"), provider="anthropic", model="claude-x")
    model = ReplayModel([Msg.user("go"), recorded, result("c1"), Msg.assistant("Done.")])

    chunks = [chunk async for chunk in ask(model)]

    assert isinstance(model, Model)
    assert chunks[:-1] == [ThinkingDelta("Hm."), TextDelta("Found."), ToolCallDelta("c1", "Bash", '{"n":"c1"}')]
    assert chunks[-1].message.blocks == recorded.blocks
    assert chunks[-1].message.stop == "tool_use"


async def test_it_passes_for_the_model_that_was_recorded() -> None:
    model = ReplayModel([Msg.user("go"), Msg.assistant("x", provider="anthropic", model="claude-x")])

    assert (model.provider, model.name) == ("anthropic", "claude-x")


async def test_tools_answer_by_the_id_of_the_call() -> None:
    image = MediaBlock(type="image", media=Media.from_bytes(b"png", "image/png"))
    second = Msg.tool(ToolResult(id="c2", content=(image,), is_error=True))
    model = ReplayModel([Msg.user("go"), Msg.assistant(call("c1"), call("c2")), second, result("c1", "one")])

    (tool,) = model.tools()
    found = [await tool.run(ToolCall(key, "Bash"), SCOPE) for key in ("c2", "c1")]

    assert [(item.id, item.is_error) for item in found] == [("c2", True), ("c1", False)]
    assert found[0].content[0].media.data == b"png"  # type: ignore[union-attr]
    assert found[1].text == "one"


async def test_a_call_without_a_recorded_result_gets_one_that_says_so() -> None:
    model = ReplayModel([Msg.user("go"), Msg.assistant(call("c1"))])

    found = await model.tools()[0].run(ToolCall("c1", "Bash"), SCOPE)

    assert (found.is_error, found.synthetic) == (True, "not-recorded")
    assert found.text == "[no result was recorded for this call]"
    assert model.adaptations == Adaptations(closings=1, open_calls=1)


async def test_a_whole_recording_is_driven_prompt_by_prompt() -> None:
    recording = [
        *(Msg.user("one"), Msg.assistant(call("c1")), result("c1", "r1"), Msg.assistant("first")),
        *(Msg.user("two"), Msg.assistant("second")),
    ]
    model = ReplayModel(recording)
    loop = Loop(model)

    replies = await model.replay(loop, RuntimeContext(session_id="s"))

    assert [reply.text for reply in replies] == ["first", "second"]
    assert [message.role for message in loop.said] == [message.role for message in recording]
    assert model.adaptations == Adaptations()


async def test_an_answer_without_calls_is_joined_into_the_one_behind_it() -> None:
    model = ReplayModel([Msg.user("go"), Msg.assistant("Looking."), Msg.assistant("Still.", call("c1")), result("c1")])

    (first, closing) = await answers(model, 2)

    assert [block.type for block in first.blocks] == ["text", "text", "toolUse"]
    assert closing.blocks == ()
    assert model.adaptations == Adaptations(joined=1, closings=1)


async def test_a_prompt_that_nobody_answered_is_closed_without_content() -> None:
    model = ReplayModel([Msg.user("go"), Msg.user("hello?"), Msg.assistant("Yes.")])

    assert [message.text for message in await answers(model, 2)] == ["", "Yes."]
    assert model.adaptations == Adaptations(closings=1)


async def test_answers_in_front_of_the_first_prompt_are_given_behind_it() -> None:
    model = ReplayModel([Msg.assistant("Welcome.", call("c1")), result("c1"), Msg.user("hi"), Msg.assistant("Hello.")])

    (prompt,) = model.prompts()

    assert prompt.message.text == "hi"
    assert [answer.text for answer in prompt.answers] == ["Welcome.", "Hello."]


async def test_a_result_without_a_call_is_left_out() -> None:
    model = ReplayModel([Msg.user("go"), result("zz"), Msg.assistant("Done.")])

    assert model.tools() == ()
    assert model.adaptations == Adaptations(orphans=1)


async def test_what_a_sub_agent_said_is_left_out_unless_it_is_all_there_is(reading: Any) -> None:
    def said(kind: str, text: str, sidechain: bool) -> dict[str, Any]:
        message = {"role": kind, "content": text}
        return {"type": kind, "uuid": text, "sessionId": "s", "isSidechain": sidechain, "message": message}

    inner = [said("user", "inner", True), said("assistant", "inner answer", True)]

    mixed = ReplayModel(reading(said("user", "outer", False), *inner, said("assistant", "answer", False)))
    alone = ReplayModel(reading(*inner))

    assert [prompt.message.text for prompt in mixed.prompts()] == ["outer"]
    assert mixed.adaptations == Adaptations(sidechain=2)
    assert [prompt.message.text for prompt in alone.prompts()] == ["inner"]
    assert alone.adaptations == Adaptations()


async def test_a_request_beyond_the_last_answer_is_an_error() -> None:
    model = ReplayModel([Msg.user("go"), Msg.assistant("Done.")])
    await answers(model, 1)

    with pytest.raises(ScriptError, match="request 2 came"):
        await answers(model, 1)


async def test_answers_that_were_never_asked_for_are_an_error() -> None:
    class Deaf:
        async def call(self, msg: Msg, ctx: RuntimeContext) -> Msg:
            return msg

    model = ReplayModel([Msg.user("go"), Msg.assistant("Done.")])

    with pytest.raises(ScriptError, match="1 of 1 steps were never asked for"):
        await model.replay(Deaf(), RuntimeContext())


def test_a_recording_without_a_prompt_is_refused() -> None:
    with pytest.raises(ConfigError, match="nothing to replay"):
        ReplayModel([Msg.assistant("Hello.")])


async def test_replayed_messages_get_ids_of_their_own() -> None:
    recorded = Msg.assistant("Done.")

    (answer,) = await answers(ReplayModel([Msg.user("go"), recorded]), 1)

    assert answer.id != recorded.id
