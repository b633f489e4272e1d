"""The working set in calls: what a request shows, that it is the same in every process, and that the ledger tells it."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, agent_of, assert_pair_complete, call_of, ledger, of_kind
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

from harness import HarnessAgent
from harness.errors import ConfigError
from harness.hooks import CompactionConfig, CompactionHook, PreReasoning, WorkingSet
from harness.messages import Msg, Usage
from harness.models import ModelRequest, estimate_request
from harness.testing import ScriptedModel
from harness.tools import tool


@tool
def look(query: str) -> str:
    """Look something up."""
    return "\n".join(f"line {number} about {query}" for number in range(60))


def looks_twice(request: ModelRequest) -> Any:
    """Two calls at once for each prompt, then an answer."""
    if request.messages[-1].role == "user":
        return [call_of("look", query="one"), call_of("look", query="two")]
    return f"found {LONG}"


async def test_a_short_conversation_is_shown_whole_and_the_hooks_see_it(workspace: Path) -> None:
    seen: list[list[str]] = []

    def watch(event: PreReasoning) -> None:
        seen.append([message.text[:8] for message in event.messages])

    async with working(workspace, Windowed(8000, declares=True), hooks=[watch]) as agent:
        await say(agent, [1, 2])
        await assert_exact(agent)
    assert seen == [["prompt 1"], ["prompt 1", "heard 1", "prompt 2"]]
    [first, second] = selections(workspace)
    assert first == [second[0]["full"][0]]
    assert second[0]["full"][0] == second[0]["full"][1]


async def test_turns_that_do_not_fit_become_cards_and_then_go_behind_a_packet(workspace: Path) -> None:
    model = Windowed(5000, long_answer, declares=True)
    async with working(workspace, model, config=WorkingSet(max_packet_tokens=300)) as agent:
        await say(agent, range(1, 61))
        await assert_exact(agent)
    assert model.refused == []
    last = model.requests[-1]
    shown = [*cards_in(last), *asked_in_full(last)[:-1]]
    assert shown == [*range(shown[0], 60)]
    assert f"[turns #1 to #{shown[0] - 1}; recall(turn=n) shows one whole]\nSUMMARY" in packet_in(last)
    assert shown[0] in (41, 49)
    assert max(estimate_request(request) for request in model.requests) <= 5000 - 1250


async def test_the_next_process_chooses_as_this_one_would_have(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = WorkingSet(checkpoint_turns=8, max_boundaries=2, max_packet_tokens=100)
    one, other = Windowed(4000, looks_twice, declares=True), Windowed(4000, looks_twice, declares=True)
    async with working(workspace, one, look, config=config) as agent:
        await say(agent, range(1, 41))
    for number in range(1, 41):
        restart(monkeypatch)
        async with working(tmp_path / "other", other, look, config=config) as agent:
            await say(agent, [number])
    assert len(of_kind(ledger(workspace), "compaction")) == 3
    assert [texts(request) for request in other.requests] == [texts(request) for request in one.requests]
    assert len(one.summaries) > 0
    assert len(other.summaries) == len(one.summaries)


async def test_what_was_shown_is_worked_out_again_from_the_ledger_across_checkpoints_and_processes(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = WorkingSet(checkpoint_turns=8, max_boundaries=2, max_packet_tokens=100)
    model = Windowed(4000, looks_twice, declares=True)
    for begin in range(1, 40, 5):
        restart(monkeypatch)
        async with working(workspace, model, look, config=config) as agent:
            await say(agent, range(begin, begin + 5))
    restart(monkeypatch)
    async with working(workspace, model, look, config=config) as agent:
        await assert_exact(agent)
        assert (await agent.sessions("alice").verify("s1")).ok
    for request in model.requests:
        assert_pair_complete(request)
    kinds = {key for select in selections(workspace) for item in select if isinstance(item, dict) for key in item}
    assert kinds == {"packet", "cards", "full"}


async def test_a_larger_model_sees_whole_turns_again_and_the_small_one_finds_its_packet(workspace: Path) -> None:
    small = Windowed(3000, long_answer, declares=True)
    large = ScriptedModel(["large"], name="large", context_window=200_000)
    async with working(workspace, small, config=WorkingSet(max_packet_tokens=100)) as agent:
        await say(agent, range(1, 22))
        asked, packet = len(small.summaries), packet_in(small.requests[-1])
        await say(agent, [22], model=large)
        await say(agent, [23])
        await assert_exact(agent)
    assert packet
    assert asked_in_full(large.requests[-1]) == [*range(1, 23)]
    assert packet_in(small.requests[-1]) == packet
    assert len(small.summaries) == asked


async def test_results_of_parallel_calls_are_digests_once_their_turn_has_closed(workspace: Path) -> None:
    model = Windowed(8000, looks_twice, declares=True)
    async with working(workspace, model, look) as agent:
        await say(agent, [1, 2])
        await assert_exact(agent)
    during, after = model.requests[1], model.requests[2]
    assert "line 59 about one" in texts(during)[2]
    [*_, results, _answer, _prompt] = texts(after)
    assert "line 59" not in results
    assert "[evidence:1.1 " in results
    assert "[evidence:1.2 " in results


async def test_within_a_turn_each_request_begins_as_the_one_before(workspace: Path) -> None:
    model = Windowed(4000, looks_twice, declares=True)
    async with working(workspace, model, look, config=WorkingSet(max_packet_tokens=100)) as agent:
        await say(agent, range(1, 25))
    pairs = [
        (before, after)
        for before, after in zip(model.requests, model.requests[1:], strict=False)
        if after.messages[-1].role == "tool"
    ]
    assert len(pairs) == 24
    for before, after in pairs:
        assert texts(after)[: len(before.messages)] == texts(before)


async def test_a_turn_that_was_asked_about_is_fetched_in_full_and_the_cards_stay_as_they_are(workspace: Path) -> None:
    model = Windowed(6000, long_answer, declares=True)
    async with working(workspace, model) as agent:
        await agent.call("the zebra lives in Nairobi", ALICE)
        await say(agent, range(2, 26))
        await agent.call("something else entirely", ALICE)
        await agent.call("where does the zebra live, in Nairobi?", ALICE)
        await assert_exact(agent)
    plain, fetched = model.requests[-2], model.requests[-1]
    assert "the zebra lives in Nairobi" not in texts(plain)
    assert "the zebra lives in Nairobi" in texts(fetched)
    assert cards_in(fetched)[:16] == cards_in(plain)[:16]


async def test_after_a_branch_only_the_new_way_is_shown(workspace: Path) -> None:
    config = WorkingSet(checkpoint_turns=8, max_packet_tokens=100)
    model = Windowed(3000, long_answer, declares=True)
    async with working(workspace, model, config=config) as agent:
        await say(agent, range(1, 31))
        end = [entry["id"] for entry in of_kind(ledger(workspace), "turn_card")][11]
        await agent.sessions("alice").branch("s1", end)
        await say(agent, range(101, 103))
        await assert_exact(agent)
    last = model.requests[-1]
    assert cards_in(last)[-1] < asked_in_full(last)[0]
    assert asked_in_full(last)[-2:] == [101, 102]
    assert max([*cards_in(last), *asked_in_full(last)[:-2]]) <= 12


async def test_secrets_are_not_in_what_is_selected_either(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Windowed(
        3000, lambda _: f"token=abcd1234efgh5678 {LONG}", lambda _: "api_key=abcd1234efgh5678", declares=True
    )
    async with working(workspace, model, config=WorkingSet(max_packet_tokens=100), redact=True) as agent:
        await say(agent, range(1, 25))
        restart(monkeypatch)
        await say(agent, range(25, 27))
        await assert_exact(agent)
    assert packet_in(model.requests[-1])
    assert not any("abcd1234efgh5678" in text for request in model.requests for text in texts(request))


async def test_tokens_that_cost_more_than_estimated_are_reckoned_with_and_known_to_the_next_process(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(request: ModelRequest) -> Any:
        usage = Usage(input=2 * estimate_request(request), output=5)
        return Msg.assistant(long_answer(request)).with_changes(usage=usage)

    model = Windowed(4000, answer, declares=True, weight=2.0)
    async with working(workspace, model, config=WorkingSet(max_packet_tokens=60)) as agent:
        await say(agent, range(1, 13))
        restart(monkeypatch)
        await say(agent, range(13, 15))
    assert model.refused == []
    [capacity] = of_kind(ledger(workspace), "capacity")
    assert capacity["data"] == {"provider": "test", "model": "windowed", "ratio": 2.0}
    assert max(estimate_request(request) for request in model.requests) <= (4000 - 1000) / 2


async def test_compaction_before_and_after_finds_a_sensible_view(workspace: Path) -> None:
    model = Windowed(3000, long_answer, declares=True)
    config = WorkingSet(checkpoint_turns=8, max_packet_tokens=100)
    compaction = CompactionConfig(trigger_messages=10, keep_messages=4)
    async with agent_of(workspace, model, compaction=compaction) as agent:
        await say(agent, range(1, 8))
    async with working(workspace, model, config=config) as agent:
        await say(agent, range(8, 30))
        await assert_exact(agent)
    async with agent_of(workspace, model, compaction=compaction) as agent:
        await say(agent, range(30, 34))
        await assert_exact(agent)
    assert packet_in(model.requests[-1])
    async with working(workspace, model, config=config) as agent:
        await say(agent, [34])
        await assert_exact(agent)
        assert (await agent.sessions("alice").verify("s1")).ok
    assert asked_in_full(model.requests[-1])[-1] == 34
    assert model.refused == []


def test_the_two_policies_exclude_each_other(workspace: Path) -> None:
    builder = HarnessAgent.builder().model("offline").workspace(workspace)
    with pytest.raises(ConfigError, match=r"compaction\(\) and working_set\(\)"):
        builder.compaction().working_set().build()
    builder.without("compaction").build()
    with pytest.raises(ConfigError, match=r"compaction\(\) and working_set\(\)"):
        builder.hook(CompactionHook()).build()


async def test_left_out_again_the_whole_view_is_shown(workspace: Path) -> None:
    model = Windowed(100_000, declares=True)
    async with working(workspace, model, without="working_set") as agent:
        await say(agent, [1, 2])
    begun = of_kind(ledger(workspace), "request_begin")
    assert [entry["policy"] for entry in begun] == ["whole", "whole"]
    assert not any("select" in entry for entry in begun)
