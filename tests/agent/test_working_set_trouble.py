"""The working set when something is in the way: refusals, small windows, no summary, an end in the middle."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, assert_pair_complete, call_of, inexact, ledger, of_kind, until
from wskit import (
    LONG,
    Windowed,
    asked_in_full,
    assert_exact,
    cards_in,
    long_answer,
    packet_in,
    restart,
    say,
    selections,
    texts,
    working,
)

from harness import RuntimeContext
from harness.errors import CallCancelled, ModelUnavailable
from harness.hooks import WorkingSet
from harness.models import ModelRequest, RetryPolicy
from harness.testing import ScriptedModel
from harness.tools import tool

SMALL = WorkingSet(max_packet_tokens=100)


def data_of(workspace: Path, kind: str) -> list[dict[str, Any]]:
    return [entry["data"] for entry in of_kind(ledger(workspace), kind)]


@pytest.mark.parametrize("reveals", [True, False])
async def test_a_refusal_is_met_with_a_smaller_choice_once_and_remembered(workspace: Path, reveals: bool) -> None:
    model = Windowed(3000, long_answer, reveals=reveals)
    async with working(workspace, model, config=SMALL) as agent:
        await say(agent, range(1, 31))
        await assert_exact(agent)
    assert 1 <= len(model.refused) <= 4
    assert of_kind(ledger(workspace), "compaction") == []
    assert [entry["window"] for entry in data_of(workspace, "capacity")][-1] <= 3000
    prompts = [entry for entry in of_kind(ledger(workspace), "message") if entry["via"] == "user"]
    assert len(prompts) == 30


async def test_a_fallback_model_is_shown_what_fits_its_own_window(workspace: Path) -> None:
    large = ScriptedModel(["a " + LONG] * 12 + [ModelUnavailable("down")] * 9, name="large", context_window=200_000)
    small = Windowed(2000, declares=True)
    once = RetryPolicy(attempts=1)
    async with working(workspace, large, config=SMALL, fallback_models=small, retry=once) as agent:
        await say(agent, range(1, 14))
        await assert_exact(agent)
    assert asked_in_full(large.requests[12]) == [*range(1, 14)]
    [request] = small.requests
    assert asked_in_full(request)[-1] == 13
    assert len(asked_in_full(request)) < 6
    assert small.refused == []


@pytest.mark.parametrize("summary", [ModelUnavailable("down"), "", call_of("look", query="x")])
async def test_without_a_summary_the_turns_it_would_have_named_are_named_and_the_call_answers(
    workspace: Path, summary: Any
) -> None:
    model = Windowed(3000, long_answer, lambda _: summary, declares=True)
    async with working(workspace, model, config=SMALL, retry=RetryPolicy(attempts=1)) as agent:
        await say(agent, range(1, 31))
        await assert_exact(agent)
    failed = [data["turns"] for data in data_of(workspace, "packet_failed")]
    assert failed
    assert failed == sorted(failed)
    assert len({end for _, end in failed}) == len(failed)
    last = model.requests[-1]
    first = [*cards_in(last), *asked_in_full(last)][0]
    assert f"[turns #1 to #{first - 1} are not shown; recall(turn=n) shows one whole" in packet_in(last)


async def test_a_summary_that_fails_once_leaves_the_packet_before_with_the_rest_named(workspace: Path) -> None:
    answers = ["FIRST", ModelUnavailable("down"), "THIRD"]
    model = Windowed(3000, long_answer, lambda _: answers.pop(0) if answers else "LATER", declares=True)
    async with working(workspace, model, config=SMALL, retry=RetryPolicy(attempts=1)) as agent:
        await say(agent, range(1, 41))
        await assert_exact(agent)
    packets = [packet_in(request) for request in model.requests]
    partly = next(packet for packet in packets if "are not shown" in packet)
    assert "FIRST" in partly
    assert any("THIRD" in packet and "are not shown" not in packet for packet in packets)


async def test_a_call_that_ends_while_its_packet_is_made_leaves_nothing_behind(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asyncio.Event()

    async def never(_request: ModelRequest) -> str:
        asked.set()
        await asyncio.Event().wait()
        return "never"

    model = Windowed(3000, long_answer, lambda _: never, declares=True)
    async with working(workspace, model, config=SMALL) as agent:
        number = 0
        while not asked.is_set():
            number += 1
            call = agent.call(f"prompt {number}: {LONG}", ALICE)
            task = asyncio.ensure_future(_outcome(call))
            await until(lambda task=task: task.done() or asked.is_set())
        call.cancel()
        await task
    assert data_of(workspace, "packet") == []
    assert number > 5
    restart(monkeypatch)
    whole = Windowed(3000, long_answer, lambda _: "WHOLE", declares=True)
    async with working(workspace, whole, config=SMALL) as agent:
        await say(agent, [number + 1])
        await assert_exact(agent)
        assert (await agent.sessions("alice").verify("s1")).ok
    assert "WHOLE" in packet_in(whole.requests[-1])


async def _outcome(call: Any) -> str:
    try:
        return (await call).text
    except CallCancelled:
        return "cancelled"


@tool
def read(name: str) -> str:
    """Read something long."""
    return f"{name} {LONG}{LONG}"


async def test_an_open_turn_that_outgrows_the_window_gives_up_steps_and_is_whole_again_later(workspace: Path) -> None:
    def answer(request: ModelRequest) -> Any:
        prompt = next(message.text for message in reversed(request.messages) if message.text.startswith("prompt"))
        steps = len(of_kind(ledger(workspace), "request_end"))
        return call_of("read", name=f"part {steps}") if "long" in prompt and steps < 20 else f"done {LONG}"

    model = Windowed(3000, answer, declares=True)
    async with working(workspace, model, read, config=SMALL, max_steps=40) as agent:
        await say(agent, range(1, 4))
        await agent.call("prompt 4: a long one", ALICE)
        await say(agent, [5])
        await assert_exact(agent)
    first, *later = of_kind(ledger(workspace), "compaction")
    assert first["checkpoint"]
    assert first["turns"] == 3
    assert later
    assert all(entry["keepsOpenTurn"] for entry in later)
    assert model.refused == []
    for request in model.requests:
        assert_pair_complete(request)
    during = [request for request in model.requests if request.messages[-1].role == "tool"]
    assert packet_in(during[-1])
    assert texts(during[-1])[1].startswith("prompt 4")
    card = next(line for text in texts(model.requests[-1]) for line in text.split("\n") if "a long one" in line)
    assert "prompt 4" in card
    large = ScriptedModel(["ok"], name="large", context_window=200_000)
    async with working(workspace, large, read, config=SMALL) as agent:
        await say(agent, [6])
        await assert_exact(agent)
    assert sum(text.startswith("read(") for text in texts(large.requests[0])) > 8


async def test_a_large_model_needs_no_summariser_however_many_checkpoints_there_are(workspace: Path) -> None:
    model = Windowed(100_000, long_answer, declares=True)
    config = WorkingSet(checkpoint_turns=8, max_boundaries=1)
    async with working(workspace, model, config=config) as agent:
        await say(agent, range(1, 42))
        await assert_exact(agent)
    assert model.summaries == []
    assert [entry["turns"] for entry in of_kind(ledger(workspace), "compaction")] == [8, 16, 24, 32]
    last = model.requests[-1]
    assert asked_in_full(last) == [*range(25, 42)]
    assert "#1 asked: prompt 1" in packet_in(last)
    assert "#24 asked: prompt 24" in packet_in(last)


async def test_no_room_at_all_shows_the_prompt_alone(workspace: Path) -> None:
    model = Windowed(500, lambda _: "short", declares=True)
    async with working(workspace, model, config=SMALL) as agent:
        await say(agent, [1])
        await agent.call("prompt 2: " + "word " * 290, ALICE)
        await assert_exact(agent)
    assert asked_in_full(model.requests[-1]) == [2]
    assert [len(select) for select in selections(workspace)] == [1, 1]


async def test_manual_compaction_hides_nothing_and_its_summary_serves_as_a_packet(workspace: Path) -> None:
    model = Windowed(100_000, long_answer, lambda _: "BY HAND", declares=True)
    async with working(workspace, model, config=SMALL) as agent:
        await say(agent, range(1, 17))
        assert await agent.sessions("alice").compact("s1")
        await say(agent, [17])
        assert asked_in_full(model.requests[-1]) == [*range(1, 18)]
        small = Windowed(3000, long_answer, declares=True)
        await say(agent, [18], model=small)
        await assert_exact(agent)
    assert packet_in(small.requests[-1])


async def test_a_copy_of_a_session_is_shown_as_the_session_itself(workspace: Path) -> None:
    model = Windowed(3000, long_answer, declares=True)
    config = WorkingSet(checkpoint_turns=8, max_packet_tokens=100)
    async with working(workspace, model, config=config) as agent:
        await say(agent, range(1, 31))
        copy = await agent.sessions("alice").fork("s1")
        await agent.call("what now?", RuntimeContext(session_id=copy, user_id="alice"))
        await agent.call("what now?", ALICE)
        await assert_exact(agent)
        assert await inexact(agent, RuntimeContext(session_id=copy, user_id="alice")) == []
    assert texts(model.requests[-2]) == texts(model.requests[-1])
