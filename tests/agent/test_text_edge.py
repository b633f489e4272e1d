"""What cannot be written as UTF-8 JSON comes in at every door and stops at none (B19, B71, B74)."""

import dataclasses
import json
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, agent_of, call_of, context_folder, ledger, logged, of_kind, sessions_folder, shown, strict

from harness.agent import open_session
from harness.hooks import PreCall, PreReasoning
from harness.messages import Msg, ToolUse
from harness.models import Done, TextDelta
from harness.testing import ScriptedModel
from harness.transcripts import read

HALF_HIGH, HALF_LOW, WHOLE = "\ud83d", "\udc88", "\U0001f600"
DIRTY = f"half {HALF_HIGH} here, tail {HALF_LOW}, whole {WHOLE}"
CLEAN = f"half \ufffd here, tail \ufffd, whole {WHOLE}"


def assert_all_files_are_strict(workspace: Path) -> None:
    checked = 0
    for path in [*sessions_folder(workspace).iterdir(), *context_folder(workspace).iterdir()]:
        if path.suffix in (".json", ".jsonl"):
            for line in path.read_bytes().split(b"\n"):
                if line.strip(b" \0"):
                    strict(line)
                    checked += 1
    assert checked > 10


async def assert_the_next_call_works(workspace: Path) -> list[tuple[str, str]]:
    assert_all_files_are_strict(workspace)
    open_session._cache._open.clear()
    model = ScriptedModel(["well"])
    async with agent_of(workspace, model) as agent:
        assert (await agent.call("next", ALICE)).text == "well"
        assert await agent.sessions("alice").search("next") != []
        await agent.sessions("alice").history("s1")
    for role, text in shown(model.requests[0]):
        (role + text).encode()
    return shown(model.requests[0])


# ---- half surrogates


async def test_from_the_user(workspace: Path) -> None:
    model = ScriptedModel(["hello"])
    async with agent_of(workspace, model) as agent:
        await agent.call(DIRTY, ALICE)
    assert shown(model.requests[0]) == [("user", CLEAN)]
    [entry] = [entry for entry in of_kind(ledger(workspace), "message") if entry["via"] == "user"]
    assert entry["message"]["meta"] == {"cleaned": ["surrogate"]}
    assert (await assert_the_next_call_works(workspace))[0] == ("user", CLEAN)


async def test_from_the_model_also_in_the_reply_and_on_the_stream(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel([[TextDelta(DIRTY)]])) as agent:
        call = agent.call("hi", ALICE)
        events = [event.to_dict() async for event in call]
        reply = await call
    assert reply.text == CLEAN
    json.dumps(events, ensure_ascii=False).encode()
    assert [event["data"]["text"] for event in events if event["event"] == "reasoning_chunk"] == [CLEAN]
    assert (await assert_the_next_call_works(workspace))[1] == ("assistant", CLEAN)


async def test_from_a_tool(workspace: Path) -> None:
    async def fetch() -> Any:
        yield DIRTY

    model = ScriptedModel([call_of("fetch"), "done"])
    async with agent_of(workspace, model, fetch) as agent:
        events = [event.to_dict() async for event in agent.call("hi", ALICE)]
    json.dumps(events, ensure_ascii=False).encode()
    assert model.requests[1].messages[-1].tool_results[0].text == CLEAN
    await assert_the_next_call_works(workspace)


async def test_from_the_arguments_of_a_call_and_its_names(workspace: Path) -> None:
    seen = []

    async def fetch(url: str) -> str:
        seen.append(url)
        return url

    model = ScriptedModel([ToolUse(id=f"c{HALF_LOW}", name="fetch", input={"url": DIRTY}), "done"])
    async with agent_of(workspace, model, fetch) as agent:
        events = [event.to_dict() async for event in agent.call("hi", ALICE)]
    json.dumps(events, ensure_ascii=False).encode()
    assert seen == [CLEAN]
    await assert_the_next_call_works(workspace)


