"""State modules, hooks, tools and models that raise what they like: no answer is lost, and the part is named."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, agent_of, call_of, ledger, logged, of_kind

from harness import tool
from harness.errors import ConfigError, HookError, ModelError, ModelUnavailable, ToolError
from harness.hooks import (
    Error,
    PostCall,
    PostReasoning,
    PreActing,
    PreCall,
    PreReasoning,
    PreSummary,
    ReasoningChunk,
    SystemPart,
)
from harness.models import ToolSpec
from harness.sessions import InMemorySession
from harness.testing import ScriptedModel
from harness.text import error_text, said


class Mute(Exception):
    """An error that cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class MuteTool(ToolError):
    __str__ = Mute.__str__


class MuteModel(ModelUnavailable):
    __str__ = Mute.__str__


def raising(error: Exception) -> Any:
    def save(_: Any = None) -> Any:
        raise error

    return save


def module(save: Any) -> Any:
    """A state module whose `save` is this."""

    class Counter:
        name = "counter"

        def __init__(self) -> None:
            self.value: Any = None

        def save(self) -> Any:
            return save(self.value)

        def load(self, value: Any) -> None:
            self.value = value

    return Counter


NO_VALUES = [
    lambda _: ["a", "b"],
    lambda _: [["a", 1]],
    lambda _: "text",
    lambda _: 5,
    lambda _: {1, 2},
    raising(ValueError("mine")),
    raising(Mute()),
]


@pytest.mark.parametrize("store", ["beside", "elsewhere"])
@pytest.mark.parametrize("save", NO_VALUES)
async def test_a_state_module_that_gives_no_value_costs_a_warning_that_names_it_and_no_answer(
    workspace: Path, save: Any, store: str
) -> None:
    options: dict[str, Any] = {"session": InMemorySession()} if store == "elsewhere" else {}
    async with agent_of(workspace, ScriptedModel(["zero"]), state_module=module(lambda _: {"n": 1}), **options) as good:
        await good.call("first", ALICE)
    async with agent_of(workspace, ScriptedModel(["one"]), state_module=module(save), **options) as agent:
        call = agent.call("a", ALICE)
        assert (await call).text == "one"
        assert call.entry_id is not None
        assert [warning[:43] for warning in call.warnings] == ["the state module 'counter' was not stored, "]
    loaded: list[Any] = []
    async with agent_of(workspace, ScriptedModel(["two"]), state_module=module(loaded.append), **options) as after:
        await after.call("b", ALICE)
    assert loaded[0] == {"n": 1}
    assert [text for _, _, text in logged(workspace)] == ["first", "zero", "a", "one", "b", "two"]


async def test_a_turn_that_is_stopped_is_stored_though_a_state_module_gives_no_value(workspace: Path) -> None:
    model = ScriptedModel([ZeroDivisionError("the model")])
    agent = agent_of(workspace, model, state_module=module(raising(ValueError("mine"))))
    with pytest.raises(ModelError):
        await agent.call("a", ALICE)
    assert [entry["data"]["reason"] for entry in of_kind(ledger(workspace), "abort")] == ["ModelError"]


def options(event: PreReasoning) -> Any:
    return event.change(options={"stop": {"a", "b"}})


def more_options(event: PreSummary) -> Any:
    return event.change(options={"seed": 2**70})


def schema(event: PreReasoning) -> Any:
    return event.change(tools=(ToolSpec("x", "d", {"enum": {1, 2}}),))


def no_schema(event: PreReasoning) -> Any:
    nothing: Any = None
    return event.change(tools=(ToolSpec("x", "d", nothing),))


def part_name(event: PreCall) -> Any:
    return event.change(system=(SystemPart("p\ud800", "text"),))


def part_text(event: PreCall) -> Any:
    number: Any = 5
    return event.change(system=(SystemPart("p", number),))


@pytest.mark.parametrize("hook", [options, more_options, schema, no_schema, part_name, part_text])
async def test_what_a_hook_gives_that_cannot_be_stored_ends_the_call_in_an_error_that_names_the_hook(
    workspace: Path, hook: Any
) -> None:
    @tool
    def look() -> str:
        """Look at something."""
        return "seen"

    async with agent_of(workspace, ScriptedModel([call_of("look")]), look, hooks=[hook], max_steps=1) as agent:
        with pytest.raises(HookError, match=rf"hook {hook.__name__} .*test_strange_parts"):
            await agent.call("a", ALICE)
    assert logged(workspace)[0] == ("user", "user", "a")


@pytest.mark.parametrize("kind", [PostCall, ReasoningChunk, Error])
async def test_an_error_without_a_text_is_told_by_its_type_where_a_hook_only_listens(
    workspace: Path, kind: Any
) -> None:
    class Listener:
        events = (kind,)

        def on_event(self, event: Any) -> None:
            raise Mute

    step = ZeroDivisionError("the model") if kind is Error else "one"
    async with agent_of(workspace, ScriptedModel([step]), hooks=[Listener()]) as agent:
        call = agent.call("a", ALICE)
        if kind is Error:
            with pytest.raises(ModelError):
                await call
        else:
            assert (await call).text == "one"
    assert ["Mute" in warning for warning in call.warnings] == [True]


@pytest.mark.parametrize("kind", [PreCall, PreReasoning, PostReasoning, PreActing])
async def test_an_error_without_a_text_is_told_by_its_type_where_a_hook_may_change(workspace: Path, kind: Any) -> None:
    class Changer:
        events = (kind,)

        def on_event(self, event: Any) -> None:
            raise Mute

    @tool
    def look() -> str:
        """Look at something."""
        return "seen"

    async with agent_of(workspace, ScriptedModel([call_of("look")]), look, hooks=[Changer()]) as agent:
        with pytest.raises(HookError, match="raised Mute on"):
            await agent.call("a", ALICE)
    assert logged(workspace)[0] == ("user", "user", "a")


@pytest.mark.parametrize("error", [Mute(), MuteTool()])
async def test_a_tools_error_without_a_text_is_a_result_like_another(workspace: Path, error: Exception) -> None:
    @tool
    def look() -> str:
        """Look at something."""
        raise error

    async with agent_of(workspace, ScriptedModel([call_of("look"), "one"]), look) as agent:
        assert (await agent.call("a", ALICE)).text == "one"
    assert type(error).__name__ in logged(workspace)[2][2]


@pytest.mark.parametrize("error", [Mute(), MuteModel("busy")])
async def test_a_models_error_without_a_text_is_an_error_of_ours(workspace: Path, error: Exception) -> None:
    async with agent_of(workspace, ScriptedModel([error] * 4)) as agent:
        call = agent.call("a", ALICE)
        with pytest.raises(ModelError):
            await call
    assert call.events[-1].event == "error"
    assert of_kind(ledger(workspace), "abort")


def test_the_text_of_an_error_is_had_from_any_error() -> None:
    assert error_text(ValueError("words")) == "words"
    assert said(ValueError("words")) == "ValueError: words"
    assert error_text(Mute()) == said(Mute()) == "Mute"


async def test_a_state_module_that_cannot_be_made_is_named_and_nothing_is_logged(workspace: Path) -> None:
    class Broken:
        name = "broken"

        def __init__(self) -> None:
            raise Mute

        def save(self) -> None: ...

        def load(self, value: Any) -> None: ...

    async with agent_of(workspace, ScriptedModel([]), state_module=Broken) as agent:
        with pytest.raises(ConfigError, match=r"Broken.*could not be made"):
            await agent.call("a", ALICE)
        assert await agent.sessions("alice").list() == []
