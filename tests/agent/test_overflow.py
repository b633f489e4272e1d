"""A request that is too large is made smaller and sent once more, with no configuration, however the call is consumed."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, agent_of, call_of, ledger, logged, of_kind, shown
from fitkit import Windowed

from harness import HarnessAgent
from harness.agent import open_session
from harness.errors import ContextOverflow, ModelRejected
from harness.messages import Msg
from harness.models import ModelRequest
from harness.sessions.view.metering import Capacity, capacities
from harness.testing import ScriptedModel
from harness.tools import tool

LONG = "word " * 400
"""About 500 tokens."""


async def by_await(agent: HarnessAgent, text: str) -> str:
    return (await agent.call(text, ALICE)).text


async def by_events(agent: HarnessAgent, text: str) -> str:
    call = agent.call(text, ALICE)
    assert [event.event async for event in call][-1] == "post_call"
    return (await call).text


async def by_stream(agent: HarnessAgent, text: str) -> str:
    done: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    last: dict[str, Any] = {}

    def take(event: Any) -> None:
        last[event.event] = event.data

    agent.stream(text, ALICE).subscribe(
        take, done.set_exception, lambda: done.set_result(Msg.from_dict(last["post_call"]["message"]).text)
    )
    return await done


@pytest.mark.parametrize("consume", [by_await, by_events, by_stream])
async def test_an_overflow_compacts_and_the_answer_comes_whichever_way_it_is_awaited(
    workspace: Path, consume: Any
) -> None:
    model = Windowed(2000)
    async with agent_of(workspace, model) as agent:
        for n in range(3):
            await agent.call(f"{n}: {LONG}", ALICE)
        assert (await consume(agent, f"3: {LONG}")).startswith("heard")
        history = await agent.sessions("alice").history("s1", 100)
    assert len(model.refused) == 1
    assert len(of_kind(ledger(workspace), "compaction")) == 1
    assert [message.text[:2] for message in history if message.role == "user"] == ["0:", "1:", "2:", "3:"]


async def test_what_was_asked_is_sent_and_logged_once_and_the_refused_request_is_no_part_of_the_talk(
    workspace: Path,
) -> None:
    model = Windowed(1500)
    async with agent_of(workspace, model) as agent:
        for n in range(4):
            await agent.call(f"{n}: {LONG}", ALICE)
    last = shown(model.requests[-1])
    assert [text[:2] for _, text in last].count("3:") == 1
    assert [text[:2] for via, _, text in logged(workspace) if via == "user"] == ["0:", "1:", "2:", "3:"]
    ends = [end["status"] for end in of_kind(ledger(workspace), "request_end")]
    assert ends.count("failed") == len(model.refused)


async def test_text_that_came_before_the_refusal_is_partial_and_not_committed(workspace: Path) -> None:
    model = ScriptedModel([LONG, ["half an ans", ContextOverflow("too long")], "SUMMARY", "a whole answer"])
    async with agent_of(workspace, model) as agent:
        await agent.call("first", ALICE)
        assert (await agent.call("second", ALICE)).text == "a whole answer"
        messages = (await agent.sessions("alice").tree("s1")).messages()
    partial = [entry for entry in of_kind(ledger(workspace), "message") if entry.get("partial")]
    assert [entry["message"]["content"][0]["text"] for entry in partial] == ["half an ans"]
    assert "half an ans" not in str(messages)


async def test_the_window_that_a_refusal_names_is_an_event_and_known_to_the_next_process(workspace: Path) -> None:
    model = Windowed(1500)
    async with agent_of(workspace, model) as agent:
        for n in range(4):
            await agent.call(f"{n}: {LONG}", ALICE)
    [first, *_] = of_kind(ledger(workspace), "capacity")
    assert (first["data"]["provider"], first["data"]["model"], first["data"]["window"]) == ("test", "windowed", 1500)
    open_session._cache._open.clear()
    async with agent_of(workspace, model) as agent:
        tree = await agent.sessions("alice").tree("s1")
        assert capacities(tree.path())["test", "windowed"].window == 1500


async def test_once_the_window_is_known_compaction_comes_before_the_next_refusal(workspace: Path) -> None:
    model = Windowed(1500)
    async with agent_of(workspace, model, compaction=()) as agent:
        for n in range(12):
            await agent.call(f"{n}: {LONG}", ALICE)
    assert len(model.refused) == 1
    assert len(model.summaries) > 2


async def test_a_window_that_is_declared_is_never_exceeded(workspace: Path) -> None:
    model = Windowed(2000, declares=True)
    async with agent_of(workspace, model, compaction=()) as agent:
        for n in range(12):
            await agent.call(f"{n}: {LONG}", ALICE)
    assert model.refused == []


async def test_a_refusal_that_names_no_window_halves_what_is_shown(workspace: Path) -> None:
    model = Windowed(1800, reveals=False)
    async with agent_of(workspace, model) as agent:
        for n in range(9):
            assert (await agent.call(f"{n}: {LONG}", ALICE)).text.startswith("heard")
    assert of_kind(ledger(workspace), "capacity") == []
    assert len(model.refused) < 6


async def test_a_refusal_below_the_estimate_teaches_the_measure_of_that_model(workspace: Path) -> None:
    model = Windowed(3000, weight=2.5)
    async with agent_of(workspace, model, compaction=()) as agent:
        for n in range(8):
            await agent.call(f"{n}: {LONG}", ALICE)
        known = capacities((await agent.sessions("alice").tree("s1")).path())["test", "windowed"]
    assert known.window == 3000
    assert known.ratio is not None
    assert known.ratio > 1.5
    assert len(model.refused) <= 2


async def test_a_turn_whose_steps_are_too_much_gives_them_up_for_a_summary(workspace: Path) -> None:
    @tool
    def dig(n: int) -> str:
        """Dig."""
        return f"layer {n}: {LONG}"

    def answer(request: ModelRequest) -> Any:
        done = sum(f"layer {n}" in str(shown(request)) + str(model.summaries) for n in range(6))
        return call_of("dig", n=done) if done < 6 else "the bottom"

    model = Windowed(2500, answer)
    async with agent_of(workspace, model, dig) as agent:
        assert (await agent.call("Dig six times.", ALICE)).text == "the bottom"
        await agent.call("And?", ALICE)
    boundaries = of_kind(ledger(workspace), "compaction")
    assert {entry.get("keepsOpenTurn") for entry in boundaries[:1]} == {True}
    after = next(request for request in model.requests if "<context_summary>" in str(shown(request)))
    assert [text for _, text in shown(after)][1] == "Dig six times."
    assert sum(via == "tool" for via, _, _ in logged(workspace)) == 6


async def test_a_message_that_alone_is_too_large_is_an_error_and_is_kept(workspace: Path) -> None:
    model = Windowed(300)
    async with agent_of(workspace, model) as agent:
        with pytest.raises(ContextOverflow):
            await agent.call(LONG, ALICE)
        assert (await agent.call("short", ALICE)).text.startswith("heard")
    assert len(logged(workspace)[0][2]) == len(LONG)


async def test_a_larger_model_behind_it_answers_where_nothing_can_be_compacted(workspace: Path) -> None:
    model, larger = Windowed(300), Windowed(9000, lambda _: "from the larger one")
    async with agent_of(workspace, model, fallback_models=larger) as agent:
        assert (await agent.call(LONG, ALICE)).text == "from the larger one"


@pytest.mark.parametrize(
    "summary",
    [lambda _: ModelRejected("no"), lambda _: "  ", lambda _: call_of("dig")],
    ids=["error", "blank", "tool call"],
)
async def test_where_no_summary_comes_a_list_of_the_turns_stands_for_them_and_the_call_answers(
    workspace: Path, summary: Any
) -> None:
    model = Windowed(1600, summary=summary)
    async with agent_of(workspace, model) as agent:
        for n in range(7):
            assert (await agent.call(f"{n}: {LONG}", ALICE)).text.startswith("heard")
    assert "asked: 0:" in str(shown(model.requests[3]))
    assert len(logged(workspace)) >= 14


async def test_a_summary_longer_than_what_it_sums_up_is_cut(workspace: Path) -> None:
    model = Windowed(1600, summary=lambda _: LONG * 9)
    async with agent_of(workspace, model) as agent:
        for n in range(7):
            assert (await agent.call(f"{n}: {LONG}", ALICE)).text.startswith("heard")
    assert [len(entry["summary"]) < len(LONG) for entry in of_kind(ledger(workspace), "compaction")].count(False) == 0


def test_what_is_known_of_a_model_says_only_what_it_knows() -> None:
    assert Capacity(window=9).to_dict() == {"window": 9}
    assert Capacity().to_dict() == {}
