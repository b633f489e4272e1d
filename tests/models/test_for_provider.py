"""What of a history may go to which provider."""

import json
import re

import pytest

from harness.messages import Media, MediaBlock, Msg, Opaque, TextBlock, ThinkingBlock, ToolResult, ToolUse
from harness.models import for_provider

SIGNED = {"type": "thinking", "thinking": "hm", "signature": "U0lHLUE="}


def thinking(data, text="hm", provider="A", model="a-1", **extra):
    opaque = {"provider": provider, "model": model, "data": data, **extra}
    return {"type": "thinking", "text": text, "opaque": opaque}


def assistant(*blocks, provider="A", **fields):
    return {"id": "m1", "role": "assistant", "content": list(blocks), "provider": provider, "model": "a-1", **fields}


TEXT = {"type": "text", "text": "Yes."}


def test_a_history_of_the_same_model_goes_out_as_the_same_objects():
    history = [{"id": "m0", "role": "user", "content": [TEXT]}, assistant(thinking(SIGNED), TEXT)]

    sent = for_provider(history, "A", "a-1")

    assert [id(message) for message in sent] == [id(message) for message in history]


def test_messages_of_either_form_are_filtered_alike():
    history = [assistant(thinking(SIGNED), TEXT)]

    as_values = for_provider([Msg.from_dict(message) for message in history], "B", "b-1")

    assert [message.to_dict() for message in as_values] == for_provider(history, "B", "b-1")


@pytest.mark.parametrize(("provider", "model"), [("B", "a-1"), ("A", "a-2")])
def test_sealed_reasoning_is_left_out_for_anyone_else_and_there_again_for_its_maker(provider, model):
    history = [assistant(thinking(SIGNED), TEXT)]
    before = json.dumps(history)

    assert for_provider(history, provider, model)[0]["content"] == [TEXT]
    assert for_provider(history, "A", "a-1") == history
    assert json.dumps(history) == before


@pytest.mark.parametrize(
    "block",
    [
        thinking({"type": "thinking", "thinking": "", "signature": "U0lHLTM="}, text=""),
        thinking({"type": "thinking", "thinking": "Cut off in the mid"}),
        thinking({"type": "thinking", "thinking": "Null.", "signature": None}),
        thinking({"type": "thinking", "thinking": "Signed elsewhere.", "signature": "U0lHLTQ="}, provider="elsewhere"),
        thinking(SIGNED, altered=True),
        thinking(None),
        {"type": "thinking", "text": "bare"},
    ],
)
def test_one_unsendable_block_takes_all_reasoning_of_its_message_along(block):
    sent = for_provider([assistant(thinking(SIGNED), TEXT, block)], "A", "a-1")

    assert sent[0]["content"] == [TEXT]


def test_each_unsendable_block_of_the_case_is_left_out(shared):
    blocks = json.loads((shared / "cases/B17/unsendable-blocks.json").read_text())

    for block in blocks:
        one = thinking(block, provider=block.get("_from", "A"))
        assert for_provider([assistant(one, TEXT)], "A", "a-1")[0]["content"] == [TEXT]


def test_the_signed_turn_of_the_case_is_untouched(shared):
    turn = json.loads((shared / "cases/B17/signed-turn.json").read_text())
    reasoning = [
        thinking(block, provider="demo-signed", model="m")
        for block in turn["assistant_content"]
        if block["type"] in ("thinking", "redacted_thinking")
    ]
    message = assistant(*reasoning, TEXT, provider="demo-signed")

    assert for_provider([message], "demo-signed", "m")[0] is message


def test_sealed_reasoning_without_text_is_sendable():
    history = [assistant(thinking({"type": "redacted_thinking", "data": "UkVE"}, text=""), TEXT)]

    assert for_provider(history, "A", "a-1")[0] is history[0]


def test_payloads_of_others_are_taken_off_the_blocks_that_carry_them():
    text = {**TEXT, "opaque": {"provider": "A", "model": "a-1", "data": {"id": "x"}}}

    assert for_provider([assistant(text)], "B", "b")[0]["content"] == [TEXT]


