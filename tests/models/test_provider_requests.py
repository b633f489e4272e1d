"""The path to a provider, through the real OpenAI SDK, to a server on this machine."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from harness.errors import (
    ContextOverflow,
    FileMissing,
    ModelAuthError,
    ModelError,
    ModelMalformed,
    ModelRejected,
    ModelTimeout,
    ModelUnavailable,
)
from harness.messages import Media, MediaBlock, Msg, TextBlock, ToolResult, ToolUse, Usage
from harness.models import Model, ModelRequest, TextDelta, ThinkingDelta, ToolCallDelta, ToolSpec

pytest.importorskip("openai", reason="needs the extra `openai`")
openai_compatible = pytest.importorskip(
    "harness.models.pydantic_ai", reason="needs the extra `openai`"
).openai_compatible

LOOK = ToolSpec("look", "Look somewhere.", {"type": "object", "properties": {"at": {"type": "string"}}})


@pytest.fixture
async def model(server) -> AsyncIterator[Model]:
    made = openai_compatible(server.url, "demo", api_key="k-1", provider="here", context_window=2_000)
    yield made
    await made.aclose()


async def test_text_streams_in_pieces_and_ends_as_one_message(server, model, ask, reply, event, usage_event):
    server.replies = [
        reply([event(role="assistant", content="Hello"), event(content=" there."), event("stop"), usage_event(10, 4)])
    ]

    answer, chunks = await ask(model, Msg.user("Hi"), system="Be kind.", options={"temperature": 0.5, "max_tokens": 9})

    assert chunks == [TextDelta("Hello"), TextDelta(" there.")]
    assert (answer.text, answer.stop, answer.provider, answer.model) == ("Hello there.", "stop", "here", "demo")
    body = server.bodies[0]
    assert body["messages"] == [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}]
    assert (body["model"], body["stream"], body["temperature"]) == ("demo", True, 0.5)
    assert server.headers[0]["authorization"] == "Bearer k-1"
    assert model.context_window == 2_000


async def test_usage_counts_cached_tokens_apart(server, model, ask, reply, event, usage_event):
    server.replies = [reply([event(content="x"), event("stop"), usage_event(100, 7, cached=60)])]

    answer, _ = await ask(model, Msg.user("Hi"))

    assert answer.usage == Usage(input=40, cache_read=60, output=7)


async def test_absent_usage_is_unknown_and_not_zero(server, model, ask, reply, event):
    server.replies = [reply([event(content="x"), event("stop")])]

    answer, _ = await ask(model, Msg.user("Hi"))

    assert answer.usage is None


async def test_a_tool_call_arrives_in_pieces_and_its_result_goes_back(server, model, ask, reply, event):
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"at": "n'}}
    rest = {"index": 0, "function": {"arguments": 'orth", "big": 9007199254740993}'}}
    server.replies = [
        reply([event(tool_calls=[call]), event(tool_calls=[rest]), event("tool_calls")]),
        reply([event(content="Snow."), event("stop")]),
    ]

    asked, chunks = await ask(model, Msg.user("Look"), tools=(LOOK,))
    results = Msg.tool(ToolResult(id="call_1", content="white"), ToolResult(id="call_1", content="gone", is_error=True))
    await ask(model, Msg.user("Look"), asked, results, tools=(LOOK,))

    assert asked.tool_uses[0].input == {"at": "north", "big": 9007199254740993}
    assert asked.stop == "tool_use"
    assert "".join(chunk.arguments for chunk in chunks if isinstance(chunk, ToolCallDelta)) == (
        '{"at": "north", "big": 9007199254740993}'
    )
    assert server.bodies[0]["tools"][0]["function"]["name"] == "look"
    sent = server.bodies[1]["messages"]
    assert sent[1]["tool_calls"][0]["function"]["arguments"] == '{"at":"north","big":9007199254740993}'
    assert [(part["role"], part["content"]) for part in sent[2:]] == [("tool", "white"), ("tool", '{"error":"gone"}')]


async def test_reasoning_of_the_same_model_goes_back_in_its_field(server, model, ask, reply, event):
    server.replies = [
        reply([event(reasoning_content="  hm\n"), event(content="Yes."), event("stop")]),
        reply([event(content="No."), event("stop")]),
    ]

    first, chunks = await ask(model, Msg.user("?"))
    await ask(model, Msg.user("?"), Msg.from_dict(first.to_dict()), Msg.user("Sure?"))

    assert chunks[0] == ThinkingDelta("  hm\n")
    assert first.thinking == "  hm\n"
    assert server.bodies[1]["messages"][1] == {"role": "assistant", "content": "Yes.", "reasoning_content": "  hm\n"}


async def test_reasoning_that_a_hook_has_changed_is_left_out(server, model, ask, reply, event):
    server.replies = [
        reply([event(reasoning_content="hm"), event(content="Yes."), event("stop")]),
        reply([event(content="No."), event("stop")]),
    ]

    first, _ = await ask(model, Msg.user("?"))
    changed = first.blocks[0].model_copy(update={"text": "HM"})
    await ask(model, Msg.user("?"), first.with_changes(blocks=(changed, *first.blocks[1:])), Msg.user("Sure?"))

    assert server.bodies[1]["messages"][1] == {"role": "assistant", "content": "Yes."}


async def test_arguments_that_are_no_json_object_are_malformed(server, model, ask, reply, event):
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"at": '}}
    server.replies = [reply([event(tool_calls=[call]), event("tool_calls")])]

    with pytest.raises(ModelMalformed, match="'look'"):
        await ask(model, Msg.user("Look"), tools=(LOOK,))


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (401, "Incorrect API key provided", ModelAuthError),
        (403, "Your project may not use this model", ModelAuthError),
        (404, "The model does not exist", ModelRejected),
        (400, "max_tokens is too large: 100000", ModelRejected),
        (400, "This model's maximum context length is 2048 tokens", ContextOverflow),
        (500, "the request exceeds the available context size", ContextOverflow),
        (500, "boom", ModelUnavailable),
        (503, "overloaded", ModelUnavailable),
        (429, "Rate limit: token limit reached, 30000 tokens per min", ModelUnavailable),
        (408, "took too long", ModelTimeout),
    ],
)
async def test_a_refusal_becomes_the_error_of_its_kind(server, model, ask, reply, status, message, kind):
    server.replies = [reply(status=status, body={"error": {"message": message, "type": "x", "code": None}})]

    with pytest.raises(ModelError) as caught:
        await ask(model, Msg.user("Hi"))

    assert type(caught.value) is kind
    assert (caught.value.provider, caught.value.model) == ("here", "demo")
    assert message in str(caught.value)
    assert len(server.bodies) == 1, "the SDK must not retry by itself"


async def test_the_wait_a_provider_asks_for_is_known(server, model, ask, reply):
    server.replies = [reply(status=429, body={"error": {"message": "slow down"}}, headers={"Retry-After": "7"})]

    with pytest.raises(ModelUnavailable) as caught:
        await ask(model, Msg.user("Hi"))

    assert caught.value.retry_after == 7.0


async def test_a_code_for_context_length_is_an_overflow(server, model, ask, reply):
    error = {"message": "Please shorten.", "code": "context_length_exceeded"}
    server.replies = [reply(status=400, body={"error": error})]

    with pytest.raises(ContextOverflow):
        await ask(model, Msg.user("Hi"))


async def test_an_empty_answer_to_a_request_beyond_the_window_is_an_overflow(server, model, ask, reply):
    server.replies = [reply([])]

    with pytest.raises(ContextOverflow, match="window of 2000"):
        await ask(model, Msg.user("word " * 4_000))


async def test_an_empty_answer_to_a_small_request_is_malformed(server, model, ask, reply):
    server.replies = [reply([])]

    with pytest.raises(ModelMalformed):
        await ask(model, Msg.user("Hi"))


@pytest.mark.parametrize("events", [None, [], ["Hel"]])
async def test_a_dropped_connection_is_worth_another_try(server, model, ask, reply, event, events):
    sent = None if events is None else [event(content=text) for text in events]
    server.replies = [reply(sent, then="drop")]

    with pytest.raises(ModelUnavailable):
        await ask(model, Msg.user("Hi"))


async def test_a_stream_that_ends_without_a_reason_has_broken_off(server, model, ask, reply, event):
    server.replies = [reply([event(content="Hel")], then="end")]

    with pytest.raises(ModelUnavailable):
        await ask(model, Msg.user("Hi"))


@pytest.mark.parametrize("then", ["end", "drop"])
async def test_what_the_provider_counted_before_an_answer_broke_off_is_told(
    server, model, ask, reply, event, usage_event, then
):
    server.replies = [reply([event(content="Hel"), usage_event(20, 1, cached=5)], then=then)]

    with pytest.raises(ModelUnavailable) as broken:
        await ask(model, Msg.user("Hi"))

    assert broken.value.usage == Usage(input=15, cache_read=5, output=1)


async def test_a_malformed_answer_was_counted_too(server, model, ask, reply, event, usage_event):
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"at": '}}
    server.replies = [reply([event(tool_calls=[call]), event("tool_calls"), usage_event(9, 2)])]

    with pytest.raises(ModelMalformed) as malformed:
        await ask(model, Msg.user("Look"), tools=(LOOK,))

    assert malformed.value.usage == Usage(input=9, output=2)


async def test_nobody_listening_is_worth_another_try(ask):
    gone = openai_compatible("http://127.0.0.1:9/v1", "demo")

    with pytest.raises(ModelUnavailable):
        await ask(gone, Msg.user("Hi"))
    await gone.aclose()


async def test_a_silent_server_is_a_timeout(server, model, ask, reply, event):
    server.replies = [reply([event(content="Hel")], then="wait")]

    with pytest.raises(ModelTimeout):
        await ask(model, Msg.user("Hi"), options={"timeout": 0.05})


async def test_closing_the_stream_closes_the_connection(server, model, reply, event):
    server.replies = [reply([event(content="Hel")], then="wait")]
    stream = model.stream(ModelRequest(messages=(Msg.user("Hi"),)))

    first = await anext(stream)
    await stream.aclose()

    assert first == TextDelta("Hel")
    await asyncio.wait_for(server.client_left.wait(), 5)


async def test_several_texts_go_out_as_one_string(server, model, ask, reply, event):
    """Simple servers cannot read a list of parts."""
    server.replies = [reply([event(content="x"), event("stop")])]

    await ask(model, Msg.user("Hi", "<note>\nIt rains.\n</note>"))

    assert server.bodies[0]["messages"] == [{"role": "user", "content": "Hi\n<note>\nIt rains.\n</note>"}]


async def test_a_picture_goes_out_with_its_stored_bytes(server, model, ask, reply, event):
    server.replies = [reply([event(content="A dot."), event("stop")])]
    picture = Media.from_bytes(b"PNG", "image/png")
    asked = Msg.from_dict(Msg.user("What?", MediaBlock(type="image", media=picture)).to_dict())

    async def load(sha256: str) -> bytes:
        return {picture.sha256: b"PNG"}[sha256]

    await ask(model, asked, load_media=load)

    text, image = server.bodies[0]["messages"][0]["content"]
    assert text["text"] == "What?"
    assert image["image_url"]["url"] == "data:image/png;base64,UE5H"


async def test_a_picture_that_is_gone_becomes_a_note(server, model, ask, reply, event):
    server.replies = [reply([event(content="Oh."), event("stop")])]
    picture = Media.from_bytes(b"PNG", "image/png", name="dot.png")
    asked = Msg.from_dict(Msg.user(MediaBlock(type="image", media=picture)).to_dict())

    async def load(sha256: str) -> bytes:
        raise FileMissing(sha256)

    await ask(model, asked, load_media=load)

    assert server.bodies[0]["messages"][0]["content"] == "[image not available: dot.png]"


async def test_another_providers_call_ids_go_out_well_formed(server, model, ask, reply, event):
    server.replies = [reply([event(content="x"), event("stop")])]
    call = Msg.assistant(ToolUse(id="fn.look:0", name="look"), provider="elsewhere", model="m")
    result = Msg.tool(ToolResult(id="fn.look:0", name="look", content=(TextBlock(text="y"),)))

    await ask(model, Msg.user("Look"), call, result, tools=(LOOK,))

    _, asked, answered = server.bodies[0]["messages"]
    assert asked["tool_calls"][0]["id"] == answered["tool_call_id"] == "call_83606ef8e25d226c10c4566c56008d79"


def test_one_model_serves_several_event_loops(reply, event):
    """Connections belong to a loop; `.block()` and the application's own loop share a model."""
    model = openai_compatible("http://127.0.0.1:9/v1", "demo")

    async def once() -> str:
        try:
            async for _ in model.stream(ModelRequest(messages=(Msg.user("Hi"),))):
                pass
        except ModelUnavailable as error:
            return type(error).__name__
        finally:
            await model.aclose()
        return "answered"

    assert [asyncio.run(once()) for _ in range(2)] == ["ModelUnavailable", "ModelUnavailable"]
