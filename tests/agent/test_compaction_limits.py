"""All that can set a compaction off, both of its modes, and what must survive it."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, agent_of, assert_pair_complete, call_of, ledger, messages_of_case, of_kind, shown
from fitkit import Windowed, asks_for_summary

from harness.agent import open_session
from harness.hooks import CompactionConfig, FunctionHook, PreCall, PreReasoning
from harness.messages import Msg, Usage
from harness.models import ModelRequest
from harness.testing import ScriptedModel
from harness.tools import tool

LONG = "word " * 400
"""About 500 tokens."""
QUIET = {"trigger_messages": 0, "keep_messages": 100}


@tool
def dig(n: int, path: str = "") -> str:
    """Dig."""
    return f"layer {n} of {path}: {LONG}"


async def say(agent: Any, *texts: str) -> None:
    for text in texts:
        await agent.call(text, ALICE)


def reasons(workspace: Path) -> list[str]:
    return [entry["data"]["reason"] for entry in of_kind(ledger(workspace), "compaction_begin")]


async def test_tokens_set_it_off(workspace: Path) -> None:
    model = Windowed(100_000)
    config = CompactionConfig(**QUIET, trigger_tokens=1200, keep_tokens=600)
    async with agent_of(workspace, model, compaction=config) as agent:
        await say(agent, *[f"{n}: {LONG}" for n in range(4)])
    assert set(reasons(workspace)) == {"tokens"}
    assert [text[:2] for _, text in shown(model.requests[2])][1:] == ["2:"]


async def test_turns_set_it_off(workspace: Path) -> None:
    model = Windowed(100_000)
    config = CompactionConfig(trigger_messages=0, keep_messages=2, trigger_turns=3)
    async with agent_of(workspace, model, compaction=config) as agent:
        await say(agent, *"abcd")
    assert reasons(workspace) == ["turns"]
    assert [text for _, text in shown(model.requests[3])][1:] == ["d"]


async def test_what_the_provider_counted_decides_and_not_the_estimate(workspace: Path) -> None:
    counted = Msg.assistant("two", usage=Usage(input=1_790, cache_read=800, output=10))
    model = ScriptedModel(["one", counted, "SUMMARY", "three"])
    config = CompactionConfig(trigger_messages=0, keep_messages=0, trigger_tokens=2_600)
    async with agent_of(workspace, model, compaction=config) as agent:
        await say(agent, LONG, LONG, "and now?")
    assert reasons(workspace) == ["tokens"]


async def test_it_is_decided_in_a_new_process_as_in_the_old_one(workspace: Path) -> None:
    model = Windowed(100_000)
    config = CompactionConfig(**QUIET, trigger_tokens=1200)
    for n in range(4):
        async with agent_of(workspace, model, compaction=config) as agent:
            await say(agent, f"{n}: {LONG}")
        open_session._cache._open.clear()
    assert set(reasons(workspace)) == {"tokens"}


async def test_discarding_asks_no_model_and_says_that_something_is_gone(workspace: Path) -> None:
    model = Windowed(100_000)
    config = CompactionConfig(trigger_messages=5, keep_messages=2, mode="discard")
    async with agent_of(workspace, model, compaction=config) as agent:
        await say(agent, *"abcdef")
        history = await agent.sessions("alice").history("s1", 100)
    assert model.summaries == []
    assert [message.text for message in history if message.role == "user"] == [*"abcdef"]
    assert shown(model.requests[2])[0][1] == (
        "<context_summary>\n[2 earlier turns are not shown any more; recall finds them]\n</context_summary>"
    )
    assert {entry["data"]["mode"] for entry in of_kind(ledger(workspace), "compaction_begin")} == {"discard"}


async def test_discarding_waits_for_the_end_of_the_turn(workspace: Path) -> None:
    model = ScriptedModel(["one", call_of("dig", n=1), call_of("dig", n=2), "done", "later"])
    config = CompactionConfig(trigger_messages=4, keep_messages=1, mode="discard")
    async with agent_of(workspace, model, dig, compaction=config) as agent:
        await say(agent, "a", "dig twice", "c")
    assert [len(shown(request)) for request in model.requests] == [1, 3, 5, 7, 2]


async def test_before_a_later_step_the_turns_before_it_are_summarised(workspace: Path) -> None:
    def answer(request: ModelRequest) -> Any:
        last = request.messages[-1]
        return call_of("dig", n=1) if last.role == "user" and "dig" in last.text else "done"

    model = Windowed(100_000, answer)
    config = CompactionConfig(**QUIET, trigger_tokens=1900)
    async with agent_of(workspace, model, dig, compaction=config) as agent:
        await say(agent, LONG * 2, f"dig {LONG}")
    [boundary] = of_kind(ledger(workspace), "compaction")
    assert "keepsOpenTurn" not in boundary
    assert [role for role, _ in shown(model.requests[-1])] == ["user", "user", "assistant", "tool"]


def digging(times: int) -> Any:
    """Digs until it has dug `times` times in all, by its own count."""
    done = 0

    def answer(_: ModelRequest) -> Any:
        nonlocal done
        done += 1
        return call_of("dig", n=done, path=f"p/{done}.txt") if done <= times else "the bottom"

    return answer


async def test_what_hooks_and_people_put_into_an_open_turn_outlasts_its_steps(workspace: Path) -> None:
    def date(event: PreCall) -> PreCall:
        return event.change(context=(*event.context, "It is Monday."))

    calls: list[Any] = []

    def steer(event: PreReasoning) -> None:
        if event.step == 2:
            calls[0].steer("Use the small spade.")

    model = Windowed(2500, digging(12), declares=True)
    hooks = (FunctionHook(date), FunctionHook(steer))
    async with agent_of(workspace, model, dig, hooks=hooks, compaction=()) as agent:
        calls.append(agent.call("Dig.", ALICE))
        assert (await calls[0]).text == "the bottom"
    assert sum(bool(entry.get("keepsOpenTurn")) for entry in of_kind(ledger(workspace), "compaction")) >= 2
    last = shown(model.requests[-1])
    assert last[1] == ("user", "Dig. It is Monday.")
    assert last[2] == ("user", "Use the small spade.")
    assert str(last).count("Use the small spade.") == 1


async def test_tools_and_files_survive_a_chain_of_summaries_that_forget_them(workspace: Path) -> None:
    model = Windowed(2500, digging(9), summary=lambda _: "Nothing much.", declares=True)
    async with agent_of(workspace, model, dig, compaction=()) as agent:
        await say(agent, "Dig.", "And?")
    summary = of_kind(ledger(workspace), "compaction")[-1]["summary"]
    assert summary.startswith("Nothing much.\n\n## Record\n- tool used: dig (x")
    assert "- file: p/1.txt\n- file: p/2.txt\n" in summary


async def test_an_empty_summary_is_asked_for_again_with_a_word_about_what_was_wrong(workspace: Path) -> None:
    answers = iter(["", call_of("dig"), "SUMMARY"])
    model = Windowed(100_000, summary=lambda _: next(answers))
    config = CompactionConfig(trigger_messages=5, keep_messages=2)
    async with agent_of(workspace, model, compaction=config) as agent:
        await say(agent, *"abc")
    asked = [request.messages[-1].text for request in model.summaries]
    assert ["was empty" in asked[1], "asked for a tool" in asked[2]] == [True, True]
    assert of_kind(ledger(workspace), "compaction")[0]["summary"] == "SUMMARY"


async def test_a_summary_that_hangs_is_given_up_and_the_call_answers(workspace: Path) -> None:
    async def hang(_: ModelRequest) -> str:
        await asyncio.Event().wait()
        return ""

    model = Windowed(100_000, summary=lambda _: hang)
    config = CompactionConfig(trigger_messages=5, keep_messages=2, timeout=0.05)
    async with agent_of(workspace, model, compaction=config) as agent:
        await say(agent, *"abc")
    assert [end["data"]["status"] for end in of_kind(ledger(workspace), "compaction_end")] == ["failed"]
    assert len(shown(model.requests[-1])) == 5


async def test_a_failed_compaction_is_not_tried_again_within_the_turn(workspace: Path) -> None:
    model = Windowed(100_000, digging(3), summary=lambda _: "")
    config = CompactionConfig(trigger_messages=2, keep_messages=1, attempts=1)
    async with agent_of(workspace, model, dig, compaction=config) as agent:
        await say(agent, "a", "b", "c")
    begun = [entry["turnId"] for entry in of_kind(ledger(workspace), "compaction_begin")]
    assert len(begun) == len(set(begun)) == 2


async def test_a_summariser_with_a_small_window_reads_the_talk_in_pieces(workspace: Path) -> None:
    def summary(request: ModelRequest) -> str:
        seen = [n for n in range(4) if f"{n}: word" in str(shown(request))]
        before = request.messages[0].text.partition("<context_summary>\n  ")[2].partition("\n")[0]
        return f"{before}{''.join(map(str, seen))}"

    cheap = Windowed(1500, summary=summary, declares=True)
    config = CompactionConfig(trigger_messages=8, keep_messages=1, model=cheap)
    async with agent_of(workspace, Windowed(100_000), compaction=config) as agent:
        await say(agent, *[f"{n}: {LONG}" for n in range(5)])
    assert len(cheap.summaries) > 3
    assert of_kind(ledger(workspace), "compaction")[0]["summary"] == "0123"
    assert cheap.refused == []


async def test_a_compaction_that_would_gain_nothing_is_not_done_and_not_tried_again(workspace: Path) -> None:
    big = "base " * 900
    model = Windowed(100_000, summary=lambda _: LONG * 2)
    config = CompactionConfig(**QUIET, trigger_tokens=1300, keep_tokens=1200)

    def prompt(event: PreCall) -> PreCall:
        from harness.hooks import SystemPart

        return event.change(system=(SystemPart("big", big),))

    async with agent_of(workspace, model, hooks=(FunctionHook(prompt),), compaction=config) as agent:
        await say(agent, "a" * 3000, "b" * 3000)
        await say(agent, *"cdefgh")
    ends = [end["data"]["status"] for end in of_kind(ledger(workspace), "compaction_end")]
    assert ends.count("useless") <= 1
    assert len(model.summaries) <= 2


async def test_every_request_for_a_summary_can_be_proved_afterwards(workspace: Path) -> None:
    model = Windowed(2000)
    async with agent_of(workspace, model) as agent:
        await say(agent, *[f"{n}: {LONG}" for n in range(6)])
        tree = await agent.sessions("alice").tree("s1")
        begun = of_kind(ledger(workspace), "request_begin")
        proofs = [(await tree.context_at(entry["id"])).exact for entry in begun]
    assert {entry["purpose"] for entry in begun} == {"execute", "summarize"}
    assert proofs == [True] * len(begun)


@pytest.mark.parametrize("name", ["history.json", "history-with-old-orphan.json"])
@pytest.mark.parametrize("keep", range(5, 150, 12))
async def test_every_cut_by_tokens_is_a_safe_one(workspace: Path, shared: Path, name: str, keep: int) -> None:
    case = json.loads((shared / "cases/B06" / name).read_text())
    safe = json.loads((shared / "cases/B06/expected.json").read_text())["safe_cuts"][name]
    model = Windowed(100_000)
    config = CompactionConfig(**QUIET, keep_tokens=keep, trigger_tokens=keep + 1)
    async with agent_of(workspace, model, compaction=config) as agent:
        await agent.call(messages_of_case(case), ALICE)
    [request] = model.requests
    for sent in [request, *model.summaries]:
        assert_pair_complete(sent)
        assert "left over" not in str(shown(sent))
    first_kept = shown(request)[1 if of_kind(ledger(workspace), "compaction") else 0][1]
    assert next(n for n, item in enumerate(case) if item.get("text") == first_kept) in safe
    assert not asks_for_summary(request)


async def test_an_open_turn_too_large_is_listed_where_nothing_is_to_be_summarised(workspace: Path) -> None:
    model = Windowed(2500, digging(6), declares=True)
    config = CompactionConfig(mode="discard")
    async with agent_of(workspace, model, dig, compaction=config) as agent:
        assert (await agent.call("Dig.", ALICE)).text == "the bottom"
    assert model.summaries == []
    assert "did: dig" in of_kind(ledger(workspace), "compaction")[0]["summary"]


async def test_the_closing_request_at_the_step_limit_is_made_to_fit_too(workspace: Path) -> None:
    model = Windowed(
        2500, lambda request: call_of("dig", n=1) if "limit of steps" not in str(shown(request)) else "so far"
    )
    async with agent_of(workspace, model, dig, max_steps=4, compaction=()) as agent:
        reply = await agent.call("Dig.", ALICE)
    assert (reply.text, reply.meta) == ("so far", {"stepLimit": True})
