"""Requests to models: retries, fallbacks, silence, and models that break the rules."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, Held, agent_of, call_of, ledger, logged, names, of_kind, shown

from harness.errors import (
    ContextOverflow,
    ModelAuthError,
    ModelError,
    ModelMalformed,
    ModelRejected,
    ModelTimeout,
    ModelUnavailable,
    ScriptError,
)
from harness.messages import ThinkingBlock
from harness.models import Chunk, Done, ModelRequest, RetryPolicy, TextDelta
from harness.testing import ScriptedModel


def ends(workspace: Path) -> list[tuple[str, list[str]]]:
    """How each request ended: its status, and the settlements of its tries."""
    found = of_kind(ledger(workspace), "request_end")
    return [(end["status"], [attempt["settlement"] for attempt in end["attempts"]]) for end in found]


async def test_a_transient_error_is_tried_again_and_the_caller_need_not_know(workspace: Path) -> None:
    model = ScriptedModel([ModelUnavailable("busy"), ModelUnavailable("busy"), "hello"])
    async with agent_of(workspace, model) as agent:
        assert (await agent.call("hi", ALICE)).text == "hello"
    assert [shown(request) for request in model.requests] == [[("user", "hi")]] * 3
    assert ends(workspace) == [("completed", ["failed", "failed", "ok"])]
    assert len(of_kind(ledger(workspace), "request_begin")) == 1


async def test_each_retry_is_an_event_that_says_why_and_when(workspace: Path) -> None:
    model = ScriptedModel([ModelUnavailable("busy", retry_after=0.01), ModelUnavailable("busy"), "hello"])
    async with agent_of(workspace, model) as agent:
        notices = [event.data async for event in agent.call("hi", ALICE) if event.event == "notice"]
    told = [{"model": "scripted:scripted", "error": "busy", "attempt": n} for n in (2, 3)]
    assert notices == [{"kind": "retry", **told[0], "seconds": 0.01}, {"kind": "retry", **told[1], "seconds": 0.0}]
    assert [entry["data"] for entry in of_kind(ledger(workspace), "retry")] == [
        {**told[0], "seconds": 0.01}, {**told[1], "seconds": 0.0},
    ]  # fmt: skip


async def test_retries_end_and_the_last_error_is_the_callers(workspace: Path) -> None:
    model = ScriptedModel([ModelUnavailable(f"busy {n}") for n in range(3)])
    async with agent_of(workspace, model, retry=RetryPolicy(attempts=3, base=0)) as agent:
        with pytest.raises(ModelUnavailable, match="busy 2"):
            await agent.call("hi", ALICE)
    assert ends(workspace) == [("failed", ["failed", "failed", "failed"])]


@pytest.mark.parametrize(
    ("error", "status"),
    [(ModelRejected, "failed"), (ModelAuthError, "auth"), (ContextOverflow, "failed"), (ModelError, "failed")],
)
async def test_what_will_not_help_is_not_tried_again(workspace: Path, error: type[ModelError], status: str) -> None:
    model = ScriptedModel([error("no")])
    async with agent_of(workspace, model) as agent:
        with pytest.raises(error):
            await agent.call("hi", ALICE)
    assert len(model.requests) == 1
    assert ends(workspace) == [(status, ["failed"])]


async def test_the_next_model_answers_where_the_first_cannot(workspace: Path) -> None:
    first = ScriptedModel([ModelAuthError("who are you?")], name="first")
    second = ScriptedModel(["from the second"], name="second")
    async with agent_of(workspace, first, fallback_models=second) as agent:
        call = agent.call("hi", ALICE)
        events = [event async for event in call]
        reply = await call
    assert (reply.text, reply.model) == ("from the second", "second")
    told = {"from": "scripted:first", "to": "scripted:second", "error": "who are you?"}
    assert [event.data for event in events if event.event == "notice"] == [{"kind": "fallback", **told}]
    assert [entry["data"] for entry in of_kind(ledger(workspace), "fallback")] == [told]


async def test_each_model_has_a_request_of_its_own_in_the_ledger(workspace: Path) -> None:
    first = ScriptedModel([ModelAuthError("no")], name="first")
    async with agent_of(workspace, first, fallback_models=ScriptedModel(["yes"], name="second")) as agent:
        await agent.call("hi", ALICE)
    entries = ledger(workspace)
    assert ends(workspace) == [("auth", ["failed"]), ("completed", ["ok"])]
    assert [entry["model"] for entry in of_kind(entries, "binding")] == ["first", "second"]
    assert [entry["attempt"] for entry in of_kind(entries, "request_begin")] == [1, 2]


async def test_retries_come_before_fallbacks(workspace: Path) -> None:
    first = ScriptedModel([ModelUnavailable("busy")] * 2, name="first")
    second = ScriptedModel([ModelUnavailable("busy"), "hello"], name="second")
    async with agent_of(workspace, first, fallback_models=second, retry=RetryPolicy(attempts=2, base=0)) as agent:
        assert (await agent.call("hi", ALICE)).text == "hello"
    assert (len(first.requests), len(second.requests)) == (2, 2)


async def test_where_no_model_answers_the_last_error_is_the_callers(workspace: Path) -> None:
    first, second = ScriptedModel([ModelRejected("first")]), ScriptedModel([ModelRejected("second")])
    async with agent_of(workspace, first, fallback_models=second) as agent:
        with pytest.raises(ModelRejected, match="second"):
            await agent.call("hi", ALICE)


async def test_every_step_begins_with_the_first_model_again(workspace: Path) -> None:
    first = ScriptedModel([ModelRejected("no"), "back again"], name="first")
    second = ScriptedModel([call_of("gone")], name="second")
    async with agent_of(workspace, first, fallback_models=second) as agent:
        assert (await agent.call("hi", ALICE)).model == "first"


async def test_thinking_of_one_model_is_not_shown_to_its_fallback(workspace: Path) -> None:
    first = ScriptedModel([[ThinkingBlock(text="secret"), "one"], ModelRejected("no")], name="first")
    second = ScriptedModel(["two"], name="second")
    async with agent_of(workspace, first, fallback_models=second) as agent:
        await agent.call("hi", ALICE)
        await agent.call("and?", ALICE)
    kinds = [block.type for message in second.requests[0].messages for block in message.blocks]
    assert kinds == ["text", "text", "text"]


async def test_a_silent_model_is_given_up(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel([Held()]), model_timeout=0.02, retry=RetryPolicy(attempts=1)) as agent:
        with pytest.raises(ModelTimeout, match=r"scripted:scripted sent nothing for 0\.02 s"):
            await agent.call("hi", ALICE)
    assert ends(workspace) == [("timeout", ["unknown"])]


async def test_silence_is_tried_again(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel([Held(), "hello"]), model_timeout=0.02) as agent:
        assert (await agent.call("hi", ALICE)).text == "hello"


async def test_a_model_that_keeps_sending_is_not_silent(workspace: Path) -> None:
    model = ScriptedModel([" ".join(str(n) for n in range(30))], delay=0.005)
    async with agent_of(workspace, model, model_timeout=0.1, retry=RetryPolicy(attempts=1)) as agent:
        assert (await agent.call("hi", ALICE)).text.endswith("28 29")


class Rogue:
    """A model that does what a model must not."""

    provider, name, context_window = "rogue", "one", None

    def __init__(self, stream: Any) -> None:
        self.stream = stream


async def _foreign(request: ModelRequest) -> AsyncIterator[Chunk]:
    raise KeyError("choices")
    yield  # pragma: no cover - makes it a generator


async def _never_done(request: ModelRequest) -> AsyncIterator[Chunk]:
    yield TextDelta("half")


def _raises_at_once(request: ModelRequest) -> AsyncIterator[Chunk]:
    raise KeyError("choices")


def _no_stream(request: ModelRequest) -> str:
    return "text"


async def _cancels_itself(request: ModelRequest) -> AsyncIterator[Chunk]:
    raise asyncio.CancelledError
    yield  # pragma: no cover - makes it a generator


@pytest.mark.parametrize("stream", [_foreign, _raises_at_once, _no_stream, _cancels_itself])
async def test_what_a_model_raises_of_its_own_becomes_an_error_of_ours(workspace: Path, stream: Any) -> None:
    async with agent_of(workspace, Rogue(stream)) as agent:
        with pytest.raises(ModelError, match="rogue:one raised"):
            await agent.call("hi", ALICE)
        assert (await agent.call("hi", ALICE, model=ScriptedModel(["hello"]))).text == "hello"


async def test_a_stream_without_an_end_is_malformed_and_tried_again(workspace: Path) -> None:
    async with agent_of(workspace, Rogue(_never_done), retry=RetryPolicy(attempts=2, base=0)) as agent:
        with pytest.raises(ModelMalformed, match="without an answer"):
            await agent.call("hi", ALICE)
    assert ends(workspace) == [("malformed", ["unknown", "unknown"])]


async def test_a_script_that_is_used_up_ends_the_call_as_it_is(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel()) as agent:
        with pytest.raises(ScriptError, match="request 1 came"):
            await agent.call("hi", ALICE)


async def test_a_stream_is_closed_when_the_call_is_stopped(workspace: Path) -> None:
    closed = []

    async def stream(request: ModelRequest) -> AsyncIterator[Chunk]:
        try:
            yield TextDelta("one")
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    async with agent_of(workspace, Rogue(stream)) as agent:
        async with agent.call("hi", ALICE) as call:
            async for event in call:
                if event.event == "reasoning_chunk":
                    break
    assert closed == [True]


async def test_text_of_a_broken_answer_is_kept_as_partial_and_not_shown_again(workspace: Path) -> None:
    model = ScriptedModel([[TextDelta("half an "), TextDelta("answ"), ModelRejected("cut")], "whole"])
    async with agent_of(workspace, model) as agent:
        with pytest.raises(ModelRejected):
            await agent.call("hi", ALICE)
        await agent.call("again", ALICE)
    partial = [entry for entry in of_kind(ledger(workspace), "message") if entry.get("partial")]
    assert [(entry["via"], entry["message"]["content"]) for entry in partial] == [
        ("model", [{"type": "text", "text": "half an answ"}])
    ]
    assert shown(model.requests[1]) == [("user", "hi"), ("assistant", "[stopped]"), ("user", "again")]


async def test_a_retried_answer_streams_again_and_is_logged_once(workspace: Path) -> None:
    model = ScriptedModel([[TextDelta("half"), ModelUnavailable("cut")], "whole"])
    async with agent_of(workspace, model) as agent:
        events = await names(agent.call("hi", ALICE))
    assert events.count("reasoning_chunk") == 2
    assert logged(workspace) == [("user", "user", "hi"), ("model", "assistant", "whole")]


async def test_stopping_during_the_wait_for_a_retry_ends_the_call(workspace: Path) -> None:
    model = ScriptedModel([ModelUnavailable("busy", retry_after=50), "never"])
    async with agent_of(workspace, model) as agent:
        async with agent.call("hi", ALICE) as call:
            async for event in call:
                if event.event == "notice":
                    break
    assert ends(workspace) == [("aborted", ["failed"])]
    assert len(model.requests) == 1


async def test_what_was_sent_is_logged_before_it_goes_out(workspace: Path) -> None:
    def at_request(request: ModelRequest) -> str:
        kinds.extend(entry["type"] for entry in ledger(workspace))
        return "hello"

    kinds: list[str] = []
    async with agent_of(workspace, ScriptedModel([at_request]), system_prompt="Be kind.") as agent:
        await agent.call("hi", ALICE)
    assert kinds == ["header", "message", "binding", "request_begin"]


async def test_options_and_system_prompt_reach_the_model_and_the_ledger(workspace: Path) -> None:
    model = ScriptedModel(["hello"])
    builder_options = {"system_prompt": "Be kind."}
    async with agent_of(workspace, model, **builder_options) as agent:
        await agent.call("hi", ALICE)
    [binding] = of_kind(ledger(workspace), "binding")
    assert model.requests[0].system == "Be kind."
    assert [(part["name"], part["text"]) for part in binding["system"]] == [("prompt", "Be kind.")]


async def test_an_answer_may_come_without_any_chunk(workspace: Path) -> None:
    from harness.messages import Msg

    async with agent_of(workspace, ScriptedModel([[Done(Msg.assistant("hello"))]])) as agent:
        events = await names(agent.call("hi", ALICE))
    assert events == ["pre_call", "pre_reasoning", "post_reasoning", "post_call"]
