"""Conversations of our own for the viewer's tests: with a tool call, a compaction, two users."""

from collections.abc import Callable
from pathlib import Path

from harness import CompactionConfig, HarnessAgent, RuntimeContext, WorkingSet, tool
from harness.messages import ToolUse, Usage
from harness.models import ModelRequest
from harness.sessions import SessionTree
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


async def chosen(workspace: Path) -> Path:
    """Forty turns, of which the last request shows some in full, some by a line, the first behind a summary."""

    def answer(request: ModelRequest) -> str:
        words = request.messages[-1].text
        return f"heard {words[:7]}" + " and so on" * 60 if words.startswith("turn ") else "SUMMARY OF THE FIRST"

    model = ScriptedModel([answer] * 80, context_window=5_000)
    builder = (
        HarnessAgent.builder()
        .name("notes")
        .model(model)
        .workspace(workspace)
        .working_set(WorkingSet(max_full_tokens=1_000))
    )
    async with builder.build() as agent:
        for number in range(1, 41):
            await agent.call(
                f"turn {number} " + "please look " * 25, RuntimeContext(session_id="monday", user_id="alice")
            )
    return ledger_in(workspace)


async def branched(workspace: Path, words: str = "This goes nowhere.") -> Path:
    """A conversation that went on from the end of its first turn; what came after that was left."""
    ctx = RuntimeContext(session_id="monday", user_id="alice")
    async with agent_in(workspace, "Hello.", "Left behind.", "Kept.") as agent:
        await agent.call("I am Alice.", ctx)
        sessions = agent.sessions("alice")
        [first] = await sessions.branches("monday")
        await agent.call(words, ctx)
        await sessions.branch("monday", first.leaf)
        await agent.call("This goes on.", ctx)
    return ledger_in(workspace)


async def delegated(workspace: Path) -> Path:
    """Alice's session whose tool call started a session `child`, after it was approved."""
    started = ToolUse(id="call-1", name="weather", input={"city": "Oslo"})
    async with agent_in(workspace, "There are 42.", started, "42 files.") as agent:
        await agent.call("Count the files.", RuntimeContext(session_id="child", user_id="alice"))
        await agent.call("How many files?", RuntimeContext(session_id="monday", user_id="alice"))
    file = ledger_in(workspace)
    tree = SessionTree(file.parent, "monday", agent="notes", namespace=("alice",))
    async with tree.writing():
        tree.add("event", {"kind": "approval", "data": {"toolCallId": "call-1", "decision": "allowed by alice"}})
        tree.add("event", {"kind": "subagent", "data": {"session": "child", "toolCallId": "call-1"}})
    return file


def ledger_in(folder: Path) -> Path:
    return next(folder.rglob("monday.log.jsonl"))


def edit(file: Path, change: Callable[[bytes], bytes]) -> None:
    file.write_bytes(change(file.read_bytes()))
