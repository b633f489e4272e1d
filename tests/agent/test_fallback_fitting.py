"""What a request shows when it goes to another model than the first, and when a turn is taken up again."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, agent_of, call_of, ledger, of_kind, sessions_folder, shown
from fitkit import Windowed
from wskit import LONG, WorkingSet, assert_exact, long_answer, restart, say, working

from harness.errors import ModelUnavailable
from harness.hooks import CompactionConfig
from harness.models import ModelRequest, RetryPolicy
from harness.tools import tool

ONCE = RetryPolicy(attempts=1)


@tool
def look(q: str) -> str:
    """Look."""
    return "\n".join(f"line {i} of what was found for {q}" for i in range(54))


@pytest.mark.parametrize("policy", [{"compaction": CompactionConfig()}, {"working_set": WorkingSet()}])
async def test_a_fallback_model_is_not_asked_for_more_than_it_declares(workspace: Path, policy: Any) -> None:
    asked: list[int] = []

    def large(request: ModelRequest) -> str:
        asked.append(1)
        if len(asked) > 10:
            raise ModelUnavailable("down")
        return f"answer {LONG * 3}"

    first, second = Windowed(200_000, large, declares=True), Windowed(2_500, declares=True)
    second.name = "small"
    async with agent_of(workspace, first, fallback_models=second, retry=ONCE, **policy) as agent:
        await say(agent, range(12))
        await assert_exact(agent)
    assert second.refused == []
    assert len(second.requests) == 2


async def test_a_turn_that_is_taken_up_again_is_shown_as_it_was(workspace: Path, monkeypatch: Any) -> None:
    down = [False]

    def answer(request: ModelRequest) -> Any:
        if request.messages[-1].role == "tool" and down.pop():
            down.append(False)
            raise ModelUnavailable("down")
        down[:] = down or [False]
        return call_of("look", q="x") if request.messages[-1].text.startswith("look") else long_answer(request)

    model = Windowed(4_000, answer, declares=True)
    async with working(workspace, model, look, config=WorkingSet(max_packet_tokens=100), retry=ONCE) as agent:
        await say(agent, range(9))
        for number in range(3):
            down[:] = [True]
            with pytest.raises(ModelUnavailable):
                await agent.call(f"look {number}", ALICE, idempotency_key=f"k{number}")
            restart(monkeypatch)
            await agent.call(f"look {number}", ALICE, idempotency_key=f"k{number}")
            await say(agent, [20 + number])
        await assert_exact(agent)
    begun = [entry for entry in of_kind(ledger(workspace), "request_begin") if entry["purpose"] == "execute"]
    of_turn: dict[str, list[Any]] = {}
    for entry in begun:
        of_turn.setdefault(entry["turnId"], []).append(entry["select"])
    taken_up = [selects for selects in of_turn.values() if len(selects) == 3]
    assert len(taken_up) == 3
    assert all(select == selects[0] for selects in taken_up for select in selects)


@pytest.mark.parametrize("policy", [{"compaction": CompactionConfig()}, {"working_set": WorkingSet()}, {}])
async def test_an_answer_whose_directive_cannot_be_read_is_left_out(
    workspace: Path, policy: Any, monkeypatch: Any
) -> None:
    model = Windowed(100_000, lambda _: "hi", declares=True)
    async with agent_of(workspace, model, **policy) as agent:
        for number in range(4):
            await agent.call(f"prompt {number}", ALICE)
    path = sessions_folder(workspace) / "s1.log.jsonl"
    lines = path.read_bytes().split(b"\n")
    index = next(i for i, line in enumerate(lines) if b"prompt 2" in line and b'"message"' in line)
    lines[index] = lines[index][:20] + b"\x00\xff" + lines[index][22:]
    path.write_bytes(b"\n".join(lines))
    restart(monkeypatch)
    async with agent_of(workspace, model, **policy) as agent:
        await agent.call("next", ALICE)
        tree = await agent.sessions(ALICE).tree("s1")
        last = [line for line in path.read_bytes().split(b"\n") if b'"request_begin"' in line][-1]
        assert (await tree.context_at(last.split(b'"id":"')[1][:36].decode())).exact
    assert shown(model.requests[-1]) == [
        ("user", "prompt 0"), ("assistant", "hi"), ("user", "prompt 1"), ("assistant", "hi"),
        ("user", "prompt 3"), ("assistant", "hi"), ("user", "next"),
    ]  # fmt: skip


async def test_a_summary_of_text_declares_no_tools_and_one_of_calls_does(workspace: Path) -> None:
    def answer(request: ModelRequest) -> Any:
        return call_of("look", q="x") if request.messages[-1].role == "user" else long_answer(request)

    seen: dict[int, set[bool]] = {}
    for window in (100_000, 4_000):
        summariser = Windowed(window, declares=True)
        config = CompactionConfig(trigger_messages=16, keep_messages=1, model=summariser)
        async with agent_of(workspace / str(window), Windowed(100_000, answer), look, compaction=config) as agent:
            await say(agent, range(8))
            await assert_exact(agent)
        calls = [any(message.tool_uses for message in request.messages) for request in summariser.summaries]
        assert [bool(request.tools) for request in summariser.summaries] == calls
        seen[window] = {*calls}
    assert seen == {100_000: {True}, 4_000: {True, False}}
