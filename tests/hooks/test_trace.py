"""One log line for each event, with the call's identity on the record and texts only where asked for."""

import logging
from pathlib import Path

import pytest

from harness import HarnessAgent, RuntimeContext
from harness.errors import ModelRejected
from harness.hooks import TraceHook
from harness.testing import ScriptedModel

ALICE = RuntimeContext(session_id="s1", user_id="alice")


async def traced(workspace: Path, model: ScriptedModel, *hooks: object) -> None:
    def look(what: str) -> str:
        return f"saw the {what}"

    builder = HarnessAgent.builder().name("notes").model(model).workspace(workspace).tools(look).hooks(*hooks)
    async with builder.without("file_tools", "session_tools", "memory_tools", "workspace_context").build() as agent:
        await agent.call("my secret", ALICE)


def with_tool() -> ScriptedModel:
    return ScriptedModel([ScriptedModel.tool_call("look", what="secret moon"), "the secret answer"])


def records(caplog: pytest.LogCaptureFixture, logger: str = "harness.trace") -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name == logger]


async def test_every_record_names_user_agent_session_turn_and_request(
    workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="harness.trace"):
        await traced(workspace, with_tool())
    found = [vars(record) for record in records(caplog)]
    assert {(r["harness_user"], r["harness_agent"], r["harness_session"]) for r in found} == {("alice", "notes", "s1")}
    assert found[0]["harness_turn"] is None
    assert len({r["harness_turn"] for r in found[1:]}) == 1
    assert len({r["harness_request"] for r in found} - {None}) == 2


async def test_there_is_a_line_for_each_event_and_none_for_chunks(
    workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="harness.trace"):
        await traced(workspace, with_tool())
    assert [record.getMessage().split(" ", 1)[0] for record in records(caplog)] == [
        "pre_call", "pre_reasoning", "post_reasoning", "pre_acting", "post_acting",
        "pre_reasoning", "post_reasoning", "post_call",
    ]  # fmt: skip


async def test_texts_of_the_conversation_are_not_written_at_info(
    workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="harness.trace"):
        await traced(workspace, with_tool())
    lines = "\n".join(record.getMessage() for record in records(caplog))
    assert "secret" not in lines
    assert "tool=look" in lines


async def test_texts_are_written_at_debug(workspace: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="harness.trace"):
        await traced(workspace, with_tool())
    lines = "\n".join(record.getMessage() for record in records(caplog))
    assert all(text in lines for text in ("'my secret'", "secret moon", "saw the secret moon", "the secret answer"))


async def test_a_call_that_fails_has_a_line_with_the_error(workspace: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="harness.trace"), pytest.raises(ModelRejected):
        await traced(workspace, ScriptedModel([ModelRejected("no")]))
    assert records(caplog)[-1].getMessage() == "error session=s1 user=alice error=ModelRejected"


async def test_a_logger_of_its_own_may_be_given(workspace: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="mine"):
        await traced(workspace, with_tool(), TraceHook(logging.getLogger("mine")))
    assert len(records(caplog, "mine")) == 8


async def test_long_texts_are_cut(workspace: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="harness.trace"):
        await traced(workspace, ScriptedModel(["x" * 5000]))
    assert records(caplog)[-1].getMessage().endswith(f"'{'x' * 200}… (5000 characters)'")
