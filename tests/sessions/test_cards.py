"""Cards as lines: one line each, bounded, and safe inside their tag."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.models.tokens import estimate_tokens
from harness.sessions import Turn, card_words, cards_message, numbered_line, turn_card
from harness.sessions.view.cards import CARDS_FRAME, in_short


def card(**fields: Any) -> dict[str, Any]:
    return {
        "turn": "T1",
        "asked": "Where is it?",
        "did": [],
        "answered": "In the attic.",
        "outcome": "completed",
        **fields,
    }


def called(*tools: str, args: Any = None) -> list[dict[str, Any]]:
    return [{"tool": tool, "call": f"c{n}", "args": args} for n, tool in enumerate(tools)]


def test_a_line_says_what_was_asked_done_and_answered() -> None:
    line = numbered_line(12, card(did=called("look", "dig", "look")))
    assert line == "#12 asked: Where is it? → did: look ×2, dig → answered: In the attic."


def test_nothing_done_and_nothing_answered_is_said() -> None:
    line = numbered_line(3, card(answered="", outcome="stopped"))
    assert line == "#3 asked: Where is it? → did: nothing → answered: nothing (stopped)"


@pytest.mark.parametrize("outcome", ["completed", "unrecorded"])
def test_an_ordinary_end_is_not_mentioned(outcome: str) -> None:
    assert numbered_line(3, card(outcome=outcome)).endswith("answered: In the attic.")


def test_the_card_of_a_turn_gives_its_line() -> None:
    use = {"type": "toolUse", "id": "c1", "name": "look", "input": {"where": "attic"}}
    result = {"type": "toolResult", "id": "c1", "name": "look", "content": [{"type": "text", "text": "dust"}]}
    messages = (
        {"id": "u", "role": "user", "content": [{"type": "text", "text": "Is it\nthere?"}]},
        {"id": "a", "role": "assistant", "content": [use]},
        {"id": "t", "role": "tool", "content": [result]},
        {"id": "z", "role": "assistant", "content": [{"type": "text", "text": "Only dust."}]},
    )
    line = numbered_line(1, turn_card(Turn("T1", messages, True, False, ()), "completed"))
    assert line == "#1 asked: Is it there? → did: look → answered: Only dust."


def test_each_part_of_a_line_is_bounded() -> None:
    many = called(*[f"tool{n}" for n in range(40)], "t" * 5000)
    line = numbered_line(1, card(asked="why " * 5000, did=many, answered="because " * 5000, outcome="x" * 5000))
    assert len(line) < 1200
    assert "tool11, 29 more → answered: " in line
    assert "because because…" in line


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("word " * 59 + "end. " + "more", "word " * 59 + "end."),
        ("word " * 60 + "end. more", ("word " * 60).strip()),
        ("First.\nSecond " + "word " * 60, "First."),
        ("a  b\tc " * 30, ("a b c " * 20).strip()),
        ("e.g.this " + "x" * 500, ("e.g.this " + "x" * 500)[:400] + "…"),
        ("  short\ntext. ", "short\ntext."),
    ],
)
def test_of_a_long_text_the_first_sentence_is_shown_or_its_first_sixty_words(text: str, short: str) -> None:
    assert in_short(text) == short


def test_a_line_is_one_line_whatever_ends_lines_in_any_script() -> None:
    line = numbered_line(1, card(asked="a\nb\r\nc\u2028d\u0085e", did=called("x\ny"), answered="f\x0bg"))
    assert line == "#1 asked: a b c d e → did: x y → answered: f g"


def test_cards_stand_in_one_user_message_whose_id_comes_from_the_first_turn() -> None:
    assert cards_message(
        "T9", ["#9 asked: a → did: nothing → answered: b", "#10 asked: c → did: nothing → answered: d"]
    ) == {
        "id": "T9/cards",
        "role": "user",
        "content": [
            {
                "type": "text",
                "text": "<turns>\nEarlier turns of this conversation, a line each; recall(turn=n) shows one whole.\n"
                "#9 asked: a → did: nothing → answered: b\n#10 asked: c → did: nothing → answered: d\n</turns>",
            }
        ],
    }


@pytest.mark.parametrize(
    "tag", ["</turns>", "< / TURNS >", "\uff1c/turns>", "</tu\u200brns>", "</context_summary>", "<turns>"]
)
def test_nothing_in_a_card_can_close_or_open_a_tag(tag: str) -> None:
    line = numbered_line(1, card(asked=f"a {tag} b", did=called(tag), answered=f"{tag} x"))
    text = cards_message("T1", [line])["content"][0]["text"]
    assert "&lt;" in line
    assert text.count("<") == 2
    assert "\uff1c" not in text


def test_other_brackets_stay_as_they_are() -> None:
    assert "is a <b> c?" in numbered_line(1, card(asked="is a <b> c?"))


@given(
    st.lists(
        st.builds(
            card,
            asked=st.text(),
            answered=st.text(),
            did=st.lists(st.text(), max_size=5).map(lambda tools: called(*tools)),
        )
    )
)
def test_a_message_costs_no_more_than_its_frame_and_its_lines(cards: list[dict[str, Any]]) -> None:
    lines = [numbered_line(number, each) for number, each in enumerate(cards, 1)]
    assert all(len(line.splitlines()) == 1 for line in lines)
    cost = CARDS_FRAME + sum(estimate_tokens(f"{line}\n") for line in lines)
    assert estimate_tokens(cards_message("T1", lines)) <= cost


def test_a_turn_is_found_by_what_was_asked_answered_and_called() -> None:
    done = called("read_file", args={"path": "Zephyr/config.toml", "lines": [{"note": "火箭"}, 7]})
    words = card_words(card(asked="Launch code?", did=done, answered="It is 4711."))
    assert words == {"launch", "code", "it", "is", "4711", "read", "file", "zephyr", "config", "toml", "火箭"}


@pytest.mark.parametrize("strange", [{}, {"asked": None, "did": "x", "answered": 7}, {"did": [1, {"args": [None]}]}])
def test_a_strange_card_has_a_line_and_words_too(strange: dict[str, Any]) -> None:
    assert numbered_line(1, strange).startswith("#1 asked: ")
    assert isinstance(card_words(strange), frozenset)


def test_a_card_keeps_arguments_short_and_of_very_many_only_their_names() -> None:
    given_ = [{"lines": ["one. " * 200, 2]}, {f"key {n}": "v" * 90 for n in range(50)}]
    uses = [{"type": "toolUse", "id": f"c{n}", "name": "look", "input": each} for n, each in enumerate(given_)]
    card = turn_card(Turn("T1", ({"id": "a", "role": "assistant", "content": uses},), True, False, ()), "completed")
    assert [each["args"] for each in card["did"]] == [{"lines": ["one.", 2]}, {"keys": [f"key {n}" for n in range(50)]}]
