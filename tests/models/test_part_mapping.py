"""What a provider's answer holds beside text, through our messages and back."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from harness.messages import Msg, ToolResult, UnknownBlock
from harness.models import Model, ModelRequest, ToolSpec
from harness.text import dumps, loads

pytest.importorskip("openai", reason="needs the extra `openai`")
PydanticAIModel = pytest.importorskip("harness.models.pydantic_ai", reason="needs an extra").PydanticAIModel
pai = pytest.importorskip("pydantic_ai.messages", reason="needs the extra `openai`")

LOOK = ToolSpec("look", "Look.", {"type": "object", "properties": {}})


@pytest.fixture
def round_trip():
    """`await round_trip(part, …)`: the message these parts become, and the parts it becomes again after storage."""
    from harness.models.pydantic_ai_messages import from_response, to_messages

    async def run(*parts: Any, load_media=None) -> tuple[Msg, list[Any]]:
        response = pai.ModelResponse(parts=list(parts), provider_name="p", provider_url="http://p.invalid")
        message = from_response(response, "p", "m")
        stored = Msg.from_dict(loads(dumps(message.cleaned().to_dict())))
        (back,) = await to_messages(ModelRequest(messages=(stored,), load_media=load_media))
        assert (back.provider_name, back.provider_url) == ("p", "http://p.invalid")
        return message, list(back.parts)

    return run


async def test_ids_signatures_and_details_come_back_equal(round_trip):
    details = {"z": 1.0, "a": [1e-07, None, {"big": 9007199254740993}]}
    parts = [
        pai.ThinkingPart(" hm\n", id="rs_1", signature="U0lH", provider_name="p", provider_details=details),
        pai.TextPart("Yes.", id="msg_1", provider_name="p", provider_details={"phase": "final"}),
        pai.ToolCallPart("look", {"n": 1.0}, tool_call_id="c1", id="fc_1", provider_name="p", provider_details=details),
    ]

    _, back = await round_trip(*parts)

    assert back == parts
    assert dumps(back[0].provider_details) == dumps(details)


async def test_plain_parts_carry_no_payload(round_trip):
    message, _ = await round_trip(pai.TextPart("Yes.", id="x", provider_name="p"), pai.ToolCallPart("look", "{}", "c1"))

    assert [block.opaque is None for block in message.blocks] == [False, True]


async def test_an_id_does_not_go_back_with_a_text_it_was_not_made_for(round_trip):
    from harness.models.pydantic_ai_messages import to_messages

    message, _ = await round_trip(pai.TextPart("Yes.", id="msg_1", provider_name="p"))
    changed = message.with_changes(blocks=(message.blocks[0].model_copy(update={"text": "No."}),))

    (back,) = await to_messages(ModelRequest(messages=(changed,)))

    assert back.parts == [pai.TextPart("No.")]


async def test_parts_without_a_block_of_their_own_come_back_whole(round_trip):
    call = pai.NativeToolCallPart("web_search", {"q": "key"}, tool_call_id="s1", provider_name="p")

    message, back = await round_trip(call, pai.TextPart("Found.", id="msg_1", provider_name="p"))

    assert isinstance(message.blocks[0], UnknownBlock)
    assert back[0] == call


async def test_a_picture_the_model_made_becomes_media_and_goes_back_with_its_bytes(round_trip):
    async def load(sha256: str) -> bytes:
        return b"PNG"

    picture = pai.FilePart(pai.BinaryContent(b"PNG", media_type="image/png"))
    message, back = await round_trip(picture, pai.TextPart("There.", id="x", provider_name="p"), load_media=load)

    assert message.blocks[0].type == "image"
    assert message.blocks[0].media.data == b"PNG"
    assert back[0].content.data == b"PNG"


# -- the whole way through OpenAI's Responses interface, which `openai:` names use ----------------------------------

REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA-demo"}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": '{"n":1.0}'}


def responses(*items: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of an answer with these output items."""
    base = {"id": "resp_1", "object": "response", "created_at": 1, "model": "demo-2026", "parallel_tool_calls": True}
    base |= {"tool_choice": "auto", "tools": [], "metadata": {}, "output": []}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {**base, "status": "in_progress"}}]
    for n, item in enumerate(items):
        started = {**item, "arguments": ""} if "arguments" in item else item
        events.append({"type": "response.output_item.added", "output_index": n, "item": started})
        if "arguments" in item:
            place = {"output_index": n, "item_id": item["id"]}
            events.append({"type": "response.function_call_arguments.delta", "delta": item["arguments"], **place})
        events.append({"type": "response.output_item.done", "output_index": n, "item": item})
    usage = {"input_tokens": 50, "output_tokens": 9, "total_tokens": 59}
    usage |= {"input_tokens_details": {"cached_tokens": 20}, "output_tokens_details": {"reasoning_tokens": 5}}
    done = {**base, "status": "completed", "output": list(items), "usage": usage}
    events.append({"type": "response.completed", "response": done})
    return [{**event, "sequence_number": n} for n, event in enumerate(events)]


@pytest.fixture
async def model(server) -> AsyncIterator[Model]:
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    made = PydanticAIModel(
        lambda: OpenAIResponsesModel("gpt-5-mini", provider=OpenAIProvider(base_url=server.url, api_key="k"))
    )
    yield made
    await made.aclose()


async def test_encrypted_reasoning_and_item_ids_go_back_as_they_came(server, model, ask, reply):
    server.replies = [reply(responses(REASONING, CALL)), reply(responses())]

    answer, _ = await ask(model, Msg.user("Look"), tools=(LOOK,))
    stored = Msg.from_dict(loads(dumps(answer.cleaned().to_dict())))
    result = Msg.tool(ToolResult(id=answer.tool_uses[0].id, name="look", content="ok"))
    await ask(model, Msg.user("Look"), stored, result, tools=(LOOK,))

    _, reasoning, call, output = server.bodies[1]["input"]
    assert reasoning == REASONING
    assert (call["id"], call["call_id"], call["arguments"]) == ("fc_1", "call_1", '{"n":1.0}')
    assert output["call_id"] == "call_1"
    assert answer.usage is not None
    assert (answer.usage.input, answer.usage.cache_read, answer.usage.reasoning) == (30, 20, 5)
    assert (answer.provider, answer.model, answer.stop) == ("openai", "gpt-5-mini", "tool_use")
