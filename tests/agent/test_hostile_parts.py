"""What foreign code in a call may do without harm to others: models, hooks and state that misbehave."""

from __future__ import annotations

import asyncio
import shutil
import threading
import time
from typing import Any

import pytest

from harness import HarnessAgent, RuntimeContext, tool
from harness.agent.open_session import _cache
from harness.errors import CallTimeout, HookError, ModelMalformed
from harness.hooks import PreActing, PreReasoning
from harness.messages import Msg
from harness.models.base import Done, TextDelta
from harness.models.retry import RetryPolicy
from harness.testing import ScriptedModel

ALICE = RuntimeContext(session_id="s", user_id="alice")
ONCE = RetryPolicy(attempts=1)


class Foreign:
    """A model made of one function."""

    provider, name, context_window = "foreign", "m", None

    def __init__(self, stream: Any) -> None:
        self.stream = stream


def built(workspace, model, **options):
    builder = HarnessAgent.builder().name("n").workspace(workspace).model(model).retry(ONCE)
    for name, value in options.items():
        getattr(builder, name)(value)
    return builder.build()


def test_a_hook_that_exits_the_process_ends_only_its_own_call(workspace):
    async def leave(event: PreReasoning) -> None:
        raise SystemExit(1)

    with pytest.raises(HookError, match=r"leave .* raised SystemExit on PreReasoning: 1"):
        built(workspace, "offline", hook=leave).call("one", ALICE).block(20)

    assert built(workspace, "offline").call("hello there.", RuntimeContext(user_id="bob")).block(20).text


async def test_a_stream_that_never_waits_can_be_stopped(workspace):
    async def endless(request):
        while True:
            yield TextDelta("x")

    with pytest.raises(CallTimeout):
        await built(workspace, Foreign(endless)).call("q", ALICE, timeout=0.3)


async def test_an_answer_is_kept_when_its_stream_cannot_be_closed(workspace):
    class Stream:
        def __aiter__(self):
            return self

        async def __anext__(self):
            return Done(Msg.assistant("fine"))

        async def aclose(self):
            raise OSError("close failed")

    reply = await built(workspace, Foreign(lambda request: Stream())).call("q", ALICE)

    assert reply.text == "fine"


@pytest.mark.parametrize("chunk", [Done("x"), Done(None), TextDelta(None), TextDelta(5), "text", None])
async def test_what_is_no_chunk_is_a_malformed_answer(workspace, chunk):
    async def odd(request):
        yield chunk

    with pytest.raises(ModelMalformed):
        await built(workspace, Foreign(odd)).call("q", ALICE)


def test_a_generator_tool_stops_when_nobody_waits_any_more(workspace):
    pieces: list[int] = []
    ended = threading.Event()

    @tool(timeout=0.1)
    def endless():
        try:
            while True:
                time.sleep(0.01)
                pieces.append(1)
                yield "x"
        finally:
            ended.set()

    model = ScriptedModel([ScriptedModel.tool_call("endless"), "done"])

    assert built(workspace, model, tool=endless).call("go", ALICE).block(20).text == "done"
    assert ended.wait(10)


async def test_an_argument_that_a_hook_edits_in_place_is_noted_in_the_ledger(workspace):
    got: list[int] = []

    @tool
    def take(x: int = 0) -> str:
        """Take a number."""
        got.append(x)
        return "ok"

    async def edit(event: PreActing) -> None:
        event.tool_use.input["x"] = 666

    agent = built(workspace, ScriptedModel([ScriptedModel.tool_call("take", x=1), "done"]), tool=take, hook=edit)
    await agent.call("go", ALICE)
    ledger = next(workspace.rglob("s.log.jsonl")).read_text()

    assert got == [666]
    assert '"kind":"replace"' in ledger
    assert '"x":666' in ledger


async def test_a_spoilt_snapshot_folder_does_not_stop_a_conversation(workspace):
    await built(workspace, "offline").call("My name is Alice.", ALICE)
    folder = next(path for path in workspace.rglob("context/s") if path.is_dir())
    shutil.rmtree(folder)
    folder.write_text("")
    _cache._open.clear()

    call = built(workspace, "offline").call("What is my name?", ALICE)

    assert "Alice" in (await call).text
    assert any("snapshot" in warning for warning in call.warnings)


async def test_a_state_module_that_cannot_load_keeps_its_value_and_the_prompt(workspace):
    class Counter:
        name = "counter"
        fails = False

        def save(self):
            return {"n": 1}

        def load(self, value):
            if self.fails:
                raise ValueError("cannot")

    class Broken(Counter):
        fails = True

        def save(self):
            return {"n": 0}

    await built(workspace, "offline", state_module=Counter).call("one", ALICE)
    call = built(workspace, "offline", state_module=Broken).call("two", ALICE)
    await call

    assert any("'counter'" in warning for warning in call.warnings)
    assert next(workspace.rglob("counter.json")).read_text() == '{"n":1}'


def test_a_call_whose_loop_was_closed_can_be_cancelled_and_does_not_hold_up_closing(workspace):
    async def silent(request):
        await asyncio.sleep(1000)
        yield TextDelta("never")

    agent = built(workspace, Foreign(silent))
    loop = asyncio.new_event_loop()

    async def begin():
        call = agent.call("q", ALICE)
        call.start()
        await asyncio.sleep(0.1)
        return call

    call = loop.run_until_complete(begin())
    task = call._task
    task._log_destroy_pending = False
    loop.close()

    assert call.cancel()
    asyncio.run(agent.aclose(1))
    assert call.done
