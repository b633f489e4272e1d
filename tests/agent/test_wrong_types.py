"""What is of the wrong type is refused where it is given, with its name and what to give."""

import logging
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, agent_of

from harness import HarnessAgent, RuntimeContext
from harness.errors import ConfigError, InvalidId
from harness.hooks import PreCall
from harness.messages import Msg
from harness.sessions import InMemorySession
from harness.testing import ScriptedModel


@pytest.mark.parametrize("ctx", ["alice", {"user_id": "alice"}, "", 7, RuntimeContext])
async def test_a_context_that_is_none_is_refused_with_how_to_make_one(workspace: Path, ctx: Any) -> None:
    async with agent_of(workspace, ScriptedModel()) as agent:
        for use in (lambda: agent.call("hi", ctx), lambda: agent.running(ctx)):
            with pytest.raises(ConfigError, match=r"ctx .*give RuntimeContext\(user_id=…\)"):
                use()


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"session": "monday"}, "session is of type str"),
        ({"session": InMemorySession}, "session is InMemorySession"),
        ({"session_key": 7}, "session_key is of type int"),
        ({"session_key": ("alice", "notes", "s1")}, "session_key is of type tuple"),
        ({"extra": ["a"]}, "extra is of type list"),
        ({"extra": None}, "extra is of type NoneType"),
    ],
)
def test_the_fields_of_a_context_are_looked_at(fields: dict[str, Any], name: str) -> None:
    with pytest.raises(ConfigError, match=f"RuntimeContext: {name}.*; give "):
        RuntimeContext(user_id="alice", **fields)


@pytest.mark.parametrize("timeout", [0, -1, "5", float("nan"), True])
async def test_a_timeout_is_a_number_of_seconds(workspace: Path, timeout: Any) -> None:
    async with agent_of(workspace, ScriptedModel()) as agent:
        with pytest.raises(ConfigError, match=r"timeout is .*give seconds above 0"):
            agent.call("hi", ALICE, timeout=timeout)


@pytest.mark.parametrize("message", [None, 7, ["hi"]])
async def test_a_call_is_steered_with_a_message(workspace: Path, message: Any) -> None:
    async with agent_of(workspace, ScriptedModel(["hello"])) as agent, agent.call("hi", ALICE) as call:
        with pytest.raises(ConfigError, match=r"steer .*; give text or a Msg"):
            call.steer(message)


@pytest.mark.parametrize("key", ["", "  ", 7, b"k"])
async def test_an_idempotency_key_is_an_id(workspace: Path, key: Any) -> None:
    async with agent_of(workspace, ScriptedModel()) as agent:
        with pytest.raises(InvalidId, match="idempotency_key"):
            agent.call("hi", ALICE, idempotency_key=key)


@pytest.mark.parametrize(("query", "limit"), [(None, 10), (7, 10), ("hi", 0), ("hi", "many")])
async def test_a_search_asks_for_text_and_how_many(workspace: Path, query: Any, limit: Any) -> None:
    async with agent_of(workspace, ScriptedModel()) as agent:
        with pytest.raises(ConfigError, match="search: "):
            await agent.sessions("alice").search(query, limit)


@pytest.mark.parametrize("given", ["alice", None, 7])
async def test_a_namespace_function_gives_a_tuple(workspace: Path, given: Any) -> None:
    async with agent_of(workspace, ScriptedModel(), namespace=lambda _ctx: given) as agent:
        with pytest.raises(ConfigError, match="the namespace function gave a "):
            agent.call("hi", ALICE)


WRONG: list[tuple[str, Any]] = [
    ("name", 7), ("description", None), ("system_prompt", ["be kind"]), ("model_timeout", "1"), ("model_timeout", 0),
    ("tool_timeout", -1), ("retry", 3), ("max_steps", 0), ("max_steps", "3"), ("max_steps", True), ("workspace", None),
    ("workspace", 7), ("filesystem", "./files"), ("session", "monday"), ("session", InMemorySession),
    ("namespace", "alice"), ("namespace", lambda: ()), ("redact", "yes"), ("redact", lambda: None), ("gate_timeout", 0),
    ("gate_timeout", None), ("state_module", "cart"), ("state_module", lambda ctx: ctx), ("compaction", True),
    ("tool_result_eviction", 80_000), ("memory_maintenance", "daily"), ("max_context_tokens", -1),
    ("additional_context_file", 7),
]  # fmt: skip


@pytest.mark.parametrize(("method", "value"), WRONG, ids=lambda value: str(value)[:20])
def test_a_builder_refuses_at_once_and_names_the_method(method: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"^{method} .*; give "):
        getattr(HarnessAgent.builder(), method)(value)


class _Two:
    def on_event(self, event: Any, more: Any) -> None: ...


class _Late:
    priority = "late"

    def on_event(self, event: Any) -> None: ...


class _OneClass:
    events = PreCall

    def on_event(self, event: Any) -> None: ...


def _two(first: Any, second: Any) -> None: ...


def _text(event: str) -> None: ...


def _message(event: Msg) -> None: ...


@pytest.mark.parametrize(
    ("hook", "told"),
    [
        (_two, "_two cannot be called with one event"),
        (_Two(), "_Two.on_event cannot be called with one event"),
        (_text, "_text asks for a str, which is no event"),
        (_message, "_message asks for a Msg, which is no event"),
        (_Late(), "_Late.priority is 'late'"),
        (_OneClass(), "_OneClass.events is <class"),
    ],
)
def test_a_hook_that_could_never_be_asked_is_refused(hook: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        HarnessAgent.builder().hook(hook)


def test_a_hook_may_take_any_event_and_have_defaults_of_its_own() -> None:
    def anything(event: Any, times: int = 3, *, loud: bool = False) -> None: ...

    HarnessAgent.builder().hooks(anything, print, lambda event: None)


async def test_a_call_that_nobody_consumes_is_told_to_the_log(
    workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with agent_of(workspace, ScriptedModel(["hello"])) as agent:
        await agent.call("hi", ALICE)
        agent.call("never", ALICE).cancel()
        assert caplog.records == []
        with caplog.at_level(logging.WARNING):
            agent.call("forgotten", ALICE)
    assert ["'s1' was made and never run" in record.getMessage() for record in caplog.records] == [True]


@pytest.mark.parametrize("value", [object(), "half \ud800", float("nan"), 2**80])
def test_an_option_for_the_model_that_cannot_be_logged_is_refused_by_name(value):
    with pytest.raises(ConfigError, match="model_options: odd"):
        HarnessAgent.builder().model_options(temperature=0.5, odd=value)
