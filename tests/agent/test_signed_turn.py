"""Sealed reasoning goes back to its maker as it was made, or not at all (B17, B37)."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, Held, agent_of, assert_pair_complete, ledger, of_kind

from harness.agent import open_session
from harness.hooks import CompactionConfig
from harness.messages import Block, Msg, Opaque, TextBlock, ThinkingBlock, ToolUse
from harness.models import ModelRequest
from harness.testing import ScriptedModel

MAKER = {"provider": "demo-signed", "name": "signer"}


def block_of(data: dict[str, Any], provider: str = "demo-signed") -> Block:
    """A block with the provider's own form of it sealed in, as an adapter makes it."""
    opaque = Opaque(provider=provider, model="signer", data=data)
    match data["type"]:
        case "thinking":
            return ThinkingBlock(text=data["thinking"], opaque=opaque)
        case "redacted_thinking":
            return ThinkingBlock(opaque=opaque)
        case "text":
            return TextBlock(text=data["text"], opaque=opaque)
        case _:
            return ToolUse(id=data["id"], name=data["name"], input=data["input"], opaque=opaque)


def sealed(request: ModelRequest) -> list[str]:
    """The sealed payloads of the turn that was signed, as text: key order and number forms show."""
    found = [message for message in request.messages if any(b.type == "thinking" for b in message.blocks)]
    assert len(found) <= 1
    return [json.dumps(block.opaque.data) for message in found for block in message.blocks if block.opaque]


@pytest.fixture
def case(shared: Path) -> list[dict[str, Any]]:
    return json.loads((shared / "cases/B17/signed-turn.json").read_bytes())["assistant_content"]


async def look(n: float, big: int) -> str:
    return "ok"


async def signed_turn(workspace: Path, case: list[dict[str, Any]], **options: Any) -> ScriptedModel:
    model = ScriptedModel([[block_of(data) for data in case], "Done."], **MAKER)
    async with agent_of(workspace, model, look, **options) as agent:
        await agent.call("Check it.", ALICE)
    open_session._cache._open.clear()
    return model


async def next_request(workspace: Path, **maker: str) -> ModelRequest:
    open_session._cache._open.clear()
    model = ScriptedModel(["And on."], **{**MAKER, **maker})
    async with agent_of(workspace, model, look) as agent:
        await agent.call("Go on.", ALICE)
    assert_pair_complete(model.requests[0])
    return model.requests[0]


async def test_within_the_turn_it_goes_back_equal_and_in_order(workspace: Path, case: list[dict[str, Any]]) -> None:
    model = await signed_turn(workspace, case)
    assert sealed(model.requests[1]) == [json.dumps(data) for data in case]
    assert model.requests[1].messages[-1].tool_results[0].text == "ok"


async def test_in_a_new_process_and_after_ten_rounds_it_is_still_equal(
    workspace: Path, case: list[dict[str, Any]]
) -> None:
    await signed_turn(workspace, case)
    for _ in range(10):
        assert sealed(await next_request(workspace)) == [json.dumps(data) for data in case]


def test_in_a_real_new_process_it_is_still_equal(workspace: Path, case: list[dict[str, Any]], root: Path) -> None:
    import asyncio

    asyncio.run(signed_turn(workspace, case))
    child = (
        "import asyncio, json, sys; from pathlib import Path; sys.path.insert(0, sys.argv[2])\n"
        "from test_signed_turn import next_request, sealed\n"
        "print(json.dumps(sealed(asyncio.run(next_request(Path(sys.argv[1]))))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", child, str(workspace), str(Path(__file__).parent)],
        env={"PYTHONPATH": str(root)}, capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    assert json.loads(done.stdout) == [json.dumps(data) for data in case]


async def test_after_a_compaction_that_keeps_the_turn_it_is_still_equal(
    workspace: Path, case: list[dict[str, Any]]
) -> None:
    early = ScriptedModel(["hello"], **MAKER)
    async with agent_of(workspace, early) as agent:
        await agent.call("hi", ALICE)
    await signed_turn(workspace, case)
    summariser = ScriptedModel(["SUMMARY"])
    config = CompactionConfig(trigger_messages=50, keep_messages=4, model=summariser)
    async with agent_of(workspace, ScriptedModel(), compaction=config) as agent:
        assert await agent.sessions("alice").compact("s1") is True
    request = await next_request(workspace)
    assert "SUMMARY" in request.messages[0].text
    assert sealed(request) == [json.dumps(data) for data in case]


async def test_after_an_interrupt_it_is_still_equal(workspace: Path, case: list[dict[str, Any]]) -> None:
    held = Held()
    model = ScriptedModel([[block_of(data) for data in case], held], **MAKER)
    async with agent_of(workspace, model, look) as agent:
        async with agent.call("Check it.", ALICE):
            await held.asked.wait()
    assert sealed(await next_request(workspace)) == [json.dumps(data) for data in case]


async def test_without_the_ledger_track_1_gives_it_back_equal(workspace: Path, case: list[dict[str, Any]]) -> None:
    import shutil

    await signed_turn(workspace, case)
    shutil.rmtree(workspace / "tenants/alice/agents/notes/sessions")
    assert sealed(await next_request(workspace)) == [json.dumps(data) for data in case]


@pytest.mark.parametrize("maker", [{"provider": "another"}, {"name": "another"}])
async def test_another_model_is_shown_no_reasoning_and_the_maker_gets_it_back_later(
    workspace: Path, case: list[dict[str, Any]], maker: dict[str, str]
) -> None:
    await signed_turn(workspace, case)
    request = await next_request(workspace, **maker)
    kinds = [block.type for message in request.messages for block in message.blocks]
    assert "thinking" not in kinds
    assert all(getattr(block, "opaque", None) is None for message in request.messages for block in message.blocks)
    assert sealed(await next_request(workspace)) == [json.dumps(data) for data in case]


async def test_blocks_that_cannot_be_sent_stay_in_the_log_only(workspace: Path, shared: Path) -> None:
    unsendable = json.loads((shared / "cases/B17/unsendable-blocks.json").read_bytes())
    answers = [
        Msg.assistant(block_of(data, provider=data.get("_from", "demo-signed")), f"answer {n}")
        for n, data in enumerate(unsendable)
    ]
    model = ScriptedModel(answers, **MAKER)
    async with agent_of(workspace, model) as agent:
        for n in range(len(answers)):
            await agent.call(f"prompt {n}", ALICE)
    request = await next_request(workspace)
    assert "thinking" not in [block.type for message in request.messages for block in message.blocks]
    logged = [
        block["opaque"]["data"]
        for entry in of_kind(ledger(workspace), "message")
        for block in entry["message"]["content"]
        if block["type"] == "thinking"
    ]
    assert logged == unsendable