def test_a_message_of_which_nothing_is_left_is_left_out():
    history = [assistant(thinking(SIGNED)), {"id": "u", "role": "user", "content": [TEXT]}]

    assert for_provider(history, "B", "b") == history[1:]


@pytest.mark.parametrize("blocks", [[], [{"type": "text", "text": ""}], [{"type": "text", "text": " \n"}] * 2])
def test_an_answer_without_a_word_is_left_out(blocks):
    history = [assistant(*blocks)]

    assert for_provider(history, "A", "a-1") == []
    assert for_provider([Msg.from_dict(message) for message in history], "A", "a-1") == []


def test_a_blank_text_stays_beside_a_call_and_where_it_carries_a_payload():
    sealed = {"type": "text", "text": "", "opaque": {"provider": "A", "model": "a-1", "data": "seal"}}
    call = {"type": "toolUse", "id": "c1", "name": "look", "input": {}}
    history = [assistant({"type": "text", "text": " "}, call), assistant(sealed)]

    assert for_provider(history, "A", "a-1") == history


def test_other_keys_keep_their_order():
    message = {"zeta": 1, **assistant(thinking(SIGNED), TEXT, stop="stop")}

    assert list(for_provider([message], "B", "b")[0]) == list(message)


def test_media_that_are_not_stored_yet_keep_their_bytes():
    picture = MediaBlock(
        type="image",
        media=Media.from_bytes(b"PNG", "image/png"),
        opaque=Opaque(provider="A", model="a-1", data={"x": 1}),
    )

    (sent,) = for_provider([Msg.assistant(picture, provider="A")], "B", "b")

    assert sent.blocks[0].media.data == b"PNG"
    assert sent.blocks[0].opaque is None


def foreign_history(shared=None):
    ids = ["call_Ab12|fc_09af", "functions.search:0", "télé.1", "call_Ab12_fc_09af", "z" * 90]
    calls = [{"type": "toolUse", "id": call_id, "name": "search", "input": {}} for call_id in ids]
    results = [{"type": "toolResult", "id": call_id, "name": "search", "content": []} for call_id in ids]
    return [assistant(*calls), {"id": "r", "role": "tool", "content": results}]


def ids_of(message):
    return [block["id"] for block in message["content"]]


def test_ids_of_another_provider_become_well_formed_and_stay_distinct():
    call, result = for_provider(foreign_history(), "B", "b")

    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call_id) for call_id in ids_of(call))
    assert len(set(ids_of(call))) == 5
    assert ids_of(call) == ids_of(result)
    assert ids_of(call)[3] == "call_Ab12_fc_09af", "what is well-formed already stays"


def test_new_ids_do_not_depend_on_what_else_is_in_the_history():
    history = foreign_history()
    alone = [{**message, "content": message["content"][1:2]} for message in history]

    assert ids_of(for_provider(alone, "B", "b")[0]) == ids_of(for_provider(history, "B", "b")[0])[1:2]


def test_ids_go_back_unchanged_to_their_own_provider():
    history = foreign_history()

    assert for_provider(history, "A", "another-model") == history


def test_filtering_twice_is_filtering_once():
    once = for_provider([assistant(thinking(SIGNED), TEXT), *foreign_history()], "B", "b")

    assert for_provider(once, "B", "b") == once


def test_values_with_foreign_ids_are_renamed_too():
    history = [
        Msg.assistant(ToolUse(id="a.1", name="look"), provider="A", model="a-1"),
        Msg.tool(ToolResult(id="a.1", name="look", content=(TextBlock(text="x"),))),
    ]

    call, result = for_provider(history, "B", "b")

    assert call.tool_uses[0].id == result.tool_results[0].id
    assert call.tool_uses[0].id.startswith("call_")
    assert result.tool_results[0].text == "x"


def test_reasoning_without_a_payload_is_never_sent():
    (sent,) = for_provider([Msg.assistant(ThinkingBlock(text="hm"), "Yes.", provider="A", model="a-1")], "A", "a-1")

    assert sent.thinking == ""
