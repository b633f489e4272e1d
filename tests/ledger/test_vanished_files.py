"""Files that vanish while a turn runs are noticed, and never come back as a fragment (case B46)."""

import contextlib
import logging
import shutil
from pathlib import Path

import pytest
from mutations import sessions_of

from harness.agent import HarnessAgent
from harness.context import RuntimeContext
from harness.errors import HarnessError
from harness.messages import Msg, ToolUse
from harness.models.base import Done
from harness.testing import check_ledger
from harness.text import loads
from harness.tools import tool

CTX = RuntimeContext(session_id="s", user_id="alice")
PLACES = {
    "the context file": lambda workspace: sessions_of(workspace) / "s.jsonl",
    "the ledger": lambda workspace: sessions_of(workspace) / "s.log.jsonl",
    "the anchor": lambda workspace: sessions_of(workspace) / "s.head.json",
    "the lock file": lambda workspace: sessions_of(workspace) / "s.lock",
    "the folder of the sessions": sessions_of,
    "the snapshot": lambda workspace: workspace / "tenants/alice/agents/crash/context/s",
    "the folder of the agent": lambda workspace: workspace / "tenants/alice/agents/crash",
    "the tenant": lambda workspace: workspace / "tenants/alice",
    "the workspace": lambda workspace: workspace,
}
ONLY_COPIES = {"the context file", "the anchor", "the lock file", "the snapshot"}


class Model:
    """Asks for the tool where the prompt says so, and answers otherwise."""

    provider, name, context_window = "test", "simple", None

    async def stream(self, request):
        last = request.messages[-1]
        prompt = next(
            message for message in request.messages[::-1] if message.role == "user" and "turn" in message.text
        )
        if last.role != "tool" and "with a tool" in prompt.text:
            yield Done(Msg.assistant(ToolUse(id="late", name="meddle", input={})))
        else:
            yield Done(Msg.assistant("an answer"))


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def rename(path: Path) -> None:
    path.rename(path.with_name(f"{path.name} elsewhere"))


def put_a_folder(path: Path) -> None:
    rename(path)
    path.mkdir()


async def talk(workspace: Path, meddle) -> tuple[HarnessError | None, list[str]]:
    """A turn, then one during whose tool a file vanishes; what the caller got."""

    @tool(name="meddle")
    def meddling() -> str:
        """Take a file away."""
        meddle()
        return "a late result"

    builder = HarnessAgent.builder().name("crash").model(Model()).workspace(workspace).tool(meddling)
    agent = builder.build()
    await agent.call("turn one", CTX)
    call = agent.call("turn two with a tool", CTX)
    try:
        await call
        return None, call.warnings
    except HarnessError as error:
        return error, call.warnings
    finally:
        with contextlib.suppress(HarnessError):
            await agent.aclose()


@pytest.mark.parametrize("how", [remove, rename, put_a_folder], ids=["removed", "renamed", "a folder in its place"])
@pytest.mark.parametrize("what", PLACES)
async def test_the_loss_is_reported_and_what_is_there_afterwards_is_complete(tmp_path, new_process, caplog, what, how):
    caplog.set_level(logging.WARNING)
    workspace = tmp_path / "w"
    path = PLACES[what](workspace)
    error, _ = await talk(workspace, lambda: how(path))
    if what in ONLY_COPIES:
        assert error is None
    else:
        assert error is not None
        assert "s.log.jsonl" in str(error)
    ledger = sessions_of(workspace) / "s.log.jsonl"
    if ledger.is_file():
        lines = ledger.read_bytes().split(b"\n")
        assert loads(lines[0])["type"] == "header"
        assert check_ledger(ledger.read_bytes())[0] == []
    if path.is_dir() and path.name.startswith("s."):
        path.rmdir()  # by hand: nothing of ours removes a folder that stands where a file belongs
    new_process()
    async with HarnessAgent.builder().name("crash").model(Model()).workspace(workspace).build() as agent:
        assert (await agent.call("turn three", CTX)).text == "an answer"
        history = [message.text for message in await agent.sessions("alice").history("s")]
        assert history[-2:] == ["turn three", "an answer"]
        report = await agent.sessions("alice").verify("s")
    assert report.ok, report.findings


async def test_a_session_deleted_through_the_api_between_two_calls_does_not_come_back(tmp_path):
    agent = HarnessAgent.builder().name("crash").model(Model()).workspace(tmp_path).build()
    await agent.call("turn one", CTX)
    async with HarnessAgent.builder().name("crash").model(Model()).workspace(tmp_path).build() as other:
        assert await other.sessions("alice").delete("s")
    await agent.call("turn two", CTX)
    history = [message.text for message in await agent.sessions("alice").history("s")]
    assert history == ["turn two", "an answer"]
    assert (await agent.sessions("alice").verify("s")).ok
    await agent.aclose()


def cut_to_the_first_turn(ledger: Path) -> None:
    lines = ledger.read_bytes().split(b"\n")
    second = next(at for at, line in enumerate(lines) if b'"text":"turn two"' in line)
    ledger.write_bytes(b"\n".join(lines[:second]) + b"\n")


@pytest.mark.parametrize("how", [remove, rename, cut_to_the_first_turn])
@pytest.mark.parametrize("process", ["the same process", "a new one"])
async def test_what_a_ledger_lost_between_calls_comes_back_from_the_snapshot(tmp_path, new_process, how, process):
    async with HarnessAgent.builder().name("crash").model(Model()).workspace(tmp_path).build() as agent:
        await agent.call("turn one", CTX)
        await agent.call("turn two", CTX)
        how(sessions_of(tmp_path) / "s.log.jsonl")
        if process == "a new one":
            new_process()
        call = agent.call("turn three", CTX)
        await call
        assert any("messages more" in warning for warning in call.warnings)
        history = [message.text for message in await agent.sessions("alice").history("s")]
        assert history == ["turn one", "an answer", "turn two", "an answer", "turn three", "an answer"]
        assert (await agent.sessions("alice").verify("s")).ok


async def test_a_ledger_that_vanished_whole_is_noted_by_the_next_writer(tmp_path, new_process):
    async with HarnessAgent.builder().name("crash").model(Model()).workspace(tmp_path).build() as agent:
        await agent.call("turn one", CTX)
        (sessions_of(tmp_path) / "s.log.jsonl").unlink()
        shutil.rmtree(tmp_path / "tenants/alice/agents/crash/context")
        missing = await agent.sessions("alice").verify("s")
        assert [(found.kind, found.error) for found in missing.findings if found.kind != "context"] == [
            ("truncated", True)
        ]
        new_process()
        await agent.call("turn two", CTX)
        after = await agent.sessions("alice").verify("s")
    assert after.ok
    assert [(found.kind, found.severity) for found in after.findings] == [("truncated", "note")]
