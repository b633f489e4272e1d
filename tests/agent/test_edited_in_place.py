"""A hook that edits in place what it was handed: that is its own, and no other call, agent or tenant sees it."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, BOB, agent_of, call_of, ledger

from harness import HarnessAgent, tool
from harness.errors import HookError
from harness.hooks import Event, PostActing, PostCall, PreActing, PreCall, PreReasoning
from harness.messages import Msg
from harness.testing import ScriptedModel


@tool
async def dig(places: list[str]) -> str:
    """Dig.

    Args:
        places: where
    """
    places.append("and here")
    return "mud"


def edited(value: Any) -> None:
    """Put something into every dict and list there is below."""
    if isinstance(value, dict):
        value["edited"] = "yes"
    if isinstance(value, list):
        value.append("edited")
    for inner in [*value.values()] if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        edited(inner)
    for name in getattr(type(value), "model_fields", getattr(value, "__dataclass_fields__", ())):
        if name != "scope":
            edited(getattr(value, name))


def script() -> ScriptedModel:
    return ScriptedModel([call_of("dig", places=["garden"]), "done", "later"])


async def conversation(workspace: Path, *hooks: Any) -> ScriptedModel:
    model = script()
    async with agent_of(workspace, model, dig, hooks=hooks) as agent:
        await agent.call(Msg.user("hi", meta={"a": {"b": ["c"]}}, id="m1"), ALICE)
        await agent.call(Msg.user("again", id="m2"), ALICE)
    return model


@pytest.mark.parametrize("kind", [PreReasoning, PreActing, PostActing, PostCall, PreCall])
async def test_what_one_agents_hook_edits_no_other_agent_or_tenant_sees(workspace: Path, kind: type[Event]) -> None:
    class Edits:
        events = (kind,)

        def on_event(self, event: Event) -> None:
            edited(event)

    await conversation(workspace, Edits())
    model = ScriptedModel(["hello"])
    async with agent_of(workspace, model, dig) as agent:
        await agent.call("hi", BOB)
    assert "edited" not in repr(model.requests[0])


@pytest.mark.parametrize("kind", [PreReasoning, PreActing, PostCall])
async def test_the_model_is_shown_later_what_the_ledger_has(workspace: Path, kind: type[Event]) -> None:
    class Edits:
        events = (kind,)

        def on_event(self, event: Event) -> None:
            edited(event)

    model = await conversation(workspace, Edits())
    logged = {entry["message"]["id"]: entry["message"] for entry in ledger(workspace) if entry["type"] == "message"}
    for message in model.requests[-1].messages:
        assert message.to_dict()["content"] == logged[message.id]["content"]
    uses = [use for message in model.requests[-1].messages for use in message.tool_uses]
    assert [use.input for use in uses] == [{"places": ["garden"]}]


async def test_what_the_agent_and_the_caller_gave_stays_what_it_was(workspace: Path) -> None:
    mine, options = Msg.user("hi", meta={"a": {"b": ["c"]}}), {"a": [1]}
    model, seen = ScriptedModel(["one", "two"]), list[Any]()

    def edits_all(event: Event) -> None:
        seen.extend([repr(event.options)] if isinstance(event, PreReasoning) else [])
        edited(event)

    builder = HarnessAgent.builder().name("notes").workspace(workspace).model(model).hook(edits_all)
    async with builder.model_options(nested=options).build() as agent:
        replies = [await agent.call(mine, ALICE), await agent.call(mine, BOB)]
    assert (mine.meta, options) == ({"a": {"b": ["c"]}}, {"a": [1]})
    assert "edited" not in repr(replies)
    assert seen == [repr({"nested": {"a": [1]}})] * 2


@pytest.mark.parametrize("field", ["tools", "options"])
async def test_what_no_request_can_hold_is_the_hooks_error_and_ends_no_other_call(workspace: Path, field: str) -> None:
    async def spoils(event: PreReasoning) -> None:
        place: Any = event.options if field == "options" else event.tools[0].parameters
        place["x"] = object()

    async with agent_of(workspace, "offline", dig, hooks=[spoils]) as agent:
        with pytest.raises(HookError, match=rf"spoils .* PreReasoning\.{field}"):
            await agent.call("hi", ALICE)
    model = ScriptedModel(["hello"])
    async with agent_of(workspace, model, dig) as agent:
        assert (await agent.call("hi", BOB)).text == "hello"
