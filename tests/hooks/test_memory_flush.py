"""Facts of a turn go to the tenant's daily file, off the reply path, and only that turn's."""

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from harness import HarnessAgent, RuntimeContext
from harness.errors import ContextOverflow, ModelRejected
from harness.models import Chunk, ModelRequest, RetryPolicy, estimate_request
from harness.testing import ScriptedModel
from harness.tools import tool

ALICE = RuntimeContext(session_id="s1", user_id="alice")
LONG = "word " * 100


class Remembering:
    """Answers prompts from one script, and requests for facts from another."""

    provider, name, context_window = "test", "remembering", None

    def __init__(self, answers: list[object], facts: list[object]) -> None:
        self.answers = ScriptedModel(answers)  # type: ignore[arg-type]
        self.facts = ScriptedModel(facts)  # type: ignore[arg-type]

    def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        asks_for_facts = "long-term memory" in request.system
        return (self.facts if asks_for_facts else self.answers).stream(request)


def agent_of(workspace: Path, model: Remembering) -> HarnessAgent:
    builder = HarnessAgent.builder().name("notes").model(model).workspace(workspace)
    return builder.retry(RetryPolicy(base=0)).without("workspace_context", "memory_maintenance").memory_flush().build()


def daily(workspace: Path, user: str = "alice") -> str:
    return "".join(path.read_text() for path in (workspace / "tenants" / user / "memory").glob("*.md"))


async def test_facts_of_a_turn_are_in_the_daily_file_when_the_agent_has_closed(workspace: Path) -> None:
    model = Remembering(["Noted."], ["- Alice likes tea."])
    async with agent_of(workspace, model) as agent:
        await agent.call("I like tea.", ALICE)
    assert "- Alice likes tea." in daily(workspace)


async def test_only_the_turn_that_has_ended_is_looked_at_and_what_is_known_is_shown(workspace: Path) -> None:
    model = Remembering(["Noted.", "Noted too."], ["- Alice likes tea.", "- Alice likes jam."])
    async with agent_of(workspace, model) as agent:
        await agent.call("I like tea.", ALICE)
    async with agent_of(workspace, model) as agent:
        await agent.call("I like jam.", ALICE)
    second = model.facts.requests[1].messages[0].text
    conversation = second[second.index("<conversation>") :]
    assert "I like jam." in conversation
    assert "I like tea." not in conversation
    assert "- Alice likes tea." in second[: second.index("<conversation>")]
    assert model.facts.requests[1].tools == ()


async def test_nothing_worth_remembering_writes_nothing(workspace: Path) -> None:
    model = Remembering(["Hello."], ["NO_REPLY"])
    async with agent_of(workspace, model) as agent:
        await agent.call("Hi.", ALICE)
    assert daily(workspace) == ""


