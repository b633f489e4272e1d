"""Calls without a result (B08): each gets one that is marked as made up, before the next request, once."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, agent_of, assert_pair_complete, call_of, ledger, logged, messages_of_case, of_kind, shown

from harness.agent import open_session
from harness.hooks import PostReasoning
from harness.messages import Msg, ToolResult, ToolUse
from harness.testing import ScriptedModel

CHILD = """
import asyncio, os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from agentkit import ALICE, agent_of
from harness.messages import ToolUse
from harness.testing import ScriptedModel

async def quick():
    return "quick result"

async def deadly():
    while b"quick result" not in (Path(sys.argv[1]) / "tenants/alice/agents/notes/sessions/s1.log.jsonl").read_bytes():
        await asyncio.sleep(0.001)
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    calls = [ToolUse(id=f"c{n}", name=name) for n, name in enumerate(["deadly", "quick", "deadly"])]
    model = ScriptedModel([["Working.", *calls]])
    await agent_of(Path(sys.argv[1]), model, quick, deadly).call("hi", ALICE)

asyncio.run(main())
"""


async def test_the_case_of_three_calls_and_one_result(workspace: Path, shared: Path) -> None:
    case = json.loads((shared / "cases/B08/dangling.json").read_text())
    expected = json.loads((shared / "cases/B08/expected.json").read_text())["outbound"]
    model = ScriptedModel(["Only B."])
    async with agent_of(workspace, model) as agent:
        await agent.call(messages_of_case(case), ALICE)
    [request] = model.requests
    assert_pair_complete(request)
    assert [message.role for message in request.messages] == expected["roles"]
    results = request.messages[2].tool_results
    assert [result.id for result in results] == expected["result_ids_after_call_message"]
    assert [result.id for result in results if result.synthetic] == expected["synthetic"]
    assert [result.is_error for result in results] == [True, False, True]
    assert results[1].text == expected["d2_text"]


async def interrupted(workspace: Path) -> None:
    """A turn of two calls, one of which got its result before the call was stopped."""
    there = asyncio.Event()

    async def quick() -> str:
        return "quick result"

    async def slow() -> str:
        while ("tool", "tool", "quick result") not in logged(workspace):
            await asyncio.sleep(0.001)
        there.set()
        await asyncio.Event().wait()
        return "never"

    calls = [ToolUse(id="c1", name="slow"), ToolUse(id="c2", name="quick")]
    async with agent_of(workspace, ScriptedModel([calls]), quick, slow) as agent:
        async with agent.call("hi", ALICE):
            await there.wait()


async def go_on(workspace: Path, prompt: str = "again") -> ScriptedModel:
    open_session._cache._open.clear()
    model = ScriptedModel(["well again"])
    async with agent_of(workspace, model) as agent:
        await agent.call(prompt, ALICE)
    return model


async def test_what_a_stopped_call_lacks_is_made_up_and_what_it_has_is_kept(workspace: Path) -> None:
    await interrupted(workspace)
    model = await go_on(workspace)
    assert_pair_complete(model.requests[0])
    made_up, real = model.requests[0].messages[2].tool_results
    assert (made_up.id, made_up.is_error, made_up.synthetic) == ("c1", True, "interrupted")
    assert "did not finish" in made_up.text
    assert (real.id, real.text, real.is_error, real.synthetic) == ("c2", "quick result", False, None)


async def test_what_is_made_up_is_logged_when_it_is_sent_and_only_once(workspace: Path) -> None:
    await interrupted(workspace)
    assert [via for via, _, _ in logged(workspace)] == ["user", "model", "tool"]
    for n in range(10):
        await go_on(workspace, f"again {n}")
    assert [via for via, _, _ in logged(workspace)] == [
        "user",
        "model",
        "tool",
        "repair",
        "repair",
        *["user", "model"] * 10,
    ]
    repairs = [entry["message"] for entry in of_kind(ledger(workspace), "message") if entry["via"] == "repair"]
    assert [block.get("synthetic") for message in repairs for block in message["content"]] == ["interrupted", None]
    assert repairs[1]["content"] == [{"type": "text", "text": "[stopped]"}]


async def test_looking_at_an_interrupted_session_adds_nothing(workspace: Path) -> None:
    await interrupted(workspace)
    before = ledger(workspace)
    open_session._cache._open.clear()
    async with agent_of(workspace, ScriptedModel()) as agent:
        for _ in range(10):
            tree = await agent.sessions("alice").tree("s1")
            assert [call.id for call in tree.view().open_calls] == ["c1"]
            await agent.sessions("alice").history("s1")
            await agent.sessions("alice").list()
    assert ledger(workspace) == before


def test_killed_between_call_and_result_the_session_goes_on(workspace: Path, root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(workspace), str(Path(__file__).parent)],
        env={**os.environ, "PYTHONPATH": str(root)},
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    model = asyncio.run(go_on(workspace))
    assert_pair_complete(model.requests[0])
    results = model.requests[0].messages[2].tool_results
    assert [(result.id, result.synthetic) for result in results] == [
        ("c0", "interrupted"), ("c1", None), ("c2", "interrupted"),
    ]  # fmt: skip
    assert results[1].text == "quick result"
    assert shown(model.requests[0])[-1] == ("user", "again")


# ---- the line that closes a turn


async def test_a_turn_that_was_stopped_is_closed_by_one_line(workspace: Path) -> None:
    from harness.errors import ModelRejected

    model = ScriptedModel([ModelRejected("no"), ModelRejected("no"), "well again"])
    async with agent_of(workspace, model) as agent:
        for prompt in ("one", "two"):
            with pytest.raises(ModelRejected):
                await agent.call(prompt, ALICE)
        await agent.call("three", ALICE)
    assert shown(model.requests[2]) == [
        ("user", "one"), ("assistant", "[stopped]"), ("user", "two"), ("assistant", "[stopped]"), ("user", "three"),
    ]  # fmt: skip


async def test_a_turn_that_ended_by_itself_gets_no_such_line(workspace: Path) -> None:
    model = ScriptedModel(["one", "two"])
    async with agent_of(workspace, model) as agent:
        await agent.call("a", ALICE)
        await agent.call("b", ALICE)
    assert "[stopped]" not in str(shown(model.requests[1]))
    assert [via for via, _, _ in logged(workspace)] == ["user", "model", "user", "model"]


async def test_a_user_who_says_stopped_is_not_taken_for_that_line(workspace: Path) -> None:
    model = ScriptedModel(["[stopped]", "two"])
    async with agent_of(workspace, model) as agent:
        await agent.call("[stopped]", ALICE)
        assert (await agent.call("[stopped]", ALICE, idempotency_key="k")).text == "two"
    assert shown(model.requests[1]) == [("user", "[stopped]"), ("assistant", "[stopped]"), ("user", "[stopped]")]


async def test_a_call_that_raised_has_its_result_and_is_not_repaired(workspace: Path) -> None:
    def fail() -> str:
        raise ZeroDivisionError

    model = ScriptedModel([call_of("fail"), "done", "next"])
    async with agent_of(workspace, model, fail) as agent:
        await agent.call("hi", ALICE)
        await agent.call("and?", ALICE)
    assert "repair" not in [via for via, _, _ in logged(workspace)]
    assert_pair_complete(model.requests[2])


async def test_results_that_the_caller_brings_himself_are_not_made_up(workspace: Path) -> None:
    calls = [ToolUse(id="c1", name="ask"), ToolUse(id="c2", name="ask")]
    model = ScriptedModel([calls, "thanks"])

    async def stop(event: PostReasoning) -> PostReasoning:
        return event.change(stop=bool(event.message.tool_uses))

    async with agent_of(workspace, model, hooks=[stop]) as agent:
        await agent.call("hi", ALICE)
        await agent.call([Msg.tool(ToolResult(id="c2", content="from the client")), Msg.user("go on")], ALICE)
    assert_pair_complete(model.requests[1])
    results = model.requests[1].messages[2].tool_results
    assert [(result.id, result.synthetic) for result in results] == [("c1", "interrupted"), ("c2", None)]
    assert results[1].text == "from the client"
