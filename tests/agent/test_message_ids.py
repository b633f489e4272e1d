"""Message ids that come twice: nothing that a person said, a hook added or a reply held is lost over them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, Held, agent_of, call_of, ledger, logged, of_kind, shown

from harness import tool
from harness.hooks import PostReasoning, PostSummary, PreReasoning
from harness.messages import Msg
from harness.sessions.lines.redact import redact_texts
from harness.testing import ScriptedModel


def said(text: str, message_id: str) -> Msg:
    return Msg.from_dict({"id": message_id, "role": "user", "content": [{"type": "text", "text": text}]})


@tool
def look() -> str:
    """Look at something."""
    return "seen"


def ids(workspace: Path) -> list[str]:
    return [entry["message"]["id"] for entry in of_kind(ledger(workspace), "message")]


async def test_a_hook_that_answers_with_the_same_object_every_time_is_logged_every_time(workspace: Path) -> None:
    refusal = Msg.assistant("I must not say this.")

    def refuse(event: PostReasoning) -> PostReasoning:
        return event.change(message=refusal)

    model = ScriptedModel(["one", "two", "three"])
    async with agent_of(workspace, model, hooks=[refuse]) as agent:
        calls = [agent.call(text, ALICE) for text in ("a", "b", "c")]
        replies = [await call for call in calls]
        lines = [entry["id"] for entry in of_kind(ledger(workspace), "message") if entry["via"] == "model"]
        assert (await agent.sessions("alice").verify("s1")).ok
    assert [reply.text for reply in replies] == ["I must not say this."] * 3
    assert [call.entry_id for call in calls] == lines
    assert shown(model.requests[2]) == [
        ("user", "a"), ("assistant", "I must not say this."), ("user", "b"), ("assistant", "I must not say this."),
        ("user", "c"),
    ]  # fmt: skip
    assert len(set(ids(workspace))) == 6
    # What is shown and noted names the message as it stands in the ledger.
    logged_ids = [entry["message"]["id"] for entry in of_kind(ledger(workspace), "message") if entry["via"] == "model"]
    noted = [entry["data"]["message"] for entry in of_kind(ledger(workspace), "replace")]
    streamed = [
        event.data["message"]["id"] for call in calls for event in call.events if event.event == "post_reasoning"
    ]
    assert logged_ids == noted == streamed == [reply.id for reply in replies]


async def test_a_closing_answer_of_a_hook_is_logged_every_time(workspace: Path) -> None:
    closing = Msg.assistant("That is all.")

    def close(event: PostSummary) -> PostSummary:
        return event.change(message=closing)

    model = ScriptedModel([call_of("look"), "sum"] * 2)
    async with agent_of(workspace, model, look, hooks=[close], max_steps=1) as agent:
        for text in ("a", "b"):
            assert (await agent.call(text, ALICE)).text == "That is all."
    assert logged(workspace).count(("model", "assistant", "That is all.")) == 2


async def test_what_a_hook_adds_is_shown_in_every_turn_and_once_in_each(workspace: Path) -> None:
    clock = Msg.user("The time is now.")

    def add(event: PreReasoning) -> PreReasoning:
        return event.change(additions=(*event.additions, clock))

    model = ScriptedModel([call_of("look"), "one", call_of("look"), "two"])
    async with agent_of(workspace, model, look, hooks=[add]) as agent:
        for text in ("a", "b"):
            await agent.call(text, ALICE)
    assert [str(shown(request)).count("The time is now.") for request in model.requests] == [1, 1, 1, 1]
    assert logged(workspace).count(("hook", "user", "The time is now.")) == 2


@pytest.mark.parametrize("earlier", [False, True], ids=["steered before", "said before"])
async def test_what_is_steered_again_is_heard_again(workspace: Path, earlier: bool) -> None:
    brief = Msg.user("be brief")
    first, second = Held(call_of("look")), Held(call_of("look"))
    model = ScriptedModel([first, "one", second, "two"])
    async with agent_of(workspace, model, look) as agent:
        for held, opening in ((first, brief if earlier else "a"), (second, "b")):
            call = agent.call(opening, ALICE)
            call.start()
            await held.asked.wait()
            assert (held is first and earlier) or call.steer(brief)
            held.let_go.set()
            await call
            assert call.warnings == []
    assert ("user", "be brief") in shown(model.requests[3])[-3:]
    assert logged(workspace).count(("steer", "user", "be brief")) == (1 if earlier else 2)


async def test_other_words_under_a_known_id_are_kept_under_an_id_of_their_own_and_that_is_told(workspace: Path) -> None:
    model = ScriptedModel(["one", "two"])
    async with agent_of(workspace, model) as agent:
        first = agent.call([said("My code is 111.", "1"), said("Remember it.", "2")], ALICE)
        await first
        second = agent.call([said("My code is now 222.", "1"), said("What is it?", "2")], ALICE)
        await second
    assert first.warnings == []
    assert [warning.split(" was ")[0] for warning in second.warnings] == ["message id '1'", "message id '2'"]
    assert ("user", "user", "My code is now 222.") in logged(workspace)
    assert ("user", "My code is now 222.") in shown(model.requests[1])
    assert len(set(ids(workspace))) == 6


async def test_a_conversation_that_is_brought_along_again_is_logged_once(workspace: Path) -> None:
    opening = said("My name is Alice.", "1")
    async with agent_of(workspace, ScriptedModel(["one", "two"])) as agent:
        await agent.call([opening, said("Hello", "2")], ALICE)
        call = agent.call([opening, said("Hello", "2"), said("Who am I?", "3")], ALICE)
        await call
        assert call.warnings == []
    assert [text for via, _, text in logged(workspace) if via == "user"] == ["My name is Alice.", "Hello", "Who am I?"]


async def test_words_under_the_id_of_something_that_passed_by_are_logged(workspace: Path) -> None:
    held = Held("one")
    aside = said("In English, please.", "7")
    async with agent_of(workspace, ScriptedModel([held, "one again", "two"])) as agent:
        call = agent.call("a", ALICE)
        call.start()
        await held.asked.wait()
        call.steer(aside)
        held.let_go.set()
        await call
        await agent.call([aside, Msg.user("b")], ALICE)
    assert [via for via, _, text in logged(workspace) if text == "In English, please."] == ["steer", "user"]


@pytest.mark.parametrize("blank", ["", "1"], ids=["no id", "one id for all"])
async def test_messages_of_one_call_under_one_id_are_all_logged(workspace: Path, blank: str) -> None:
    async with agent_of(workspace, ScriptedModel(["one", "two"])) as agent:
        for texts in (("a", "b", "c"), ("d", "e", "f")):
            await agent.call([said(text, blank) for text in texts], ALICE)
    assert [text for via, _, text in logged(workspace) if via == "user"] == ["a", "b", "c", "d", "e", "f"]
    assert all(ids(workspace))
    assert len(set(ids(workspace))) == len(ids(workspace))


async def test_the_same_words_are_the_same_as_they_are_stored(workspace: Path) -> None:
    secretive = redact_texts(lambda text: text.replace("123", "[secret]"))
    async with agent_of(workspace, ScriptedModel(["one", "two"]), redact=secretive) as agent:
        await agent.call([said("123", "1"), said("Hello", "2")], ALICE)
        call = agent.call([said("123", "1"), said("Hello", "3")], ALICE)
        await call
        assert call.warnings == []
    assert ids(workspace).count("1") == 1