async def test_a_flush_that_fails_costs_a_log_line(workspace: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = Remembering(["Hello."], [ModelRejected("no facts today")])
    async with agent_of(workspace, model) as agent:
        call = agent.call("Hi.", ALICE)
        assert (await call).text == "Hello."
    assert call.warnings == []
    assert (
        "memory flush of agent 'notes', tenant 'alice', session 's1' failed; the conversation is not affected"
        in caplog.text
    )


async def test_a_flush_is_no_part_of_the_session(workspace: Path) -> None:
    model = Remembering(["Noted."], ["- Alice likes tea."])
    async with agent_of(workspace, model) as agent:
        await agent.call("I like tea.", ALICE)
        history = await agent.sessions("alice").history("s1")
    assert [message.text for message in history] == ["I like tea.", "Noted."]


async def test_a_turn_that_failed_is_not_flushed(workspace: Path) -> None:
    model = Remembering([ModelRejected("no")], [])
    async with agent_of(workspace, model) as agent:
        with pytest.raises(ModelRejected):
            await agent.call("I like tea.", ALICE)
    assert model.facts.requests == []


async def test_each_tenant_has_a_daily_file_of_its_own(workspace: Path) -> None:
    def fact(request: ModelRequest) -> str:
        return "- It is about alice." if "alice" in request.messages[0].text else "- It is about bob."

    model = Remembering(["ok", "ok"], [fact, fact])
    async with agent_of(workspace, model) as agent:
        for user in ("alice", "bob"):
            await agent.call(f"I am {user}.", RuntimeContext(session_id="s1", user_id=user))
    assert ("alice" in daily(workspace), "bob" in daily(workspace)) == (True, False)
    assert ("alice" in daily(workspace, "bob"), "bob" in daily(workspace, "bob")) == (False, True)


async def test_too_much_waiting_work_is_refused_and_said_so(
    workspace: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harness.agent import lifecycle

    monkeypatch.setattr(lifecycle, "_MAX_BACKLOG", 0)
    model = Remembering(["Noted."], [])
    with caplog.at_level(logging.WARNING, logger="harness.agent"):
        async with agent_of(workspace, model) as agent:
            await agent.call("I like tea.", ALICE)
    assert [record.getMessage() for record in caplog.records] == [
        (
            "memory flush of agent 'notes', tenant 'alice', session 's1' was left out: 0 wait already, of 0 at most and "
            "32 of one tenant; conversations are not affected"
        )
    ]


async def test_hundreds_of_refusals_are_two_lines_with_their_number(
    workspace: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harness.agent import lifecycle

    monkeypatch.setattr(lifecycle, "_MAX_BACKLOG", 0)
    model = Remembering(["ok"] * 20, [])
    with caplog.at_level(logging.WARNING, logger="harness.agent"):
        async with agent_of(workspace, model) as agent:
            for n in range(20):
                await agent.call("I like tea.", RuntimeContext(session_id=f"s{n}", user_id="alice"))
    first, second = (record.getMessage() for record in caplog.records)
    assert "session 's0' was left out: 0 wait" in first
    assert "session 's19' was left out, and 18 other pieces of work before it: 0 wait" in second


async def test_a_tenant_with_much_waiting_takes_no_place_of_another(
    workspace: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harness.agent import lifecycle

    monkeypatch.setattr(lifecycle, "_MAX_IN_LANE", 2)
    let_go = asyncio.Event()

    async def fact(request: ModelRequest) -> str:
        await let_go.wait()
        return "- A fact."

    model = Remembering(["ok"] * 4, [fact] * 3)
    async with agent_of(workspace, model) as agent:
        for n in range(3):
            await agent.call("I like tea.", RuntimeContext(session_id=f"s{n}", user_id="alice"))
        await agent.call("I like tea.", RuntimeContext(session_id="s1", user_id="bob"))
        let_go.set()
    assert [record.getMessage().split(":")[0] for record in caplog.records if "left out" in record.message] == [
        "memory flush of agent 'notes', tenant 'alice', session 's2' was left out"
    ]
    assert (daily(workspace).count("- A fact."), daily(workspace, "bob").count("- A fact.")) == (2, 1)


class Small(Remembering):
    """Takes so many tokens; says so only if it is told to."""

    def __init__(self, window: int, *, declares: bool, facts: str = "- A fact.") -> None:
        super().__init__([lambda _: f"answer {LONG}"] * 40, [lambda _: facts] * 40)
        self.window, self.context_window = window, window if declares else None
        self.refused: list[str] = []

    def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        if estimate_request(request) > self.window:
            self.refused.append(request.system[:20])
            raise ContextOverflow("too long")
        return super().stream(request)


@pytest.mark.parametrize("declares", [True, False])
async def test_a_flush_fits_the_window_or_is_made_to(workspace: Path, declares: bool) -> None:
    model = Small(4_000, declares=declares)
    (workspace / "tenants" / "alice").mkdir(parents=True)
    (workspace / "tenants" / "alice" / "MEMORY.md").write_text("- something known\n" * 1_000)
    builder = HarnessAgent.builder().name("notes").model(model).workspace(workspace).memory_flush()
    builder = builder.without("workspace_context", "memory_maintenance", "file_tools", "session_tools", "memory_tools")
    async with builder.build() as agent:
        await agent.call(f"FIRST {'word ' * 2_800} LAST", ALICE)
    assert daily(workspace).count("- A fact.") == 1
    assert bool(model.refused) is not declares
    conversation = model.facts.requests[0].messages[0].text.partition("<conversation>")[2]
    assert "FIRST" in conversation
    assert "characters are left out here; the session has them]" in conversation


@pytest.mark.parametrize("policy", ["compaction", "working_set"])
async def test_steps_that_were_summed_up_within_the_turn_are_looked_at_too(workspace: Path, policy: str) -> None:
    steps = [0]

    def answer(request: ModelRequest) -> object:
        if "You summarise" in request.system:
            return "SUMMARY"
        steps[0] += 1
        return "done" if steps[0] == 14 else [f"FACT{steps[0]};", ScriptedModel.tool_call("dig", n=steps[0])]

    @tool
    def dig(n: int) -> str:
        """Dig."""
        return f"layer {n} " + "data " * 1_200

    model = Small(7_000, declares=True)
    model.answers = ScriptedModel([answer] * 60)
    builder = HarnessAgent.builder().name("notes").model(model).workspace(workspace).tools(dig).memory_flush()
    builder = builder.without("workspace_context", "memory_maintenance", "file_tools", "session_tools", "memory_tools")
    async with getattr(builder.max_steps(20), policy)().build() as agent:
        await agent.call("begin", ALICE)
    conversation = model.facts.requests[0].messages[0].text
    assert [n for n in range(1, 14) if f"FACT{n};" in conversation] == [*range(1, 14)]
