"""The scripted model: what a step can be, and what it complains of."""

import asyncio

import pytest

from harness.errors import ConfigError, ModelUnavailable, ScriptError
from harness.messages import Msg, Opaque, TextBlock, ThinkingBlock, ToolUse, Usage
from harness.models import Done, Model, ModelRequest, TextDelta, ThinkingDelta, ToolCallDelta
from harness.testing import ScriptedModel


async def ask(model, text="Hi"):
    chunks = [chunk async for chunk in model.stream(ModelRequest(messages=(Msg.user(text),)))]
    assert isinstance(chunks[-1], Done)
    return chunks[-1].message, chunks[:-1]


def test_it_is_a_model():
    assert isinstance(ScriptedModel(), Model)


async def test_text_streams_in_pieces_that_add_up():
    answer, chunks = await ask(ScriptedModel(["  one\n\ntwo  three "]))

    assert "".join(chunk.text for chunk in chunks) == answer.text == "  one\n\ntwo  three "
    assert len(chunks) == 4
    assert (answer.provider, answer.model, answer.stop) == ("scripted", "scripted", "stop")


async def test_a_message_is_given_as_it_is():
    opaque = Opaque(provider="A", model="a", data={"z": 1, "a": [1.0]})
    message = Msg.assistant(ThinkingBlock(text="hm", opaque=opaque), "Yes.", usage=Usage(input=3), stop="length")

    answer, chunks = await ask(ScriptedModel([message], provider="A", name="a"))

    assert answer.to_dict() == {**message.to_dict(), "provider": "A", "model": "a"} | answer.to_dict()
    assert answer.blocks == message.blocks
    assert (answer.id, answer.stop, answer.usage) == (message.id, "length", Usage(input=3))
    assert chunks == [ThinkingDelta("hm"), TextDelta("Yes.")]


async def test_tool_calls_have_distinct_ids_and_end_in_tool_use():
    step = ["Looking.", ScriptedModel.tool_call("look", at="north"), ScriptedModel.tool_call("look", at="south")]

    answer, chunks = await ask(ScriptedModel([step]))

    assert [call.input for call in answer.tool_uses] == [{"at": "north"}, {"at": "south"}]
    assert len({call.id for call in answer.tool_uses}) == 2
    assert answer.stop == "tool_use"
    assert [chunk.arguments for chunk in chunks if isinstance(chunk, ToolCallDelta)] == [
        '{"at":"north"}',
        '{"at":"south"}',
    ]


async def test_chunks_that_follow_each_other_make_one_block():
    call = [ToolCallDelta("c1", "look", '{"at":'), ToolCallDelta("c1", "look", '"north"}')]

    answer, _ = await ask(
        ScriptedModel([[ThinkingDelta("h"), ThinkingDelta("m"), TextDelta("a"), TextDelta("b"), *call]])
    )

    assert answer.blocks == (
        ThinkingBlock(text="hm"),
        TextBlock(text="ab"),
        ToolUse(id="c1", name="look", input={"at": "north"}),
    )


async def test_an_error_is_raised_as_it_is():
    error = ModelUnavailable("busy", retry_after=3.0)
    model = ScriptedModel([error, ModelUnavailable])

    with pytest.raises(ModelUnavailable) as caught:
        await ask(model)
    assert caught.value is error
    with pytest.raises(ModelUnavailable):
        await ask(model)


async def test_an_error_in_a_list_breaks_the_answer_off():
    stream = ScriptedModel([[TextDelta("par"), ModelUnavailable("cut")]]).stream(ModelRequest(messages=()))

    assert await anext(stream) == TextDelta("par")
    with pytest.raises(ModelUnavailable):
        await anext(stream)


async def test_a_callable_sees_the_request_and_may_be_async():
    async def later(request):
        await asyncio.sleep(0)
        return lambda again: f"{request.messages[-1].text} {len(again.messages)}"

    model = ScriptedModel([lambda request: request.messages[-1].text.upper(), later])

    assert (await ask(model, "hi"))[0].text == "HI"
    assert (await ask(model, "ho"))[0].text == "ho 1"


async def test_requests_are_kept_as_they_came():
    model = ScriptedModel(["a", "b"])

    await ask(model, "one")
    await ask(model, "two")

    assert [request.messages[-1].text for request in model.requests] == ["one", "two"]


async def test_a_request_too_many_names_itself_and_its_last_message():
    model = ScriptedModel(["a"], name="m")
    await ask(model)

    with pytest.raises(ScriptError, match=r"'m': request 2 came, but there are only 1 steps.*user: 'What now\?'"):
        await ask(model, "What now?")
    with pytest.raises(ScriptError, match="1 requests beyond"):
        model.assert_finished()


async def test_steps_left_are_complained_of():
    model = ScriptedModel(["a", "b", "c"])
    await ask(model)

    with pytest.raises(ScriptError, match="2 of 3 steps were never asked for, first 'b', 'c'"):
        model.assert_finished()
    assert model.remaining == 2


def test_a_with_block_complains_of_steps_left_but_hides_no_error():
    with pytest.raises(ScriptError), ScriptedModel(["a"]):
        pass
    with pytest.raises(KeyError), ScriptedModel(["a"]):
        raise KeyError("first")


async def test_steps_may_be_added_later():
    model = ScriptedModel()
    model.add("a")

    assert (await ask(model))[0].text == "a"
    model.assert_finished()


async def test_usage_is_unknown_unless_given():
    assert (await ask(ScriptedModel(["a"])))[0].usage is None
    assert (await ask(ScriptedModel(["a"], usage=Usage(input=2, output=1))))[0].usage == Usage(input=2, output=1)


async def test_a_done_ends_the_step_as_it_is():
    done = Done(Msg.assistant("x", provider="p", model="m"))

    answer, chunks = await ask(ScriptedModel([[TextDelta("x"), done, TextDelta("never")]]))

    assert answer is done.message
    assert chunks == [TextDelta("x")]


async def test_a_step_that_cannot_be_one_is_named():
    with pytest.raises(ConfigError, match="int"):
        await ask(ScriptedModel([7]))


async def test_concurrent_requests_take_a_step_each():
    model = ScriptedModel([str(n) for n in range(50)])

    answers = await asyncio.gather(*(ask(model, str(n)) for n in range(50)))

    assert sorted(int(answer.text) for answer, _ in answers) == list(range(50))
    model.assert_finished()
