"""A summary comes out of models that take little, answer with nothing, or fail; and it never loses its thread."""

from collections.abc import Sequence
from typing import Any

import pytest

from harness.errors import ContextOverflow, ModelError, ModelMalformed, ModelRejected
from harness.hooks import CompactionConfig
from harness.hooks.summarising import plain_summary, summarise
from harness.messages import Msg
from harness.models.tokens import estimate_tokens
from harness.sessions import Turn

LONG = "word " * 400


class Side:
    """A model that takes so many tokens of material, and answers with what it is told to."""

    def __init__(self, window: int, *answers: Any) -> None:
        self.window, self.answers, self.shown = window, [*answers], list[list[str]]()

    async def ask(
        self, _purpose: str, _system: str, messages: Sequence[Any], _instruction: str, _model: Any = None
    ) -> Msg:
        if sum(map(estimate_tokens, messages)) > self.window:
            raise ContextOverflow("too long")
        self.shown.append([Msg.from_dict(message).text for message in messages])
        answer = self.answers.pop(0) if self.answers else f"SUMMARY {len(self.shown)}"
        if isinstance(answer, BaseException):
            raise answer
        return Msg.assistant(answer, provider="p", model="m")


def said(count: int) -> list[dict[str, Any]]:
    return [Msg.user(f"{n}: {LONG}").to_dict() for n in range(count)]


async def test_what_fits_is_shown_as_it_is_with_the_summary_before() -> None:
    side = Side(9_000)
    before = Msg.user("<context_summary>\nEARLIER\n</context_summary>").to_dict()
    made = await summarise(side, CompactionConfig(), before, said(2), None)
    assert (made.text, made.model) == ("SUMMARY 1", "p:m")
    assert [text[:20] for text in side.shown[0]] == [
        "<context_summary>\nEA",
        "0: word word word wo",
        "1: word word word wo",
    ]


@pytest.mark.parametrize("window", [600, 1_200, 2_500])
async def test_a_window_that_nobody_knows_is_found_by_halves(window: int) -> None:
    side = Side(window)
    made = await summarise(side, CompactionConfig(), None, said(8), None)
    assert made.text == f"SUMMARY {len(side.shown)}"
    text = "".join(part for request in side.shown for part in request)
    assert [f"{n}: word" in text for n in range(8)] == [True] * 8


async def test_each_piece_takes_over_the_summary_so_far() -> None:
    side = Side(9_000)
    before = Msg.user("<context_summary>\nEARLIER\n\n## Record\n- tool used: dig (x1)\n</context_summary>").to_dict()
    await summarise(side, CompactionConfig(), before, said(4), 1_000)
    assert side.shown[0][0].startswith("<context_summary>\n  EARLIER\n</context_summary>")
    assert all(f"  SUMMARY {n}\n" in request[0] for n, request in enumerate(side.shown[1:], 1))


@pytest.mark.parametrize("text", [LONG * 500, "字" * 90_000, "\n".join([LONG] * 500)], ids=["line", "script", "lines"])
async def test_far_too_much_is_not_read_for_ever_but_its_middle_left_out_by_name(text: str) -> None:
    side = Side(9_000)
    material = [Msg.user(f"FIRST {text} LAST").to_dict()]
    await summarise(side, CompactionConfig(), None, material, 1_000)
    read = "".join(part for request in side.shown for part in request)
    assert 5 <= len(side.shown) <= 8
    assert [word in read for word in ("FIRST", "LAST", "characters are left out here; recall has them]")] == [True] * 3


async def test_a_window_that_takes_nothing_is_an_overflow() -> None:
    with pytest.raises(ContextOverflow):
        await summarise(Side(10), CompactionConfig(), None, said(4), None)


async def test_empty_answers_are_counted_over_all_pieces() -> None:
    side = Side(9_000, "one", "", "two", " ", "three")
    with pytest.raises(ModelMalformed, match="it was empty"):
        await summarise(side, CompactionConfig(attempts=2), None, said(9), 1_000)
    assert len(side.shown) == 4


async def test_a_refusal_is_not_asked_again() -> None:
    side = Side(9_000, ModelRejected("no"))
    with pytest.raises(ModelRejected):
        await summarise(side, CompactionConfig(), None, said(1), None)
    assert len(side.shown) == 1


async def test_a_timeout_of_somebody_else_is_an_error_of_the_model() -> None:
    with pytest.raises(ModelError, match="the request for a summary failed"):
        await summarise(Side(9_000, TimeoutError("socket")), CompactionConfig(), None, said(1), None)


def test_a_list_of_turns_fits_and_keeps_the_newest() -> None:
    turns = [
        Turn(f"T{n}", (Msg.user(f"prompt {n}").to_dict(), Msg.assistant(f"answer {n}").to_dict()), True, False, ())
        for n in range(60)
    ]
    made = plain_summary("EARLIER " * 200, turns, 300)
    assert estimate_tokens(made.text) <= 300
    assert "- asked: prompt 59 → did: nothing → answered: answer 59" in made.text
    assert made.text.startswith("EARLIER ")
    assert made.model is None
