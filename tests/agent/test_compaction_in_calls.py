"""Compaction at work: whole turns go, calls keep their results, and nothing is lost (B06)."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import (
    ALICE,
    Held,
    agent_of,
    assert_pair_complete,
    call_of,
    ledger,
    logged,
    messages_of_case,
    of_kind,
    shown,
)

from harness import HarnessAgent
from harness.agent import open_session
from harness.errors import ModelMalformed, ModelRejected, ModelUnavailable, SessionNotFound
from harness.hooks import CompactionConfig
from harness.models import ModelRequest
from harness.testing import ScriptedModel

SUMMARY = "<context_summary>\nSUMMARY\n</context_summary>"
AT_FIVE = CompactionConfig(trigger_messages=5, keep_messages=2)


def is_summary_request(request: ModelRequest) -> bool:
    return request.messages[-1].text.startswith("Summarise the conversation so far")


class Talking:
    """Answers prompts with numbers, and requests for a summary with what it was given for them."""

    provider, name, context_window = "test", "talking", None

    def __init__(self, *summaries: Any) -> None:
        self.prompts = ScriptedModel([f"answer {n}" for n in range(1, 60)])
        self.summaries = ScriptedModel([*summaries, *["SUMMARY"] * 60])

    def stream(self, request: ModelRequest) -> Any:
        return (self.summaries if is_summary_request(request) else self.prompts).stream(request)


async def say(agent: HarnessAgent, count: int) -> None:
    for n in range(1, count + 1):
        await agent.call(f"prompt {n}", ALICE)


def compactions(workspace: Path) -> list[dict[str, Any]]:
    return of_kind(ledger(workspace), "compaction")


async def test_a_long_conversation_is_summarised_before_the_next_request(workspace: Path) -> None:
    model = Talking()
    async with agent_of(workspace, model, compaction=AT_FIVE) as agent:
        await say(agent, 4)
    assert shown(model.prompts.requests[2]) == [("user", SUMMARY), ("user", "prompt 3")]
    assert shown(model.prompts.requests[3]) == [
        ("user", SUMMARY), ("user", "prompt 3"), ("assistant", "answer 3"), ("user", "prompt 4"),
    ]  # fmt: skip
    [summarise] = model.summaries.requests
    assert [role for role, _ in shown(summarise)] == ["user", "assistant", "user", "assistant", "user"]


async def test_the_newest_turns_stay_as_they_are(workspace: Path) -> None:
    model = Talking()
    config = CompactionConfig(trigger_messages=7, keep_messages=4)
    async with agent_of(workspace, model, compaction=config) as agent:
        await say(agent, 4)
    assert shown(model.prompts.requests[3]) == [
        ("user", SUMMARY), ("user", "prompt 3"), ("assistant", "answer 3"), ("user", "prompt 4"),
    ]  # fmt: skip


async def test_the_ledger_keeps_everything_and_the_summary_beside_it(workspace: Path) -> None:
    async with agent_of(workspace, Talking(), compaction=AT_FIVE) as agent:
        await say(agent, 6)
        history = await agent.sessions("alice").history("s1", 100)
    said = [(role, text) for via, role, text in logged(workspace) if via in ("user", "model")]
    assert said == [pair for n in range(1, 7) for pair in (("user", f"prompt {n}"), ("assistant", f"answer {n}"))]
    assert [message.text for message in history if message.role == "user"][:1] == ["prompt 1"]
    assert [entry["summary"] for entry in compactions(workspace)] == ["SUMMARY"] * len(compactions(workspace))
    assert len(compactions(workspace)) >= 2


async def test_a_new_process_sees_the_same_compacted_conversation(workspace: Path) -> None:
    async with agent_of(workspace, Talking(), compaction=AT_FIVE) as agent:
        await say(agent, 3)
        before = (await agent.sessions("alice").tree("s1")).messages()
    open_session._cache._open.clear()
    model = ScriptedModel(["later"])
    async with agent_of(workspace, model) as agent:
        assert (await agent.sessions("alice").tree("s1")).messages() == before
        await agent.call("and?", ALICE)
    assert shown(model.requests[0]) == [
        ("user", SUMMARY), ("user", "prompt 3"), ("assistant", "answer 3"), ("user", "and?"),
    ]  # fmt: skip


async def test_both_ends_of_a_compaction_are_events(workspace: Path) -> None:
    async with agent_of(workspace, Talking(), compaction=AT_FIVE) as agent:
        await say(agent, 2)
        events = [event async for event in agent.call("prompt 3", ALICE)]
    notices = [event.data for event in events if event.event == "notice"]
    assert [(notice["kind"], notice.get("status")) for notice in notices] == [
        ("compaction_begin", None), ("compaction_end", "completed"),
    ]  # fmt: skip
    assert "summary" not in str([event.data for event in events if event.event == "reasoning_chunk"]).lower()


@pytest.mark.parametrize(
    "failure",
    [
        ModelRejected("no summaries here"),
        ModelUnavailable,
        "   ",
        call_of("dig"),
        [call_of("dig"), "with words"],
    ],
    ids=["error", "transient", "blank", "tool call", "tool call with words"],
)
async def test_where_no_summary_comes_the_conversation_goes_on_whole(
    workspace: Path, failure: Any, caplog: pytest.LogCaptureFixture
) -> None:
    model = Talking(*[failure] * 60)
    async with agent_of(workspace, model, compaction=AT_FIVE) as agent:
        await say(agent, 3)
    assert [text for _, text in shown(model.prompts.requests[2])] == [
        "prompt 1", "answer 1", "prompt 2", "answer 2", "prompt 3",
    ]  # fmt: skip
    assert compactions(workspace) == []
    assert of_kind(ledger(workspace), "compaction_end")[0]["data"]["status"] == "failed"
    assert "was not compacted" in caplog.text


async def test_a_fallback_model_summarises_where_the_first_cannot(workspace: Path) -> None:
    first, second = Talking(*[ModelRejected("no")] * 9), Talking("SECOND SUMMARY")
    async with agent_of(workspace, first, compaction=AT_FIVE, fallback_models=second) as agent:
        await say(agent, 3)
    assert compactions(workspace)[0]["summary"] == "SECOND SUMMARY"
    assert compactions(workspace)[0]["model"] == "test:talking"


async def test_a_model_of_its_own_may_summarise(workspace: Path) -> None:
    own = ScriptedModel(["OWN SUMMARY"], name="cheap")
    config = CompactionConfig(trigger_messages=5, keep_messages=2, model=own)
    async with agent_of(workspace, Talking(), compaction=config) as agent:
        await say(agent, 3)
    assert (compactions(workspace)[0]["summary"], compactions(workspace)[0]["model"]) == (
        "OWN SUMMARY",
        "scripted:cheap",
    )


async def test_stopped_during_the_summary_nothing_has_changed(workspace: Path) -> None:
    held = Held("SUMMARY")
    model = Talking(held)
    async with agent_of(workspace, model, compaction=AT_FIVE) as agent:
        await say(agent, 2)
        async with agent.call("prompt 3", ALICE):
            await held.asked.wait()
        assert compactions(workspace) == []
        await agent.call("prompt 4", ALICE)
    assert len(compactions(workspace)) == 1
    assert_pair_complete(model.prompts.requests[-1])
    ends = {end["requestId"]: end["status"] for end in of_kind(ledger(workspace), "request_end")}
    purposes = [(entry["purpose"], ends[entry["id"]]) for entry in of_kind(ledger(workspace), "request_begin")]
    assert purposes[2:4] == [("summarize", "aborted"), ("summarize", "completed")]


async def test_the_request_for_a_summary_is_logged_with_its_purpose_and_not_part_of_the_talk(workspace: Path) -> None:
    async with agent_of(workspace, Talking(), compaction=AT_FIVE) as agent:
        await say(agent, 3)
        messages = (await agent.sessions("alice").tree("s1")).messages()
    assert [entry["purpose"] for entry in of_kind(ledger(workspace), "request_begin")] == [
        "execute", "execute", "summarize", "execute",
    ]  # fmt: skip
    assert [via for via, _, _ in logged(workspace)].count("summary") == 2
    assert "Summarise" not in json.dumps(messages)


# ---- by hand


async def test_compacting_by_hand_summarises_all_but_nothing_open(workspace: Path) -> None:
    model = Talking()
    config = CompactionConfig(trigger_messages=50, keep_messages=2)
    async with agent_of(workspace, model, compaction=config) as agent:
        await say(agent, 3)
        assert await agent.sessions("alice").compact("s1", "Keep the numbers.") is True
        await agent.call("prompt 4", ALICE)
    assert model.summaries.requests[0].messages[-1].text.endswith("\n\nKeep the numbers.")
    assert shown(model.prompts.requests[3]) == [
        ("user", SUMMARY), ("user", "prompt 3"), ("assistant", "answer 3"), ("user", "prompt 4"),
    ]  # fmt: skip


async def test_compacting_by_hand_says_when_nothing_can_go(workspace: Path) -> None:
    model = Talking()
    config = CompactionConfig(trigger_messages=50, keep_messages=20)
    async with agent_of(workspace, model, compaction=config) as agent:
        await say(agent, 2)
        before = ledger(workspace)
        assert await agent.sessions("alice").compact("s1") is False
    assert (ledger(workspace), model.summaries.requests) == (before, [])


async def test_compacting_by_hand_where_no_summary_comes_raises_and_changes_nothing(workspace: Path) -> None:
    model = Talking(*[call_of("dig")] * 9)
    config = CompactionConfig(trigger_messages=50, keep_messages=0)
    async with agent_of(workspace, model, compaction=config) as agent:
        await say(agent, 2)
        before = (await agent.sessions("alice").tree("s1")).messages()
        with pytest.raises(ModelMalformed):
            await agent.sessions("alice").compact("s1")
        assert (await agent.sessions("alice").tree("s1")).messages() == before


async def test_a_session_that_is_not_there_cannot_be_compacted(workspace: Path) -> None:
    async with agent_of(workspace, Talking()) as agent:
        with pytest.raises(SessionNotFound):
            await agent.sessions("alice").compact("s1")


async def test_states_survive_a_compaction(workspace: Path) -> None:
    class Fixed:
        name = "fixed"
        loaded: list[Any] = []  # noqa: RUF012 - the test looks at it from outside

        def save(self) -> dict[str, Any]:
            return {"n": 1}

        def load(self, value: dict[str, Any]) -> None:
            self.loaded.append(value)

    async with agent_of(workspace, Talking(), compaction=AT_FIVE, state_module=Fixed) as agent:
        await say(agent, 3)
        open_session._cache._open.clear()
        await agent.call("prompt 4", ALICE)
    assert Fixed.loaded[-1] == {"n": 1}


# ---- B06


@pytest.mark.parametrize("name", ["history.json", "history-with-old-orphan.json"])
@pytest.mark.parametrize("keep", range(1, 16))
async def test_every_cut_of_the_case_is_a_safe_one(workspace: Path, shared: Path, name: str, keep: int) -> None:
    case = json.loads((shared / "cases/B06" / name).read_text())
    safe = json.loads((shared / "cases/B06/expected.json").read_text())["safe_cuts"][name]
    model = Talking()
    config = CompactionConfig(trigger_messages=max(2, keep + 1), keep_messages=keep)
    async with agent_of(workspace, model, compaction=config) as agent:
        await agent.call(messages_of_case(case), ALICE)
    [request] = model.prompts.requests
    for sent in [request, *model.summaries.requests]:
        assert_pair_complete(sent)
        assert "left over" not in str(shown(sent))
    assert len(compactions(workspace)) == 1
    first_kept = shown(request)[1][1]
    assert next(n for n, item in enumerate(case) if item.get("text") == first_kept) in safe
    texts = " ".join(text for _, _, text in logged(workspace))
    for item in case:
        assert item.get("text", "") in texts
        assert all(result["text"] in texts for result in item.get("results", []))
