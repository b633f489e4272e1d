"""An agent that comes back with other tools, prompt or model goes on with its sessions (B62)."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, agent_of, assert_pair_complete, call_of, ledger, of_kind, shown

from harness.agent import open_session
from harness.hooks import CompactionConfig
from harness.testing import ScriptedModel
from harness.tools import tool


@tool(name="alpha")
async def alpha() -> str:
    """Only the first agent has it."""
    return "alpha result"


@tool(name="beta")
async def beta(n: int) -> str:
    """Both have it."""
    return f"beta {n}"


@tool(name="beta")
async def other_beta(word: str) -> str:
    """Both have it, in another form."""
    return f"beta {word}"


@tool(name="gamma")
async def gamma() -> str:
    """Only the second agent has it."""
    return "gamma result"


async def with_first_tools(workspace: Path) -> None:
    model = ScriptedModel([[call_of("alpha"), call_of("beta", n=1)], "done"])
    async with agent_of(workspace, model, alpha, beta, system_prompt="The first prompt.") as agent:
        await agent.call("hi", ALICE)
    open_session._cache._open.clear()


@pytest.mark.parametrize("compacted", [False, True])
async def test_a_call_of_a_tool_that_is_gone_gets_an_ordinary_result(workspace: Path, compacted: bool) -> None:
    await with_first_tools(workspace)
    config = CompactionConfig(trigger_messages=50, keep_messages=0, model=ScriptedModel(["SUMMARY"]))
    model = ScriptedModel([[call_of("alpha"), call_of("beta", word="x"), call_of("gamma")], "done"])
    async with agent_of(
        workspace, model, other_beta, gamma, system_prompt="The second prompt.", compaction=config
    ) as agent:
        if compacted:
            assert await agent.sessions("alice").compact("s1") is True
        assert (await agent.call("again", ALICE)).text == "done"
    results = model.requests[1].messages[-1].tool_results
    assert [(result.text, result.is_error) for result in results] == [
        ("Error: alpha is not available: there is no tool of that name; available: beta, gamma", True),
        ("beta x", False),
        ("gamma result", False),
    ]
    for request in model.requests:
        assert_pair_complete(request)


async def test_old_calls_stay_in_history_as_they_were(workspace: Path) -> None:
    await with_first_tools(workspace)
    model = ScriptedModel(["done"])
    async with agent_of(workspace, model, other_beta, gamma) as agent:
        await agent.call("again", ALICE)
    assert shown(model.requests[0])[1:3] == [
        ("assistant", 'alpha({}) beta({"n": 1})'), ("tool", "alpha result beta 1"),
    ]  # fmt: skip


async def test_the_present_agent_decides_prompt_and_tools_and_the_ledger_records_the_change(workspace: Path) -> None:
    await with_first_tools(workspace)
    model = ScriptedModel(["done"], name="newer")
    async with agent_of(workspace, model, other_beta, gamma, system_prompt="The second prompt.") as agent:
        await agent.call("again", ALICE)
    assert model.requests[0].system == "The second prompt."
    assert [spec.name for spec in model.requests[0].tools] == ["beta", "gamma"]
    first, second = of_kind(ledger(workspace), "binding")
    assert [[item["name"] for item in entry["tools"]] for entry in (first, second)] == [
        ["alpha", "beta"],
        ["beta", "gamma"],
    ]
    assert first["tools"][1]["sha256"] != second["tools"][0]["sha256"]
    assert [entry["model"] for entry in (first, second)] == ["scripted", "newer"]
    assert ledger(workspace)[0]["model"] == "scripted"


async def test_the_same_agent_again_logs_no_second_binding(workspace: Path) -> None:
    for _ in range(3):
        open_session._cache._open.clear()
        async with agent_of(workspace, ScriptedModel(["done"]), alpha, system_prompt="The prompt.") as agent:
            await agent.call("hi", ALICE)
    assert len(of_kind(ledger(workspace), "binding")) == 1


async def test_a_text_that_was_logged_once_is_not_logged_again(workspace: Path) -> None:
    for prompt in ("One.", "Two.", "One."):
        async with agent_of(workspace, ScriptedModel(["done"]), alpha, system_prompt=prompt) as agent:
            await agent.call("hi", ALICE)
    bindings = of_kind(ledger(workspace), "binding")
    assert [entry["system"][0].get("text") for entry in bindings] == ["One.", "Two."]
    assert [bool(entry["tools"][0].get("schema")) for entry in bindings] == [True, False]
    begun = [entry["binding"] for entry in of_kind(ledger(workspace), "request_begin")]
    assert begun == [bindings[0]["id"], bindings[1]["id"], bindings[0]["id"]]
