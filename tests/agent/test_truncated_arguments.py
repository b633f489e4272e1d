"""Long arguments of old tool calls are cut in what the model sees, and nowhere else."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, agent_of, assert_pair_complete, call_of, ledger, logged, of_kind

from harness.agent import open_session
from harness.hooks import CompactionConfig, TruncateArgsConfig
from harness.models import ModelRequest
from harness.testing import ScriptedModel
from harness.tools import tool

LONG = "a long letter " * 300
RULE = TruncateArgsConfig(trigger_messages=6, keep_messages=3)
CONFIG = CompactionConfig(trigger_messages=0, truncate_args=RULE)


@tool
def send(letter: str, to: list[str]) -> str:
    """Send."""
    return "sent"


def arguments(request: ModelRequest) -> list[str]:
    return [use.input["letter"] for message in request.messages for use in message.tool_uses]


def script() -> list[Any]:
    return [call_of("send", letter=LONG, to=["bob", LONG]), "done", "one", call_of("send", letter=LONG, to=[]), "two"]


async def talk(workspace: Path, *texts: str, steps: list[Any], config: CompactionConfig = CONFIG) -> ScriptedModel:
    model = ScriptedModel(steps)
    async with agent_of(workspace, model, send, compaction=config) as agent:
        for text in texts:
            await agent.call(text, ALICE)
    return model


async def test_old_ones_are_cut_and_new_ones_stay(workspace: Path) -> None:
    model = await talk(workspace, "send it", "and?", "again", steps=script())
    assert [len(text) for text in arguments(model.requests[2])] == [len(LONG)]
    assert arguments(model.requests[3]) == ["a long letter a long...(argument truncated)"]
    assert arguments(model.requests[4]) == ["a long letter a long...(argument truncated)", LONG]
    for request in model.requests:
        assert_pair_complete(request)


async def test_arguments_within_lists_are_cut_too_and_short_ones_stay(workspace: Path) -> None:
    model = await talk(workspace, "send it", "and?", "again", steps=script())
    [use] = [use for message in model.requests[3].messages for use in message.tool_uses]
    assert use.input["to"] == ["bob", "a long letter a long...(argument truncated)"]


async def test_the_ledger_keeps_them_and_can_prove_what_was_shown(workspace: Path) -> None:
    await talk(workspace, "send it", "and?", "again", steps=script())
    assert LONG in str(logged(workspace))
    async with agent_of(workspace, ScriptedModel([])) as agent:
        tree = await agent.sessions("alice").tree("s1")
        begun = of_kind(ledger(workspace), "request_begin")
        assert [(await tree.context_at(entry["id"])).exact for entry in begun] == [True] * 5
        assert (await agent.sessions("alice").verify("s1")).ok


async def test_a_new_process_shows_the_same_and_says_it_once(workspace: Path) -> None:
    await talk(workspace, "send it", "and?", "again", steps=script())
    open_session._cache._open.clear()
    model = await talk(workspace, "more", steps=["three"])
    assert arguments(model.requests[0])[0] == "a long letter a long...(argument truncated)"
    cuts = of_kind(ledger(workspace), "arguments_cut")
    assert len(cuts) == len({cut["data"]["lastTurn"] for cut in cuts})
    assert "arguments" in [entry["data"]["cause"] for entry in of_kind(ledger(workspace), "prefix_changed")]


async def test_it_stays_so_behind_a_compaction_that_keeps_the_turn(workspace: Path) -> None:
    config = CompactionConfig(trigger_messages=0, keep_messages=8, trigger_turns=3, truncate_args=RULE)
    steps = ["nothing", *script()[:3], "SUMMARY", *script()[3:]]
    model = await talk(workspace, "zero", "send it", "and?", "again", steps=steps, config=config)
    assert len(of_kind(ledger(workspace), "compaction")) == 1
    assert arguments(model.requests[-1])[0] == "a long letter a long...(argument truncated)"


async def test_tokens_set_it_off_too(workspace: Path) -> None:
    rule = TruncateArgsConfig(trigger_messages=0, trigger_tokens=500, keep_messages=3)
    config = CompactionConfig(trigger_messages=0, truncate_args=rule)
    model = await talk(workspace, "send it", "and?", steps=script()[:3], config=config)
    assert arguments(model.requests[2]) == ["a long letter a long...(argument truncated)"]


async def test_nothing_is_cut_unless_asked_for(workspace: Path) -> None:
    model = await talk(workspace, "send it", "and?", "again", steps=script(), config=CompactionConfig())
    assert arguments(model.requests[4]) == [LONG, LONG]
