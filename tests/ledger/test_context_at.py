"""What the model saw at any request is worked out again, byte for byte, or it is said that it cannot be."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, agent_of, call_of, ledger, of_kind, sessions_folder, shown

from harness.agent import open_session
from harness.errors import ConfigError, ModelRejected
from harness.hooks import CompactionConfig, PreCall, PreReasoning
from harness.hooks.events import SystemPart
from harness.messages import Msg, ToolUse
from harness.testing import ScriptedModel
from harness.tools import tool


@tool
def look(n: int) -> str:
    """Look."""
    return "found " + "x" * (300_000 if n == 9 else n)


async def contexts(agent: Any, workspace: Path) -> list[Any]:
    tree = await agent.sessions("alice").tree("s1")
    return [await tree.context_at(entry["id"]) for entry in of_kind(ledger(workspace), "request_begin")]


def sent(model: ScriptedModel) -> list[list[dict[str, Any]]]:
    return [[message.to_dict() for message in request.messages] for request in model.requests]


async def test_main_and_side_requests_are_what_was_sent(workspace: Path) -> None:
    def hook(event: Any) -> Any:
        if isinstance(event, PreCall):
            return event.change(context=("it is monday",), system=(*event.system, SystemPart("more", "Be kind.")))
        if isinstance(event, PreReasoning) and event.step == 2:
            return event.change(additions=(Msg.user("quick"),))
        return None

    steps = [[call_of("look", n=1), call_of("look", n=9)], "one", "two", "SUMMARY", "three"]
    model = ScriptedModel(steps)
    options = {"compaction": CompactionConfig(7, 2), "system_prompt": "Be brief."}
    async with agent_of(workspace, model, look, hooks=[_Every(hook)], **options) as agent:
        for n in range(3):
            await agent.call(f"q{n}", ALICE)
        open_session._cache._open.clear()
        found = await contexts(agent, workspace)
    assert [context.exact for context in found] == [True] * 5
    assert [[*context.messages] for context in found] == sent(model)
    assert [context.purpose for context in found] == ["execute", "execute", "execute", "summarize", "execute"]
    for context, request in zip(found, model.requests, strict=True):
        assert "\n\n".join(part["text"] for part in context.system) == request.system
        assert [item["schema"]["name"] for item in context.tools] == [spec.name for spec in request.tools] == ["look"]
        assert (context.provider, context.model, context.digest) == ("scripted", "scripted", context.logged)


class _Every:
    def __init__(self, answer: Any) -> None:
        self.on_event = answer


async def test_what_another_provider_was_shown_is_its_own_version(workspace: Path) -> None:
    odd = ToolUse(id="call|1.é", name="look", input={"n": 1})
    first = ScriptedModel([[odd], ModelRejected("no")], name="a", provider="p")
    second = ScriptedModel(["done"], name="b", provider="q")
    async with agent_of(workspace, first, look, fallback_models=second) as agent:
        await agent.call("hi", ALICE)
        found = await contexts(agent, workspace)
    assert [(context.provider, context.exact) for context in found] == [("p", True), ("p", True), ("q", True)]
    assert [[*context.messages] for context in found] == [*sent(first), *sent(second)]
    assert found[1].messages[1]["content"][0]["id"] == "call|1.é"
    assert found[2].messages[1]["content"][0]["id"] != "call|1.é"


async def test_any_line_of_a_request_will_do(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["one"])) as agent:
        call = agent.call("hi", ALICE)
        await call
        tree = await agent.sessions("alice").tree("s1")
        assert [m["content"][0]["text"] for m in (await tree.context_at(call.entry_id)).messages] == ["hi"]
        for entry_id in ("nowhere", call.turn_id, ledger(workspace)[0]["id"]):
            with pytest.raises(ConfigError, match="belongs to no model request"):
                await tree.context_at(entry_id)


@pytest.mark.parametrize(
    "change", [(b'"q0"', b'"q1"'), (b"Be brief.", b"Be brisk."), (b'"model":"scripted"', b'"model":"other"')]
)
async def test_a_changed_ledger_is_not_exact(workspace: Path, change: tuple[bytes, bytes]) -> None:
    async with agent_of(workspace, ScriptedModel(["one"]), system_prompt="Be brief.") as agent:
        await agent.call("q0", ALICE)
        path = sessions_folder(workspace) / "s1.log.jsonl"
        data = path.read_bytes()
        assert change[0] in data
        path.write_bytes(data.replace(*change))
        assert [context.exact for context in await contexts(agent, workspace)] == [False]


async def test_a_missing_content_is_not_exact_and_raises_nothing(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel([[call_of("look", n=9)], "one"]), look) as agent:
        await agent.call("q0", ALICE)
        for path in (sessions_folder(workspace) / "files").glob("??/*"):
            path.unlink()
        assert [context.exact for context in await contexts(agent, workspace)] == [True, False]


async def test_a_text_that_an_earlier_binding_wrote_is_found(workspace: Path) -> None:
    for prompt in ("One.", "Two.", "One."):
        async with agent_of(workspace, ScriptedModel(["done"]), look, system_prompt=prompt) as agent:
            await agent.call("hi", ALICE)
            found = await contexts(agent, workspace)
    assert [context.system[0]["text"] for context in found] == ["One.", "Two.", "One."]
    assert all(context.exact for context in found)


async def test_a_prompt_of_any_size_and_an_image_alone_are_proved_too(workspace: Path) -> None:
    from harness.messages import Media, MediaBlock

    image = Msg.user(MediaBlock(type="image", media=Media.from_bytes(b"\x89PNG" * 99, "image/png")))
    model = ScriptedModel(["one", "two", "three"])
    async with agent_of(workspace, model) as agent:
        await agent.call(image, ALICE)
        await agent.call("x" * 2_000_000, ALICE)
        open_session._cache._open.clear()
        await agent.call("on", ALICE)
        found = await contexts(agent, workspace)
    assert [context.exact for context in found] == [True] * 3
    assert [len(context.messages) for context in found] == [1, 3, 5]
    turns = {entry["turnId"] for entry in of_kind(ledger(workspace), "message")}
    assert len(turns) == 3
    assert shown(model.requests[2])[2][1] == "x" * 2_000_000
