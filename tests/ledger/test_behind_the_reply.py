"""Model calls behind the reply stand in the ledger like all others."""

import asyncio
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, Held, agent_of, ledger, of_kind, sessions_folder, shown

from harness.errors import ModelRejected
from harness.messages import Usage
from harness.testing import ScriptedModel

USED = Usage(input=7, output=2)


async def test_a_flush_is_logged_with_its_purpose_and_cost_and_shown_to_nobody(workspace: Path) -> None:
    model = ScriptedModel(["one", "NONE", "two", "NONE"], usage=USED)
    async with agent_of(workspace, model, memory_flush=(), without="memory_maintenance") as agent:
        await agent.call("q1", ALICE)
        await asyncio.wait_for(_until(lambda: len(of_kind(ledger(workspace), "request_end")) == 2), 5)
        await agent.call("q2", ALICE)
        sessions = agent.sessions("alice")
    assert [entry["purpose"] for entry in of_kind(ledger(workspace), "request_begin")] == ["execute", "flush"] * 2
    asked = next(request for request in model.requests if request.messages[-1].text == "q2")
    assert shown(asked) == [("user", "q1"), ("assistant", "one"), ("user", "q2")]
    report = await sessions.usage("s1")
    assert (report.billed.requests, report.billed.input) == (4, 28)
    tree = await sessions.tree("s1")
    begun = of_kind(ledger(workspace), "request_begin")
    assert [(await tree.context_at(entry["id"])).exact for entry in begun] == [True] * 4
    assert len({entry["turnId"] for entry in begun}) == 2
    assert (await sessions.verify("s1")).findings == ()


async def _until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0.01)


async def test_the_next_call_does_not_wait_for_a_flush(workspace: Path) -> None:
    held = Held("NONE")
    model = ScriptedModel(["one", held, "two", "NONE"])
    async with agent_of(workspace, model, memory_flush=(), without="memory_maintenance") as agent:
        await agent.call("q1", ALICE)
        await held.asked.wait()
        assert (await asyncio.wait_for(agent.call("q2", ALICE), 5)).text == "two"
        held.let_go.set()
    ends = of_kind(ledger(workspace), "request_end")
    assert [end["status"] for end in ends] == ["completed"] * 4


async def test_a_session_that_is_deleted_meanwhile_does_not_come_back(workspace: Path) -> None:
    held = Held("NONE")
    async with agent_of(
        workspace, ScriptedModel(["one", held]), memory_flush=(), without="memory_maintenance"
    ) as agent:
        await agent.call("q1", ALICE)
        await held.asked.wait()
        await agent.sessions("alice").delete("s1")
        held.let_go.set()
    left = [path.name for path in sessions_folder(workspace).iterdir() if path.name.startswith("s1")]
    assert left == ["s1.head.json"]  # the word that it was deleted; nothing of what was said


async def test_a_flush_that_fails_is_logged_as_failed(workspace: Path, caplog: Any) -> None:
    model = ScriptedModel(["one", ModelRejected("no")])
    async with agent_of(workspace, model, memory_flush=(), without="memory_maintenance") as agent:
        await agent.call("q1", ALICE)
    ends = of_kind(ledger(workspace), "request_end")
    assert [end["status"] for end in ends] == ["completed", "failed"]
    assert "memory flush" in caplog.text
