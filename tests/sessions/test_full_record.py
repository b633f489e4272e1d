"""A closed turn in full: pairs complete, results in short, nothing that belongs to an open turn."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.models.tokens import estimate_tokens
from harness.sessions import Turn, evidence_id, full_record, full_tokens

LONG = "The attic is full of old things. " * 100
DIGEST = "The attic is full of old things.\n[1 line, 3300 bytes]\n[evidence:{} — 3300 chars; call recall to expand]"


def text(value: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": value, **more}


def use(call: str, **more: Any) -> dict[str, Any]:
    return {"type": "toolUse", "id": call, "name": "look", "input": {"where": call}, **more}


def result(call: str, *content: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "toolResult", "id": call, "name": "look", "content": list(content), **more}


def message(role: str, message_id: str, *blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": message_id, "role": role, "content": list(blocks), **more}


def turn(*messages: dict[str, Any]) -> Turn:
    return Turn("T1", tuple(messages), True, False, ())


def record(*messages: dict[str, Any]) -> list[dict[str, Any]]:
    return [*full_record(turn(*messages), 12)]


ASKED = message("user", "u", text("Where is it?"))
ANSWER = message("assistant", "z", text("In the attic."))


def test_a_turn_is_directive_call_digest_call_digest_answer() -> None:
    first = message("assistant", "a1", text("I look."), use("c1"))
    second = message("assistant", "a2", use("c2"))
    shown = record(
        ASKED,
        first,
        message("tool", "t1", result("c1", text(LONG))),
        second,
        message("tool", "t2", result("c2", text("dust"))),
        ANSWER,
    )
    assert shown == [
        ASKED,
        first,
        message("tool", "t1", result("c1", text(DIGEST.format("12.1")))),
        second,
        message("tool", "t2", result("c2", text("dust"))),
        ANSWER,
    ]


def test_messages_that_need_no_change_are_the_same_objects() -> None:
    given_ = (ASKED, message("assistant", "a1", use("c1")), message("tool", "t1", result("c1", text("dust"))), ANSWER)
    assert all(shown is was for shown, was in zip(full_record(turn(*given_), 1), given_, strict=True))


def test_results_are_counted_through_the_turn_errors_included() -> None:
    shown = record(
        ASKED,
        message("assistant", "a1", use("c1"), use("c2")),
        message("tool", "t1", result("c1", text("no"), isError=True), result("c2", text(LONG))),
        message("assistant", "a2", use("c1")),
        message("tool", "t2", result("c1", text(LONG))),
        ANSWER,
    )
    assert shown[2]["content"][1]["content"] == [text(DIGEST.format("12.2"))]
    assert shown[4]["content"][0]["content"] == [text(DIGEST.format("12.3"))]
    assert evidence_id(12, 3) == "12.3"


def test_an_error_is_whole() -> None:
    failed = result("c1", text(LONG), isError=True)
    shown = record(ASKED, message("assistant", "a1", use("c1")), message("tool", "t1", failed), ANSWER)
    assert shown[2]["content"] == [failed]


def test_reasoning_and_sealed_payloads_are_left_out() -> None:
    sealed = {"provider": "p", "model": "m", "data": "x"}
    shown = record(
        ASKED,
        message("assistant", "a1", {"type": "thinking", "text": "hm", "opaque": sealed}, use("c1", opaque=sealed)),
        message("tool", "t1", result("c1", text("dust"), opaque=sealed)),
        message("assistant", "a2", {"type": "thinking", "text": "hm"}),
        message("assistant", "z", text("In the attic.", opaque=sealed), provider="p"),
    )
    assert shown == [
        ASKED,
        message("assistant", "a1", use("c1")),
        message("tool", "t1", result("c1", text("dust"))),
        message("assistant", "z", text("In the attic."), provider="p"),
    ]


def test_a_call_without_a_result_is_left_out_and_with_it_a_message_that_was_nothing_else() -> None:
    shown = record(
        ASKED,
        message("assistant", "a1", use("c1"), use("c2")),
        message("tool", "t1", result("c2", text("dust"))),
        message("assistant", "a2", use("c3")),
        message("assistant", "a3", text("Wait."), use("c2")),
        ANSWER,
    )
    assert [[block.get("id", "said") for block in each["content"]] for each in shown] == [
        ["said"],
        ["c2"],
        ["c2"],
        ["said"],
        ["said"],
    ]


def test_a_message_with_blank_text_only_is_left_out() -> None:
    assert record(ASKED, message("assistant", "a1", text(" \n")), message("assistant", "a2")) == [ASKED]


def test_pictures_in_results_are_named_and_those_of_the_directive_stay() -> None:
    picture = {"type": "image", "media": {"sha256": "0" * 64, "mediaType": "image/png", "bytes": 5321, "name": "roof"}}
    linked = {"type": "image", "url": "https://example.org/a.png"}
    asked = message("user", "u", text("This one?"), picture)
    shown = record(
        asked,
        message("assistant", "a1", use("c1"), use("c2")),
        message("tool", "t1", result("c1", text("Two found."), picture, linked), result("c2", picture)),
        ANSWER,
    )
    assert shown[0] is asked
    assert shown[2]["content"] == [
        result(
            "c1",
            text(
                "Two found.\n[image roof image/png, 5321 bytes; evidence:12.1]\n"
                "[image https://example.org/a.png; evidence:12.1]"
            ),
        ),
        result("c2", text("[image roof image/png, 5321 bytes; evidence:12.2]")),
    ]


def test_a_result_that_is_kept_elsewhere_is_tagged_with_its_whole_length() -> None:
    kept = result("c1", text(LONG), evicted={"path": "results/c1-0.txt", "chars": 90_000})
    shown = record(ASKED, message("assistant", "a1", use("c1")), message("tool", "t1", kept), ANSWER)
    assert shown[2]["content"][0]["content"][0]["text"].endswith("[evidence:12.1 — 90000 chars; call recall to expand]")


def test_content_that_is_plain_text_is_shown_as_it_is() -> None:
    old = {"id": "a", "role": "assistant", "content": "In the attic."}
    assert record(ASKED, {**old, "content": ""}, old) == [ASKED, old]


def test_a_turn_without_a_directive_is_shown_too() -> None:
    assert record(ANSWER) == [ANSWER]


def test_tokens_are_those_of_the_messages_shown() -> None:
    shown = record(
        ASKED, message("assistant", "a1", use("c1")), message("tool", "t1", result("c1", text(LONG))), ANSWER
    )
    assert full_tokens(shown) == sum(map(estimate_tokens, shown))
    assert full_tokens(shown) < 120


def test_arguments_stay_whole_and_are_counted() -> None:
    call = use("c1", input={"text": LONG * 10})
    shown = record(ASKED, message("assistant", "a1", call), message("tool", "t1", result("c1", text("saved"))), ANSWER)
    assert shown[1]["content"] == [call]
    assert full_tokens(shown) > 8250


calls = st.sampled_from(["c1", "c2", "c3"])
said = st.sampled_from(["", " ", "I look.", LONG])


@st.composite
def steps(draw: st.DrawFn) -> list[dict[str, Any]]:
    made = draw(st.lists(calls, unique=True, max_size=3))
    answered = [call for call in made if draw(st.booleans())]
    thought = [{"type": "thinking", "text": "hm"}] * draw(st.integers(0, 1))
    step = message("assistant", "a", *thought, text(draw(said)), *map(use, made))
    results = [result(call, text(draw(said)), isError=draw(st.booleans())) for call in answered]
    return [step, message("tool", "t", *results)] if results else [step]


@given(st.lists(steps(), max_size=4))
def test_every_call_has_its_result_in_the_next_message_and_no_message_is_empty(
    made: list[list[dict[str, Any]]],
) -> None:
    shown = record(ASKED, *[each for step in made for each in step])
    for index, each in enumerate(shown):
        called = [block["id"] for block in each["content"] if block["type"] == "toolUse"]
        answers = shown[index + 1] if called else {"content": []}
        assert [block["id"] for block in answers["content"] if block["type"] == "toolResult"] == called
        assert each["content"]
        assert each["role"] != "tool" or shown[index - 1]["role"] == "assistant"
    assert not [block for each in shown for block in each["content"] if block["type"] == "thinking"]
