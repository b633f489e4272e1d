import pytest

from harness.messages import Media, MediaBlock, Msg, ToolResult, ToolUse
from harness.models import ModelRequest, ToolSpec, estimate_request, estimate_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("abcd", 1), ("a" * 400, 100), ("漢字仮名", 4), ("привет", 4), ("abcd漢字", 3), ("half \ud83d", 3)],
)
def test_latin_text_has_four_letters_a_token_and_cjk_one(text, tokens):
    assert estimate_tokens(text) == tokens


def test_a_message_costs_its_frame_and_its_blocks():
    message = Msg.assistant("a" * 40, ToolUse(id="c", name="look", input={"at": "north"}))

    assert estimate_tokens(message) == 4 + 10 + 4 + 1 + 4


def test_both_forms_of_a_message_cost_the_same():
    message = Msg.tool(ToolResult(id="c", name="look", content="a" * 400))

    assert estimate_tokens(message) == estimate_tokens(message.to_dict()) == 4 + 4 + 100


def test_a_picture_costs_the_same_whatever_its_size():
    small, large = (
        Msg.user(MediaBlock(type="image", media=Media.from_bytes(b"x" * size, "image/png"))) for size in (1, 10_000)
    )

    assert estimate_tokens(small) == estimate_tokens(large) == 1_204


def test_unknown_blocks_are_counted_by_their_json():
    assert estimate_tokens({"role": "user", "content": [{"type": "odd", "x": "a" * 384}]}) == 4 + 102


def test_a_request_costs_system_tools_and_messages():
    request = ModelRequest(
        messages=(Msg.user("a" * 40),), system="b" * 80, tools=(ToolSpec("look", "c" * 35, {"type": "object"}),)
    )

    assert estimate_request(request) == 14 + 20 + 4 + 10 + 5
