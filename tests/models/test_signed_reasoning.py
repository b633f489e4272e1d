"""Signed reasoning comes back to its provider as it was, or not at all (through the real Anthropic SDK)."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from harness.messages import Msg, ToolResult
from harness.models import Model, ToolSpec
from harness.text import dumps, loads

pytest.importorskip("anthropic", reason="needs the extra `anthropic`")
PydanticAIModel = pytest.importorskip("harness.models.pydantic_ai", reason="needs an extra").PydanticAIModel

THINKING = "  First line \n\tcafe\u0301 / café   end  \n"
LOOK = ToolSpec("look", "Look.", {"type": "object", "properties": {}})


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of one content block."""
    begin = {"type": "content_block_start", "index": index, "content_block": start}
    middle = [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return [begin, *middle, {"type": "content_block_stop", "index": index}]


def message(*blocks: list[dict[str, Any]], stop: str = "tool_use") -> list[dict[str, Any]]:
    """The events of one answer."""
    usage = {"input_tokens": 5, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 2, "output_tokens": 1}
    head = {"id": "m1", "type": "message", "role": "assistant", "model": "demo-5-20260101", "content": []}
    end = {
        "type": "message_delta",
        "delta": {"stop_reason": stop, "stop_sequence": None},
        "usage": {"output_tokens": 9},
    }
    return [
        {"type": "message_start", "message": {**head, "stop_reason": None, "stop_sequence": None, "usage": usage}},
        *(event for events in blocks for event in events),
        end,
        {"type": "message_stop"},
    ]


def signed_turn() -> list[dict[str, Any]]:
    return message(
        block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": THINKING[:9]},
            {"type": "thinking_delta", "thinking": THINKING[9:]},
            {"type": "signature_delta", "signature": "U0lHLTE="},
        ),
        block(1, {"type": "redacted_thinking", "data": "UkVEQUNURUQ="}),
        block(2, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Checking."}),
        block(
            3,
            {"type": "tool_use", "id": "toolu_s1", "name": "look", "input": {}},
            {"type": "input_json_delta", "partial_json": '{"n": 1.0, "big": 9007199254740993}'},
        ),
    )


@pytest.fixture
async def model(server) -> AsyncIterator[Model]:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    base_url = server.url.removesuffix("/v1")
    made = PydanticAIModel(lambda: AnthropicModel("demo-5", provider=AnthropicProvider(api_key="k", base_url=base_url)))
    yield made
    await made.aclose()


def stored(answer: Msg) -> Msg:
    """The message after ten rounds through the disk."""
    for _ in range(10):
        answer = Msg.from_dict(loads(dumps(answer.cleaned().to_dict())))
    return answer


async def test_the_blocks_of_a_signed_turn_come_back_equal_and_in_order(server, model, ask, reply):
    server.replies = [reply(signed_turn()), reply(message(stop="end_turn"))]

    answer, _ = await ask(model, Msg.user("Look"), tools=(LOOK,))
    result = Msg.tool(ToolResult(id="toolu_s1", name="look", content="ok"))
    await ask(model, Msg.user("Look"), stored(answer), result, tools=(LOOK,))

    sent = server.bodies[1]["messages"][1]["content"]
    assert dumps(sent) == dumps(
        [
            {"thinking": THINKING, "signature": "U0lHLTE=", "type": "thinking"},
            {"data": "UkVEQUNURUQ=", "type": "redacted_thinking"},
            {"text": "Checking.", "type": "text"},
            {"id": "toolu_s1", "type": "tool_use", "name": "look", "input": {"n": 1.0, "big": 9007199254740993}},
        ]
    )


async def test_usage_and_stop_reason_are_in_our_words(server, model, ask, reply):
    server.replies = [reply(signed_turn())]

    answer, _ = await ask(model, Msg.user("Look"), tools=(LOOK,))

    assert answer.usage is not None
    assert (answer.usage.input, answer.usage.cache_read, answer.usage.cache_write, answer.usage.output) == (5, 30, 2, 9)
    assert (answer.stop, answer.provider, answer.model) == ("tool_use", "anthropic", "demo-5")


async def test_reasoning_cut_before_its_signature_takes_all_reasoning_of_its_message_along(server, model, ask, reply):
    cut = block(1, {"type": "thinking", "thinking": "", "signature": ""}, {"type": "thinking_delta", "thinking": "Cut"})
    turn = signed_turn()
    server.replies = [reply([*turn[:6], *cut, *turn[8:]]), reply(message(stop="end_turn"))]

    answer, _ = await ask(model, Msg.user("Look"), tools=(LOOK,))
    result = Msg.tool(ToolResult(id="toolu_s1", name="look", content="ok"))
    await ask(model, Msg.user("Look"), answer, result, tools=(LOOK,))

    assert [part["type"] for part in server.bodies[1]["messages"][1]["content"]] == ["text", "tool_use"]
    assert answer.thinking == THINKING + "\nCut", "the log keeps it"


async def test_a_failed_tool_uses_the_providers_channel_for_errors(server, model, ask, reply):
    server.replies = [reply(signed_turn()), reply(message(stop="end_turn"))]

    answer, _ = await ask(model, Msg.user("Look"), tools=(LOOK,))
    result = Msg.tool(ToolResult(id="toolu_s1", name="look", content="no such place", is_error=True))
    await ask(model, Msg.user("Look"), answer, result, tools=(LOOK,))

    sent = server.bodies[1]["messages"][2]["content"][0]
    assert (sent["type"], sent["is_error"]) == ("tool_result", True)


async def test_text_the_edge_had_to_repair_does_not_go_out_under_its_signature(server, model, ask, reply):
    turn = message(
        block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "half \ud83d"},
            {"type": "signature_delta", "signature": "U0lHLTE="},
        ),
        block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Done."}),
        stop="end_turn",
    )
    server.replies = [reply(turn), reply(message(stop="end_turn"))]

    answer, _ = await ask(model, Msg.user("Go"))
    await ask(model, Msg.user("Go"), stored(answer), Msg.user("On"))

    assert server.bodies[1]["messages"][1]["content"] == [{"text": "Done.", "type": "text"}]
