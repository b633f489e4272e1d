"""Conversations of our own for the viewer's tests: with a tool call, a compaction, two users."""

from collections.abc import Callable
from pathlib import Path

from harness import CompactionConfig, HarnessAgent, RuntimeContext, tool
from harness.messages import Usage
from harness.testing import ScriptedModel


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


def agent_in(workspace: Path, *steps: object) -> HarnessAgent:
    model = ScriptedModel(steps, context_window=8_000, usage=Usage(input=300, cache_read=900, output=40))
    config = CompactionConfig(trigger_messages=6, keep_messages=2)
    return (
        HarnessAgent.builder().name("notes").model(model).workspace(workspace).tool(weather).compaction(config).build()
    )


async def compacted(workspace: Path) -> Path:
    """Four turns of alice, one with a tool, and a compaction before the third; gives the ledger's place."""
    call = ScriptedModel.tool_call("weather", city="Oslo")
    async with agent_in(workspace, "Hello Alice.", call, "Sunny.", "ALICE TOLD US HER NAME", "Noted.", "Bye.") as agent:
        for words in ("I am Alice.", "Weather in Oslo?", "The word is blue-fox.", "Bye"):
            await agent.call(words, RuntimeContext(session_id="monday", user_id="alice"))
    return ledger_in(workspace)


def ledger_in(folder: Path) -> Path:
    return next(folder.rglob("monday.log.jsonl"))


def edit(file: Path, change: Callable[[bytes], bytes]) -> None:
    file.write_bytes(change(file.read_bytes()))
