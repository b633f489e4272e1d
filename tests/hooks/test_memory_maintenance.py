"""Memory is kept behind the reply, once a gap in a process, each tenant's by itself, from the first run on."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "agent"))
from agentkit import ALICE, Held, exists, ledger, of_kind, until

from harness import HarnessAgent, RuntimeContext
from harness.errors import ModelRejected
from harness.hooks import MemoryMaintenanceHook, Notice, memory_maintenance
from harness.memory import MaintenanceConfig
from harness.models import Chunk, ModelRequest, RetryPolicy
from harness.testing import ScriptedModel

EVERY_TIME = MaintenanceConfig(gap_seconds=0)


@pytest.fixture(autouse=True)
def fresh_desk() -> Iterator[None]:
    memory_maintenance._desk.renew()
    yield
    memory_maintenance._desk.renew()


class Keeping:
    """Answers, notes what was said as a fact, and merges notes into the memory."""

    provider, name, context_window = "test", "keeping", None

    def __init__(self, *merges: Any) -> None:
        self.merges: list[ModelRequest] = []
        self._steps = [*merges]

    def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        return ScriptedModel([self._step(request)]).stream(request)

    def _step(self, request: ModelRequest) -> Any:
        text = request.messages[-1].text
        if "consolidate the long-term memory" in request.system:
            self.merges.append(request)
            return self._steps.pop(0) if self._steps else _merged(text)
        if "keep the long-term memory" in request.system:
            return f"- {text.partition('[USER]: ')[2].partition(chr(10))[0]}"
        return "ok"


def _merged(prompt: str) -> str:
    lines = [line.strip() for line in prompt.split("\n")]
    return "\n".join(dict.fromkeys(line for line in lines if line.startswith("- ")))


def agent_of(
    workspace: Path, model: Any, *hooks: Any, config: MaintenanceConfig = EVERY_TIME, name: str = "notes"
) -> HarnessAgent:
    builder = HarnessAgent.builder().name(name).model(model).workspace(workspace).retry(RetryPolicy(base=0))
    return builder.without("workspace_context").memory_flush().memory_maintenance(config).hooks(*hooks).build()


def memory(workspace: Path, user: str = "alice") -> str:
    path = workspace / "tenants" / user / "MEMORY.md"
    return path.read_text() if exists(path) else ""


async def test_the_facts_of_the_first_turn_are_in_memory_when_the_agent_has_closed(workspace: Path) -> None:
    async with agent_of(workspace, Keeping()) as agent:
        await agent.call("I like tea.", ALICE)
    assert memory(workspace) == "- I like tea.\n"


async def test_it_works_with_the_offline_model_and_nothing_configured(workspace: Path) -> None:
    builder = HarnessAgent.builder().model("offline").workspace(workspace).memory_flush()
    async with builder.build() as agent:
        await agent.call("My name is Alice.", ALICE)
        await agent.aclose()
    async with HarnessAgent.builder().model("offline").workspace(workspace).build() as agent:
        reply = await agent.call("What is my name?", RuntimeContext(session_id="later", user_id="alice"))
    assert "My name is Alice" in memory(workspace)
    assert "Alice" in reply.text


async def test_the_reply_does_not_wait_and_closing_does(workspace: Path) -> None:
    held = Held("- merged")
    model = Keeping(held)
    async with agent_of(workspace, model) as agent:
        assert (await agent.call("I like tea.", ALICE)).text == "ok"
        await held.asked.wait()
        assert memory(workspace) == ""
        held.let_go.set()
    assert memory(workspace) == "- merged\n"


async def test_within_the_gap_it_is_not_done_again_whichever_agent_serves(workspace: Path) -> None:
    model = Keeping()
    config = MaintenanceConfig(gap_seconds=3600)
    for name in ("notes", "notes", "letters"):
        async with agent_of(workspace, model, config=config, name=name) as agent:
            await agent.call("I like tea.", ALICE)
    assert len(model.merges) == 1


async def test_two_agents_at_once_keep_a_memory_once(workspace: Path) -> None:
    held = Held("- merged")
    model = Keeping(held)
    async with agent_of(workspace, model) as one, agent_of(workspace, model, name="letters") as other:
        await one.call("I like tea.", ALICE)
        await held.asked.wait()
        await other.call("I like jam.", ALICE)
        held.let_go.set()
    assert len(model.merges) == 1


async def test_the_memories_of_two_users_never_meet_also_when_both_are_kept_at_once(workspace: Path) -> None:
    model = Keeping()
    users = [f"user{n}" for n in range(8)]
    async with agent_of(workspace, model) as agent:
        for _ in range(2):
            await asyncio.gather(
                *(agent.call(f"canary of {user}.", RuntimeContext(session_id="s1", user_id=user)) for user in users)
            )
    for user in users:
        assert f"canary of {user}." in memory(workspace, user)
        assert not any(f"canary of {other}." in memory(workspace, user) for other in users if other != user)
    assert all(
        sum(f"canary of {user}." in request.messages[-1].text for user in users) == 1 for request in model.merges
    )


async def test_a_failure_costs_a_log_line_and_the_next_time_goes_on(
    workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = Keeping(ModelRejected("no"))
    for text in ("I like tea.", "I like jam."):
        async with agent_of(workspace, model) as agent:
            assert (await agent.call(text, ALICE)).text == "ok"
    assert "memory maintenance of tenant ('alice',) failed; the conversation is not affected" in caplog.text
    assert memory(workspace) == "- I like tea.\n- I like jam.\n"


async def test_hooks_see_how_it_gets_on(workspace: Path) -> None:
    seen: list[str] = []

    def watch(event: Notice) -> None:
        seen.append(f"{event.kind} {event.details.get('status', '')}".strip())

    async with agent_of(workspace, Keeping(), watch) as agent:
        await agent.call("I like tea.", ALICE)
    assert seen == ["flush_begin", "flush_end completed", "consolidation_begin", "consolidation_end completed"]


async def test_what_failed_is_told_too(workspace: Path) -> None:
    seen: list[tuple[str, Any]] = []

    def watch(event: Notice) -> None:
        seen.append((event.kind, event.details.get("status")))

    async with agent_of(workspace, Keeping(ModelRejected("no")), watch) as agent:
        await agent.call("I like tea.", ALICE)
    assert ("consolidation_end", "failed") in seen


async def test_flushes_of_one_tenant_keep_the_order_of_the_turns(workspace: Path) -> None:
    async with agent_of(workspace, Keeping(), config=MaintenanceConfig()) as agent:
        for n in range(6):
            await agent.call(f"fact {n}.", RuntimeContext(session_id=f"s{n}", user_id="alice"))
    [daily] = (workspace / "tenants" / "alice" / "memory").glob("*.md")
    facts = [line for line in daily.read_text().split("\n") if line.startswith("- ")]
    assert facts == [f"- fact {n}." for n in range(6)]


async def test_requests_for_it_are_logged_with_their_purpose(workspace: Path) -> None:
    async with agent_of(workspace, Keeping()) as agent:
        await agent.call("I like tea.", ALICE)
    assert [entry["purpose"] for entry in of_kind(ledger(workspace), "request_begin")] == [
        "execute", "flush", "consolidate",
    ]  # fmt: skip


async def test_it_can_be_switched_off_and_replaced(workspace: Path) -> None:
    class Mine(MemoryMaintenanceHook):
        async def on_event(self, event: Any) -> None:
            mine.append(event.message.text)

    mine: list[str] = []
    model = Keeping()
    builder = HarnessAgent.builder().model(model).workspace(workspace).memory_flush()
    async with builder.hook(Mine()).build() as agent:
        await agent.call("I like tea.", ALICE)
    async with builder.without("memory_maintenance").build() as agent:
        await agent.call("I like jam.", ALICE)
    assert (len(mine), model.merges) == (2, [])


async def test_a_full_backlog_lets_another_try(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from harness.agent import lifecycle

    model = Keeping()
    async with agent_of(workspace, model) as agent:
        with monkeypatch.context() as patch:
            patch.setattr(lifecycle, "_MAX_BACKLOG", 0)
            await agent.call("I like tea.", ALICE)
        assert model.merges == []
        await agent.call("I like jam.", ALICE)
        await until(lambda: bool(model.merges))
    assert "I like jam." in memory(workspace)


def test_of_ten_thousand_tenants_only_the_latest_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_maintenance, "_MOST_KNOWN", 2)
    desk = memory_maintenance._Desk()
    for tenant in "abc":
        assert desk.claim(tenant, 3600)
        desk.give_back(tenant, done=True)
    assert [desk.claim(tenant, 3600) for tenant in "abc"] == [True, False, False]