async def test_from_the_error_of_a_tool(workspace: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> str:
        raise ValueError(DIRTY)

    model = ScriptedModel([call_of("fail"), "done"])
    async with agent_of(workspace, model, fail) as agent:
        await agent.call("hi", ALICE)
    assert CLEAN in model.requests[1].messages[-1].tool_results[0].text
    await assert_the_next_call_works(workspace)


async def test_from_an_error_of_the_model(workspace: Path) -> None:
    from harness.errors import ModelRejected

    async with agent_of(workspace, ScriptedModel([ModelRejected(DIRTY)])) as agent:
        call = agent.call("hi", ALICE)
        with pytest.raises(ModelRejected):
            await call
    json.dumps([event.to_dict() for event in call.events], ensure_ascii=False).encode()
    await assert_the_next_call_works(workspace)


async def test_from_hooks(workspace: Path) -> None:
    async def context(event: PreCall) -> PreCall:
        return event.change(context=(DIRTY,))

    async def addition(event: PreReasoning) -> PreReasoning:
        return event.change(additions=(Msg.user(DIRTY),))

    model = ScriptedModel(["done"])
    async with agent_of(workspace, model, hooks=[context, addition], system_prompt=DIRTY) as agent:
        await agent.call("hi", ALICE)
    assert CLEAN in shown(model.requests[0])[0][1]
    await assert_the_next_call_works(workspace)


async def test_from_a_steering_user(workspace: Path) -> None:
    async def steer() -> str:
        running = agent.running(ALICE)
        assert running is not None
        running.steer(DIRTY)
        return "x"

    model = ScriptedModel([call_of("steer"), "done"])
    async with agent_of(workspace, model, steer) as agent:
        await agent.call("hi", ALICE)
    assert shown(model.requests[1])[-1] == ("user", CLEAN)
    await assert_the_next_call_works(workspace)


async def test_the_case_of_a_page_with_halves(workspace: Path, shared: Path) -> None:
    expected = json.loads((shared / "cases/B19/expected.json").read_text())["read"]["surrogate.jsonl"]
    transcript = read(shared / "cases/B19/surrogate.jsonl")
    model = ScriptedModel(["well"])
    async with agent_of(workspace, model) as agent:
        await agent.call([*[turn.message for turn in transcript.turns], Msg.user("next")], ALICE)
    texts = {text for _, text in shown(model.requests[0])}
    assert set(expected["texts_for_output"].values()) <= texts
    assert [via for via, _, _ in logged(workspace)][-1] == "model"
    assert_all_files_are_strict(workspace)


# ---- numbers that JSON has not, and values that have no JSON


@dataclasses.dataclass
class Point:
    x: float
    y: float


class Opaque:
    __slots__ = ()


ODD = [
    float("nan"), float("inf"), float("-inf"), 1e400, 2**70, -(2**64), Decimal("NaN"), Decimal("1.5"), date(2026, 3, 2),
    b"\xff\x00bytes", {3, 1, 2}, Point(float("nan"), 1.0), Opaque(), {"k": float("nan"), 7: "seven"}, (1, 2), object,
]  # fmt: skip


@pytest.mark.parametrize("value", ODD, ids=lambda value: type(value).__name__)
async def test_odd_values_of_a_tool_are_shown_somehow_and_stored(workspace: Path, value: object) -> None:
    async def odd() -> object:
        return value

    model = ScriptedModel([call_of("odd"), "done"])
    async with agent_of(workspace, model, odd) as agent:
        await agent.call("hi", ALICE)
    assert model.requests[1].messages[-1].tool_results[0].text.strip() != ""
    await assert_the_next_call_works(workspace)


async def test_odd_numbers_in_a_call_are_stored_marked_and_reach_the_tool_as_text(workspace: Path) -> None:
    seen: list[Any] = []

    async def calc(x: Any, y: Any, z: Any) -> str:
        seen.extend([x, y, z])
        return "x"

    use = ToolUse(id="c1", name="calc", input={"x": float("nan"), "y": float("-inf"), "z": 2**70})
    async with agent_of(workspace, ScriptedModel([use, "done"]), calc) as agent:
        events = [event.to_dict() async for event in agent.call("hi", ALICE)]
    strict(json.dumps(events).encode())
    assert seen == ["NaN", "-Infinity", str(2**70)]
    [entry] = [e for e in of_kind(ledger(workspace), "message") if e["message"]["content"][0]["type"] == "toolUse"]
    assert entry["message"]["meta"]["cleaned"] == ["number"]
    await assert_the_next_call_works(workspace)


# ---- nesting


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def circular() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize("value", [nested(200), nested(100_000), circular()], ids=["200", "100000", "circular"])
async def test_deep_and_circular_values_of_a_tool_are_stored(workspace: Path, value: object) -> None:
    async def deep() -> object:
        return value

    async with agent_of(workspace, ScriptedModel([call_of("deep"), "done"]), deep) as agent:
        assert (await agent.call("hi", ALICE)).text == "done"
    await assert_the_next_call_works(workspace)


@pytest.mark.parametrize("depth", [200, 5_000])
async def test_deep_arguments_of_a_call_are_stored(workspace: Path, depth: int) -> None:
    async def take(value: Any) -> str:
        return "taken"

    use = ToolUse.model_construct(id="c1", name="take", input={"value": nested(depth)})
    async with agent_of(workspace, ScriptedModel([[Done(Msg.assistant(use))], "done"]), take) as agent:
        assert (await agent.call("hi", ALICE)).text == "done"
    await assert_the_next_call_works(workspace)


async def test_odd_values_of_a_state_module_are_stored(workspace: Path) -> None:
    class Odd:
        name = "odd"

        def save(self) -> dict[str, Any]:
            return {"nan": float("nan"), "half": HALF_HIGH, "deep": nested(200), "big": 2**70}

        def load(self, value: dict[str, Any]) -> None:
            return None

    async with agent_of(workspace, ScriptedModel(["done"]), state_module=Odd) as agent:
        await agent.call("hi", ALICE)
    await assert_the_next_call_works(workspace)
