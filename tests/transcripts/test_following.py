"""A session that grows is followed in every format: what a follower has is what a new reader would get."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from follower import Follower
from growing import KINDS, Gemini, GeminiDocument, Growing, Hermes, Opencode, Penguin, Pi

from harness.transcripts import read, summary

Make = Callable[[type[Growing]], Growing]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Growing] = []

    def begin(kind: type[Growing]) -> Growing:
        made.append(kind(tmp_path))
        return made[-1]

    yield begin
    for session in made:
        session.close()


def texts_of(path: Path) -> dict[str, str]:
    return {turn.key: turn.text for turn in read(path).turns}


@pytest.mark.parametrize("kind", list(KINDS))
def test_who_follows_has_what_a_new_reader_gets(make: Make, kind: str) -> None:
    session = make(KINDS[kind])
    session.say(7)
    follower = Follower(session.path)

    for _ in range(6):
        session.say()
        assert not follower.look().gap

    assert follower.texts == texts_of(session.path)
    assert "answer 12." in follower.texts.values()


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_key_stays_when_the_session_grows(make: Make, kind: str) -> None:
    session = make(KINDS[kind])
    session.say(7)
    before = texts_of(session.path)

    session.say(6)

    assert list(texts_of(session.path).items())[: len(before)] == list(before.items())


@pytest.mark.parametrize("kind", list(KINDS))
def test_where_nothing_is_new_nothing_is_given(make: Make, kind: str) -> None:
    session = make(KINDS[kind])
    session.say(3)
    follower = Follower(session.path)

    again = follower.look()

    assert (again.turns, again.gap, again.at_end) == ((), False, True)


def test_a_context_in_another_file_is_followed_from_the_first(make: Make) -> None:
    session = make(Penguin)
    session.say(5)
    follower = Follower(session.path)
    assert summary(session.path).stats["prompts"] == 5

    session.say()

    assert follower.look().turns[-1].text == "answer 5."
    assert summary(session.path).stats["prompts"] == 6


def test_an_old_row_that_is_written_again_moves_no_other(make: Make) -> None:
    session = make(Opencode)
    session.say(3)
    keys = list(texts_of(session.path))

    session.say()

    assert list(texts_of(session.path))[: len(keys)] == keys


def test_a_step_back_of_gemini_shows_the_end_anew(make: Make) -> None:
    session = make(Gemini)
    session.say(5)
    follower = Follower(session.path)
    session.append({"$rewindTo": "g2-0"})
    session.turns = 10
    session.say(4)

    assert follower.look().gap
    assert follower.texts == texts_of(session.path)
    assert "prompt 3." not in follower.texts.values()


def test_turns_that_hermes_took_back_are_told_to_a_follower(make: Make) -> None:
    session = make(Hermes)
    session.say(5)
    follower = Follower(session.path)
    session.take_back(2)  # type: ignore[attr-defined]
    session.say()

    assert follower.look().gap
    assert [turn.text for turn in follower.page.turns if turn.kind == "prompt" and turn.aside] == [
        "prompt 3.",
        "prompt 4.",
    ]


def test_a_document_that_is_just_being_written_is_read_as_far_as_it_goes(make: Make) -> None:
    session = make(GeminiDocument)
    session.say(4)
    whole = session.path.read_bytes()
    session.path.write_bytes(whole[: whole.index(b"prompt 3.")])

    found = read(session.path)

    assert [turn.text for turn in found.turns if turn.kind == "prompt"] == ["prompt 0.", "prompt 1.", "prompt 2."]
    assert [warning.kind for warning in found.warnings] == ["truncated"]


def test_a_line_of_gemini_that_is_written_again_keeps_its_place(make: Make) -> None:
    session = make(Gemini)
    session.say(3)
    follower = Follower(session.path)
    first = json.loads(json.dumps(session.messages(0)[0]))  # type: ignore[attr-defined]
    first["content"] = [{"text": "prompt 0, said better."}]
    session.append(first)
    session.say()

    follower.look()

    assert list(follower.texts) == list(texts_of(session.path))


def test_a_conversation_that_goes_on_from_an_earlier_turn_is_told_to_a_follower(make: Make) -> None:
    session = make(Pi)
    session.say(8)
    follower = Follower(session.path)
    message = {"role": "user", "content": [{"type": "text", "text": "another way"}]}
    session.append(
        {"type": "message", "id": "x", "parentId": "e0000015", "timestamp": "2026-03-02T00:00:00Z", "message": message}
    )

    assert follower.look().turns[0].text == "prompt 4."
    asides = {turn.text: turn.aside for turn in follower.turns.values() if turn.kind == "prompt"}
    assert asides == {
        **dict.fromkeys(f"prompt {number}." for number in range(4)),
        **dict.fromkeys((f"prompt {number}." for number in range(4, 8)), "abandoned"),
        "another way": None,
    }
