"""Hooks at work in a call: what they may change, and that the turn is stored whatever they do (B51)."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import (
    ALICE,
    agent_of,
    assert_pair_complete,
    call_of,
    context_folder,
    json_lines,
    ledger,
    logged,
    of_kind,
    shown,
)

from harness.errors import CallCancelled, HookError, ModelRejected
from harness.hooks import (
    Error,
    Event,
    PostActing,
    PostCall,
    PostReasoning,
    PostSummary,
    PreActing,
    PreCall,
    PreReasoning,
    PreSummary,
    ReasoningChunk,
    SystemPart,
    as_hook,
)
from harness.messages import Msg, ToolResult, ToolUse
from harness.testing import ScriptedModel
from harness.tools import tool

CHANGING = [PreCall, PreReasoning, PostReasoning, PreActing, PostActing, PreSummary, PostSummary]
TELLING = [ReasoningChunk, PostCall]


class At:
    """Does something at one kind of event."""

    def __init__(self, kind: type[Event], action: Any, priority: int = 100) -> None:
        self.events = (kind,)
        self.priority = priority
        self._action = action

    async def on_event(self, event: Event) -> Any:
        result = self._action(event)
        return await result if asyncio.iscoroutine(result) else result


def fail(event: Event) -> None:
    raise ZeroDivisionError("the hook is broken")


def dig() -> str:
    return "earth"


def full_turn() -> ScriptedModel:
    """A turn that meets every kind of event: a tool, then the limit of steps."""
    return ScriptedModel([call_of("dig"), "dug"])


# ---- what hooks may change


async def test_pre_call_may_add_messages_system_text_and_context(workspace: Path) -> None:
    def add(event: PreCall) -> PreCall:
        return event.change(
            messages=(Msg.user("before"), *event.messages),
            system=(*event.system, SystemPart("mood", "Be merry.")),
            context=("It rains.",),
        )

    model = ScriptedModel(["one", "two"])
    async with agent_of(workspace, model, hooks=[At(PreCall, add)], system_prompt="Be brief.") as agent:
        await agent.call("hi", ALICE)
        await agent.call("and?", ALICE)
    assert model.requests[0].system == "Be brief.\n\nBe merry."
    assert shown(model.requests[0]) == [("user", "before"), ("user", "hi It rains.")]
    assert shown(model.requests[1]) == [
        ("user", "before"), ("user", "hi"), ("assistant", "one"), ("user", "before"), ("user", "and? It rains."),
    ]  # fmt: skip
    assert ("hook", "user", "It rains.") in logged(workspace)


async def test_pre_call_may_change_what_is_said_and_that_is_what_is_logged(workspace: Path) -> None:
    def mask(event: PreCall) -> PreCall:
        return event.change(messages=(Msg.user("my card is ****"),))

    model = ScriptedModel(["one"])
    async with agent_of(workspace, model, hooks=[At(PreCall, mask)]) as agent:
        await agent.call("my card is 4111", ALICE)
    assert shown(model.requests[0]) == [("user", "my card is ****")]
    assert logged(workspace)[0] == ("user", "user", "my card is ****")


async def test_pre_call_that_leaves_nothing_to_say_is_refused(workspace: Path) -> None:
    model = ScriptedModel()
    async with agent_of(workspace, model, hooks=[At(PreCall, lambda event: event.change(messages=()))]) as agent:
        with pytest.raises(HookError, match="left nothing to say"):
            await agent.call("hi", ALICE)
    assert logged(workspace) == [("user", "user", "hi")]


async def test_pre_reasoning_may_add_messages_for_one_turn(workspace: Path) -> None:
    def nudge(event: PreReasoning) -> PreReasoning | None:
        return event.change(additions=(Msg.user("think twice"),)) if event.step == 2 else None

    model = ScriptedModel([call_of("dig"), "done", "next"])
    async with agent_of(workspace, model, dig, hooks=[At(PreReasoning, nudge)]) as agent:
        await agent.call("hi", ALICE)
        await agent.call("and?", ALICE)
    assert shown(model.requests[1])[-1] == ("user", "think twice")
    assert "think twice" not in str(shown(model.requests[2]))
    assert ("hook", "user", "think twice") in logged(workspace)


async def test_pre_reasoning_may_change_system_tools_and_options_for_one_request(workspace: Path) -> None:
    def change(event: PreReasoning) -> PreReasoning | None:
        if event.step == 1:
            return None
        return event.change(system=(SystemPart("only", "Finish."),), tools=(), options={"temperature": 0.5})

    model = ScriptedModel([call_of("dig"), "done"])
    async with agent_of(workspace, model, dig, hooks=[At(PreReasoning, change)]) as agent:
        await agent.call("hi", ALICE)
    first, second = model.requests
    assert (len(first.tools), dict(first.options), first.system) == (1, {}, "")
    assert (len(second.tools), dict(second.options), second.system) == (0, {"temperature": 0.5}, "Finish.")
    assert [(len(entry["tools"]), entry["options"]) for entry in of_kind(ledger(workspace), "binding")] == [
        (1, {}), (0, {"temperature": 0.5}),
    ]  # fmt: skip


async def test_pre_reasoning_sees_what_the_model_will_see(workspace: Path) -> None:
    seen = []
    model = ScriptedModel(["one", "two"])
    hook = At(PreReasoning, lambda event: seen.append(tuple(message.text for message in event.messages)))
    async with agent_of(workspace, model, hooks=[hook]) as agent:
        await agent.call("hi", ALICE)
        await agent.call("and?", ALICE)
    assert seen == [("hi",), ("hi", "one", "and?")]


async def test_what_post_reasoning_makes_of_an_answer_is_what_is_logged_and_returned(workspace: Path) -> None:
    def soften(event: PostReasoning) -> PostReasoning:
        return event.change(message=event.message.with_changes(blocks="softer"))

    model = ScriptedModel(["harsh", "next"])
    async with agent_of(workspace, model, hooks=[At(PostReasoning, soften)]) as agent:
        assert (await agent.call("hi", ALICE)).text == "softer"
        await agent.call("and?", ALICE)
    assert logged(workspace)[1] == ("model", "assistant", "softer")
    assert "harsh" not in (workspace / "tenants/alice/agents/notes/sessions/s1.log.jsonl").read_text()
    assert shown(model.requests[1])[1] == ("assistant", "softer")


async def test_an_answer_that_a_hook_wrote_anew_still_says_which_model_was_asked(workspace: Path) -> None:
    def replace(event: PostReasoning) -> PostReasoning:
        return event.change(message=Msg.assistant("mine"))

    async with agent_of(workspace, ScriptedModel(["theirs"]), hooks=[At(PostReasoning, replace)]) as agent:
        reply = await agent.call("hi", ALICE, idempotency_key="k")
        assert (await agent.call("hi", ALICE, idempotency_key="k")).text == "mine"
    assert (reply.text, reply.provider, reply.model) == ("mine", "scripted", "scripted")


async def test_post_reasoning_may_add_and_take_away_tool_calls(workspace: Path) -> None:
    def swap(event: PostReasoning) -> PostReasoning:
        if not event.message.tool_uses:
            return event
        return event.change(message=event.message.with_changes(blocks=[ToolUse(id="mine", name="dig")]))

    model = ScriptedModel([[call_of("gone"), call_of("gone")], "done"])
    async with agent_of(workspace, model, dig, hooks=[At(PostReasoning, swap)]) as agent:
        await agent.call("hi", ALICE)
    assert [result.text for result in model.requests[1].messages[-1].tool_results] == ["earth"]
    assert_pair_complete(model.requests[1])


async def test_pre_acting_may_refuse_one_of_two_calls_and_the_other_runs(workspace: Path) -> None:
    ran = []

    def work(what: str) -> str:
        ran.append(what)
        return f"did {what}"

    def veto(event: PreActing) -> PreActing | None:
        if event.tool_use.input["what"] != "harm":
            return None
        return event.change(result=ToolResult(id="any", content="not allowed", is_error=True))

    model = ScriptedModel([[call_of("work", what="harm"), call_of("work", what="good")], "done"])
    async with agent_of(workspace, model, work, hooks=[At(PreActing, veto, 60)]) as agent:
        await agent.call("hi", ALICE)
    assert ran == ["good"]
    results = model.requests[1].messages[-1].tool_results
    assert [(result.text, result.is_error) for result in results] == [("not allowed", True), ("did good", False)]
    assert_pair_complete(model.requests[1])


async def test_pre_acting_may_change_arguments_and_the_ledger_says_so(workspace: Path) -> None:
    def work(what: str) -> str:
        return f"did {what}"

    def change(event: PreActing) -> PreActing:
        return event.change(tool_use=event.tool_use.model_copy(update={"input": {"what": "good"}, "id": "other"}))

    use = ToolUse(id="c1", name="work", input={"what": "harm"})
    model = ScriptedModel([use, "done"])
    async with agent_of(workspace, model, work, hooks=[At(PreActing, change)]) as agent:
        await agent.call("hi", ALICE)
    assert [(result.id, result.text) for result in model.requests[1].messages[-1].tool_results] == [("c1", "did good")]
    assert model.requests[1].messages[1].tool_uses[0].input == {"what": "harm"}
    [replace] = of_kind(ledger(workspace), "replace")
    assert replace["data"]["toolUse"]["input"] == {"what": "good"}


async def test_post_acting_may_change_the_result(workspace: Path) -> None:
    def trim(event: PostActing) -> PostActing:
        return event.change(result=event.result.model_copy(update={"content": (Msg.user("short").blocks[0],)}))

    model = ScriptedModel([call_of("dig"), "done"])
    async with agent_of(workspace, model, dig, hooks=[At(PostActing, trim)]) as agent:
        await agent.call("hi", ALICE)
    assert model.requests[1].messages[-1].tool_results[0].text == "short"
    assert logged(workspace)[2] == ("tool", "tool", "short")


async def test_the_summary_at_the_limit_may_be_asked_for_and_changed_by_hooks(workspace: Path) -> None:
    hooks = [
        At(PreSummary, lambda event: event.change(instruction="Say it in one word.")),
        At(PostSummary, lambda event: event.change(message=event.message.with_changes(blocks="Dug."))),
    ]
    model = full_turn()
    async with agent_of(workspace, model, dig, hooks=hooks, max_steps=1) as agent:
        assert (await agent.call("hi", ALICE)).text == "Dug."
    assert shown(model.requests[1])[-1] == ("user", "Say it in one word.")
    assert logged(workspace)[-1] == ("model", "assistant", "Dug.")


async def test_post_reasoning_may_end_the_turn_before_its_tools_run(workspace: Path) -> None:
    ran = []

    def work() -> str:
        ran.append("work")
        return "x"

    model = ScriptedModel([["Shall I?", call_of("work")], "next"])
    hook = At(PostReasoning, lambda event: event.change(stop=bool(event.message.tool_uses)))
    async with agent_of(workspace, model, work, hooks=[hook]) as agent:
        assert (await agent.call("hi", ALICE)).text == "Shall I?"
        await agent.call("No.", ALICE)
    assert ran == []
    assert_pair_complete(model.requests[1])
    assert [role for role, _ in shown(model.requests[1])] == ["user", "assistant", "tool", "user"]


async def test_post_acting_may_end_the_turn_when_the_results_of_the_step_are_in(workspace: Path) -> None:
    model = ScriptedModel([["Digging.", call_of("dig"), call_of("dig")], "next"])
    hook = At(PostActing, lambda event: event.change(stop=True))
    async with agent_of(workspace, model, dig, hooks=[hook]) as agent:
        assert (await agent.call("hi", ALICE)).text == "Digging."
        assert len(model.requests) == 1
        await agent.call("Go on.", ALICE)
    assert [text for via, _, text in logged(workspace) if via == "tool"] == ["earth", "earth"]
    assert_pair_complete(model.requests[1])


async def test_a_hook_brings_its_tools_along(workspace: Path) -> None:
    class Clock:
        def on_event(self, event: Event) -> None:
            return None

        @tool
        def now(self) -> str:
            """Tell the time."""
            return "noon"

        def tools(self) -> list[Any]:
            return [self]

    model = ScriptedModel([call_of("now"), "done"])
    async with agent_of(workspace, model, hooks=[Clock()]) as agent:
        await agent.call("hi", ALICE)
    assert [spec.name for spec in model.requests[0].tools] == ["now"]
    assert model.requests[1].messages[-1].tool_results[0].text == "noon"


# ---- the turn is stored in any case


@pytest.mark.parametrize("priority", [0, 100, 900, 901])
@pytest.mark.parametrize("kind", CHANGING)
async def test_a_hook_that_raises_ends_the_call_and_the_turn_is_stored_on_both_tracks(
    workspace: Path, kind: type[Event], priority: int
) -> None:
    async with agent_of(workspace, full_turn(), dig, hooks=[At(kind, fail, priority)], max_steps=1) as agent:
        with pytest.raises(HookError, match=rf"At.*raised ZeroDivisionError on {kind.__name__}: the hook is broken"):
            await agent.call("hi", ALICE)
        tree = await agent.sessions("alice").tree("s1")
    assert logged(workspace)[0] == ("user", "user", "hi")
    assert [entry["data"]["reason"] for entry in of_kind(ledger(workspace), "abort")] == ["HookError"]
    begun = [entry["id"] for entry in of_kind(ledger(workspace), "request_begin")]
    assert [entry["requestId"] for entry in of_kind(ledger(workspace), "request_end")] == begun
    assert json_lines(context_folder(workspace) / "memory_messages.jsonl") == tree.messages()


@pytest.mark.parametrize("kind", CHANGING)
async def test_the_next_call_after_a_hook_error_works(workspace: Path, kind: type[Event]) -> None:
    broken = [True]
    hook = At(kind, lambda event: fail(event) if broken[0] else None)
    model = full_turn()
    async with agent_of(workspace, model, dig, hooks=[hook], max_steps=1) as agent:
        with pytest.raises(HookError):
            await agent.call("hi", ALICE)
        broken[0] = False
        last = ScriptedModel(["well again"])
        assert (await agent.call("again", ALICE, model=last)).text == "well again"
    assert_pair_complete(last.requests[0])
    assert shown(last.requests[0])[0] == ("user", "hi")
    assert shown(last.requests[0])[-1] == ("user", "again")


@pytest.mark.parametrize("priority", [0, 100, 901])
@pytest.mark.parametrize("kind", TELLING)
async def test_a_hook_that_fails_while_it_listens_costs_a_warning(
    workspace: Path, kind: type[Event], priority: int
) -> None:
    async with agent_of(workspace, ScriptedModel(["one two three"]), hooks=[At(kind, fail, priority)]) as agent:
        call = agent.call("hi", ALICE)
        events = [event async for event in call]
        assert (await call).text == "one two three"
    notices = [event.data for event in events if event.event == "notice"]
    assert [notice["kind"] for notice in notices] == ["hook_failure"]
    assert len(call.warnings) == 1
    assert call.warnings[0].endswith(f"failed on {kind.__name__}: ZeroDivisionError: the hook is broken")
    assert len(json_lines(context_folder(workspace) / "memory_messages.jsonl")) == 2


async def test_a_hook_that_fails_on_the_error_event_leaves_the_error_as_it_was(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel([ModelRejected("no")]), hooks=[At(Error, fail)]) as agent:
        with pytest.raises(ModelRejected, match="no"):
            await agent.call("hi", ALICE)
    assert len(json_lines(context_folder(workspace) / "memory_messages.jsonl")) == 1


async def test_a_hook_that_aborts_stops_every_tool_before_it_starts(workspace: Path) -> None:
    ran = []

    def work(n: int) -> str:
        ran.append(n)
        return "x"

    hook = At(PreActing, lambda event: fail(event) if event.tool_use.input["n"] == 2 else None)
    model = ScriptedModel([[call_of("work", n=1), call_of("work", n=2)]])
    async with agent_of(workspace, model, work, hooks=[hook]) as agent:
        with pytest.raises(HookError):
            await agent.call("hi", ALICE)
    assert ran == []


async def test_an_answer_that_a_hook_refuses_is_kept_as_partial_and_never_shown(workspace: Path) -> None:
    broken = At(PostReasoning, lambda event: fail(event) if event.message.text == "harsh" else None)
    model = ScriptedModel(["harsh", "kind"])
    async with agent_of(workspace, model, hooks=[broken]) as agent:
        with pytest.raises(HookError):
            await agent.call("hi", ALICE)
        await agent.call("again", ALICE)
    partial = [entry["message"] for entry in of_kind(ledger(workspace), "message") if entry.get("partial")]
    assert [message["content"][0]["text"] for message in partial] == ["harsh"]
    assert shown(model.requests[1]) == [("user", "hi"), ("assistant", "[stopped]"), ("user", "again")]


async def test_hooks_behind_persistence_are_told_like_those_before_it(workspace: Path) -> None:
    order = []
    hooks = [At(PostCall, lambda event, n=n: order.append(n), n) for n in (901, 5, 900)]
    async with agent_of(workspace, ScriptedModel(["done"]), hooks=hooks) as agent:
        await agent.call("hi", ALICE)
    assert order == [5, 900, 901]


@pytest.mark.parametrize("kind", [PostCall, Error])
async def test_a_hook_that_never_ends_can_be_stopped_and_the_snapshot_is_written(
    workspace: Path, kind: type[Event]
) -> None:
    there = asyncio.Event()

    async def wait(event: Event) -> None:
        there.set()
        await asyncio.Event().wait()

    answer: Any = "done" if kind is PostCall else ModelRejected("no")
    async with agent_of(workspace, ScriptedModel([answer]), hooks=[At(kind, wait)]) as agent:
        call = agent.call("hi", ALICE)
        call.start()
        await there.wait()
        call.cancel()
        with pytest.raises(CallCancelled if kind is PostCall else ModelRejected):
            await call
    assert len(json_lines(context_folder(workspace) / "memory_messages.jsonl")) == (2 if kind is PostCall else 1)


async def test_an_error_event_carries_what_the_caller_gets(workspace: Path) -> None:
    seen: list[BaseException] = []

    async def wait(event: PreReasoning) -> None:
        await asyncio.Event().wait()

    hooks = [as_hook(wait), At(Error, lambda event: seen.append(event.error))]
    async with agent_of(workspace, ScriptedModel(), hooks=hooks) as agent:
        async with agent.call("hi", ALICE) as call:
            async for event in call:
                if event.event == "pre_call":
                    break
        assert [type(error) for error in seen] == [CallCancelled]
        assert call.events[-1].data == {
            "error": "CallCancelled", "message": "the call on session 's1' was stopped; what it had done is kept",
        }  # fmt: skip
