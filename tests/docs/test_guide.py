"""The guide's tables say what the code says: events, what may be changed, options, errors."""

import ast
import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import StreamingResponse

import harness.errors
from harness import HarnessAgent, RuntimeContext
from harness.agent import AgentBuilder
from harness.errors import CallCancelled
from harness.hooks import Error, Event, events
from harness.testing import ScriptedModel
from harness.transcripts import read

GUIDE = (Path(__file__).resolve().parents[2] / "docs/guide.md").read_text("utf-8")


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its head."""
    part = GUIDE.split(f"\n## {heading}", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def names(cell: str) -> list[str]:
    return re.findall(r"`([A-Za-z_]+)`", cell)


def test_the_table_of_events_names_each_with_its_stream_name_and_what_may_be_changed() -> None:
    kinds = [kind for kind in vars(events).values() if isinstance(kind, type) and issubclass(kind, Event)]
    told = {
        kind: (stream, set(names(changes)))
        for kinds_cell, stream_cell, changes, _ in rows("Hooks")
        for kind, stream in zip(names(kinds_cell), names(stream_cell), strict=True)
    }
    assert told == {kind.__name__: (kind.event_name(), set(kind.changeable)) for kind in kinds if kind is not Event}


def test_the_table_of_options_names_every_method_of_the_builder() -> None:
    methods = {name for name in vars(AgentBuilder) if not name.startswith("_")} - {"build"}
    assert {name for cells in rows("The builder") for name in names(cells[0])} == methods


def test_the_table_of_errors_names_errors_that_are_there() -> None:
    told = [name for cells in rows("Errors") for name in names(cells[0])]
    assert [name for name in told if not hasattr(harness.errors, name)] == []


async def never(_: object) -> str:
    await asyncio.Event().wait()
    return ""


async def test_a_loop_that_is_left_goes_on_and_leaving_async_with_stops(tmp_path: Path) -> None:
    ctx = RuntimeContext(user_id="alice", session_id="monday")
    model = ScriptedModel(["An answer.", never])
    async with HarnessAgent.builder().model(model).workspace(tmp_path).build() as agent:
        call = agent.call("Hello", ctx)
        async for _ in call:
            break
        assert (await call).text == "An answer."
        async with agent.call("Think for long.", ctx) as stopped:
            async for _ in stopped:
                break
        assert isinstance(stopped.exception(), CallCancelled)


async def test_of_an_answer_that_was_cut_off_the_next_call_sees_that_it_was_stopped_and_the_ledger_has_its_text(
    tmp_path: Path,
) -> None:
    ctx = RuntimeContext(user_id="alice", session_id="monday")
    model = ScriptedModel(["A story with many words.", "On it goes."], delay=0.001)
    async with HarnessAgent.builder().model(model).workspace(tmp_path).build() as agent:
        async with agent.call("Tell me.", ctx) as stopped:
            async for event in stopped:
                if event.event == "reasoning_chunk":
                    break
        await agent.call("Go on.", ctx)
        assert [message.text for message in model.requests[-1].messages[:2]] == ["Tell me.", "[stopped]"]
        said = [message.text for message in await agent.sessions(ctx).history("monday")]
        assert said == ["Tell me.", "[stopped]", "Go on.", "On it goes."]
        path = (await agent.sessions(ctx).tree("monday")).path()
        [partial] = [line.data["message"]["content"][0]["text"] for line in path if line.data.get("partial")]
        assert partial.startswith("A ")
    [ledger] = await asyncio.to_thread(lambda: [*tmp_path.rglob("monday.log.jsonl")])
    assert partial in str(read(ledger).turns)


def given(name: str) -> str:
    """What the guide's block with this text imports and defines, without what uses it."""
    block = next(part for part in GUIDE.split("```") if name in part).removeprefix("python\n")
    kept = (ast.Import, ast.ImportFrom, ast.AsyncFunctionDef, ast.FunctionDef)
    body = [node for node in ast.parse(block).body if isinstance(node, kept) or _is_constant(node)]
    return ast.unparse(ast.Module(body, []))


def _is_constant(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper()


async def test_a_stream_whose_client_goes_stops_its_call_and_the_same_key_goes_on(tmp_path: Path) -> None:
    async def wait() -> str:
        """Wait for ever."""
        return await never(None)

    ctx = RuntimeContext(user_id="alice", session_id="monday")
    model = ScriptedModel([ScriptedModel.tool_call("wait"), "A whole answer."])
    async with HarnessAgent.builder().model(model).tool(wait).workspace(tmp_path).build() as agent:
        namespace: dict[str, Any] = {"agent": agent}
        exec(given("import asyncio, json") + "\n" + given("async def sse"), namespace)
        pieces = namespace["post"]("alice", "monday", "Hello", "one")[1]
        assert '"event": "reasoning_chunk"' in await anext(pieces)
        call = agent.running(ctx)
        assert call is not None
        await pieces.aclose()
        assert isinstance(call.exception(), CallCancelled)
        again = [piece async for piece in namespace["post"]("alice", "monday", "Hello", "one")[1]]
        assert '"text": "A whole answer."' in again[-1]
        said = [message.text for message in await agent.sessions(ctx).history("monday") if message.role == "user"]
        assert said == ["Hello"]


BAD: list[dict[str, Any]] = [
    *({"session_id": bad} for bad in ("", 7, "\ud800", "x" * 5_000)),
    *({"message": bad} for bad in ("", 7)),
    *({"key": bad} for bad in ("", 7)),
]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: ascii(bad)[:40])
async def test_what_a_client_sends_that_cannot_work_is_its_400_and_no_error_of_the_server(
    tmp_path: Path, bad: dict[str, Any]
) -> None:
    async with HarnessAgent.builder().model(ScriptedModel([])).workspace(tmp_path).build() as agent:
        namespace: dict[str, Any] = {"agent": agent}
        exec(given("import asyncio, json") + "\n" + given("async def sse"), namespace)
        sent = {"session_id": "monday", "message": "Hello", "key": "one", **bad}
        assert namespace["post"]("alice", **sent)[0] == 400


async def test_a_client_that_goes_away_from_starlette_is_told_to_hooks_as_one_error(tmp_path: Path) -> None:
    there, told = asyncio.Event(), []

    async def wait() -> str:
        """Wait for ever."""
        there.set()
        return await never(None)

    async def ends(event: Error) -> None:
        await asyncio.sleep(0.01)
        told.append(type(event.error).__name__)

    async def receive() -> dict[str, str]:
        await there.wait()
        return {"type": "http.disconnect"}

    async def send(_: object) -> None:
        return

    ctx = RuntimeContext(user_id="alice", session_id="monday")
    model = ScriptedModel([ScriptedModel.tool_call("wait")])
    async with HarnessAgent.builder().model(model).tool(wait).hook(ends).workspace(tmp_path).build() as agent:
        namespace: dict[str, Any] = {"agent": agent}
        exec(given("import asyncio, json") + "\n" + given("async def sse"), namespace)
        response = StreamingResponse(
            namespace["post"]("alice", "monday", "Hello", "one")[1], media_type="text/event-stream"
        )
        await response({"type": "http"}, receive, send)
        assert told == ["CallCancelled"]
        assert agent.running(ctx) is None
