"""Whatever way a call ends, both tracks have what was done, and the next call works."""

import asyncio
import errno
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import (
    ALICE,
    Held,
    agent_of,
    assert_pair_complete,
    call_of,
    context_folder,
    json_lines,
    ledger,
    logged,
    of_kind,
    shown,
    until,
)

from harness.agent import open_session
from harness.errors import CallCancelled, CallTimeout, ModelRejected, PersistenceError
from harness.filesystem import pool
from harness.filesystem.disk import AppendFile
from harness.hooks import PostActing, PreReasoning
from harness.models import TextDelta
from harness.sessions import InMemorySession, SessionKey
from harness.testing import ScriptedModel


def forget_processes_memory() -> None:
    """As if the next call came in a new process."""
    open_session._cache._open.clear()


async def assert_next_call_works(workspace: Path, first: str = "hi") -> list[tuple[str, str]]:
    """A new process goes on; gives what its model saw."""
    forget_processes_memory()
    model = ScriptedModel(["well again"])
    async with agent_of(workspace, model) as agent:
        assert (await agent.call("again", ALICE)).text == "well again"
        report = await agent.sessions("alice").tree("s1")
    assert report.damage == []
    assert_pair_complete(model.requests[0])
    seen = shown(model.requests[0])
    assert (seen[0], seen[-1]) == (("user", first), ("user", "again"))
    return seen


def snapshot(workspace: Path) -> list[str]:
    return [message["role"] for message in json_lines(context_folder(workspace) / "memory_messages.jsonl")]


async def test_success(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["hello"])) as agent:
        await agent.call("hi", ALICE)
    assert snapshot(workspace) == ["user", "assistant"]
    assert of_kind(ledger(workspace), "abort") == []
    assert await assert_next_call_works(workspace) == [("user", "hi"), ("assistant", "hello"), ("user", "again")]


async def test_an_error_of_the_model(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel([ModelRejected("no")])) as agent:
        with pytest.raises(ModelRejected):
            await agent.call("hi", ALICE)
    [abort] = of_kind(ledger(workspace), "abort")
    assert abort["data"] == {"reason": "ModelRejected", "message": "no"}
    assert snapshot(workspace) == ["user"]
    assert await assert_next_call_works(workspace) == [("user", "hi"), ("assistant", "[stopped]"), ("user", "again")]


async def test_stopped_while_the_model_answers(workspace: Path) -> None:
    held = Held()

    async def slow(_request: object) -> Any:
        return [TextDelta("half an answer"), await held(_request)]  # type: ignore[arg-type]

    async with agent_of(workspace, ScriptedModel([slow])) as agent:
        async with agent.call("hi", ALICE):
            await held.asked.wait()
    assert snapshot(workspace) == ["user"]
    assert await assert_next_call_works(workspace) == [("user", "hi"), ("assistant", "[stopped]"), ("user", "again")]


async def test_stopped_while_the_answer_streams(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["one two three four"], delay=0.005)) as agent:
        async with agent.call("hi", ALICE) as call:
            async for event in call:
                if event.event == "reasoning_chunk":
                    break
    partial = [entry for entry in of_kind(ledger(workspace), "message") if entry.get("partial")]
    assert [entry["message"]["content"][0]["text"].startswith("one ") for entry in partial] == [True]
    assert await assert_next_call_works(workspace) == [("user", "hi"), ("assistant", "[stopped]"), ("user", "again")]


async def test_stopped_while_a_tool_runs(workspace: Path) -> None:
    there = asyncio.Event()

    async def dig() -> str:
        there.set()
        await asyncio.Event().wait()
        return "never"

    async with agent_of(workspace, ScriptedModel([call_of("dig")]), dig) as agent:
        async with agent.call("hi", ALICE):
            await there.wait()
    assert snapshot(workspace) == ["user", "assistant"]
    seen = await assert_next_call_works(workspace)
    assert [role for role, _ in seen] == ["user", "assistant", "tool", "assistant", "user"]
    assert seen[3] == ("assistant", "[stopped]")


async def test_stopped_while_a_hook_runs(workspace: Path) -> None:
    there = asyncio.Event()

    async def wait(event: PreReasoning) -> None:
        there.set()
        await asyncio.Event().wait()

    async with agent_of(workspace, ScriptedModel(), hooks=[wait]) as agent:
        async with agent.call("hi", ALICE):
            await there.wait()
    assert snapshot(workspace) == ["user"]
    await assert_next_call_works(workspace)


async def test_stopped_while_a_hook_looks_at_a_result(workspace: Path) -> None:
    there = asyncio.Event()

    async def wait(event: PostActing) -> None:
        there.set()
        await asyncio.Event().wait()

    async with agent_of(workspace, ScriptedModel([[call_of("x"), call_of("y")]]), hooks=[wait]) as agent:
        async with agent.call("hi", ALICE):
            await there.wait()
    await assert_next_call_works(workspace)


async def test_a_timeout(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel([Held()])) as agent:
        with pytest.raises(CallTimeout):
            await agent.call("hi", ALICE, timeout=0.05)
    assert snapshot(workspace) == ["user"]
    await assert_next_call_works(workspace)


async def test_the_limit_of_steps(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel([call_of("gone"), "that was all"]), max_steps=1) as agent:
        await agent.call("hi", ALICE)
    assert snapshot(workspace) == ["user", "assistant", "tool", "assistant"]
    assert of_kind(ledger(workspace), "abort") == []
    await assert_next_call_works(workspace)


async def at_once(work: Any, /, *args: Any, **kwargs: Any) -> Any:
    """File work on the loop itself, so that moments can be counted; stopped only when it is done, as ever."""
    result = work(*args, **kwargs)
    await asyncio.sleep(0)
    return result


async def test_stopped_at_every_moment_of_a_turn_the_session_goes_on(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def dig() -> str:
        return "earth"

    monkeypatch.setattr(pool, "run", at_once)
    stopped = 0
    async with agent_of(workspace, "offline", dig) as agent:
        for n in range(400):
            model = ScriptedModel([call_of("dig"), "done"])
            call = agent.call(f"prompt {n}", ALICE, model=model)
            call.start()
            for _ in range(n):
                await asyncio.sleep(0)
            call.cancel()
            try:
                await call
            except CallCancelled:
                stopped += 1
            else:
                break  # it was through before it could be stopped
    assert 20 < stopped < 400
    assert_pair_complete(model.requests[-1])
    kept = [text for via, _, text in logged(workspace) if via == "user"]
    assert kept == [f"prompt {n}" for n in range(stopped + 1 - len(kept), stopped + 1)]
    await assert_next_call_works(workspace, first=kept[0])


# ---- a disk that refuses


class Disk:
    """Lets the ledger be appended to until it is full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, refuse: Callable[[bytes], bool]) -> None:
        self.full = True
        add = AppendFile.add

        def limited(file: AppendFile, data: bytes, sync: bool) -> None:
            if self.full and refuse(data):
                raise PersistenceError(f"cannot append: {errno.errorcode[errno.ENOSPC]}; free some space")
            add(file, data, sync)

        monkeypatch.setattr(AppendFile, "add", limited)


async def test_a_full_disk_before_the_answer_ends_the_call(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk = Disk(monkeypatch, lambda data: True)
    model = ScriptedModel()
    async with agent_of(workspace, model) as agent:
        with pytest.raises(PersistenceError, match="ENOSPC") as caught:
            await agent.call("hi", ALICE)
        assert (caught.value.reply, model.requests) == (None, [])
        disk.full = False
        assert (await agent.call("again", ALICE, model=ScriptedModel(["well again"]))).text == "well again"
    assert [text for _, _, text in logged(workspace)] == ["again", "well again"]


async def test_a_full_disk_after_the_answer_gives_the_answer_with_the_error(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk = Disk(monkeypatch, lambda data: b'"request_end"' in data)
    async with agent_of(workspace, ScriptedModel(["the answer"])) as agent:
        with pytest.raises(PersistenceError) as caught:
            await agent.call("hi", ALICE)
        disk.full = False
    assert caught.value.reply.text == "the answer"
    assert any("could not be stored" in note for note in caught.value.__notes__)
    await assert_next_call_works(workspace)


async def test_a_disk_that_is_full_for_a_moment_loses_nothing(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    once = [b'"request_end"']
    Disk(monkeypatch, lambda data: bool(once) and once[0] in data and bool(once.pop()))
    async with agent_of(workspace, ScriptedModel(["the answer"])) as agent:
        with pytest.raises(PersistenceError) as caught:
            await agent.call("hi", ALICE)
    assert caught.value.reply.text == "the answer"
    assert ("model", "assistant", "the answer") in logged(workspace)
    await assert_next_call_works(workspace)


async def test_a_full_disk_between_call_and_result_ends_the_call(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def dig() -> str:
        return "earth"

    disk = Disk(monkeypatch, lambda data: b'"toolResult"' in data)
    async with agent_of(workspace, ScriptedModel([call_of("dig")]), dig) as agent:
        with pytest.raises(PersistenceError) as caught:
            await agent.call("hi", ALICE)
        disk.full = False
    assert caught.value.reply is None
    await assert_next_call_works(workspace)


class ReadOnly(InMemorySession):
    """A store that takes nothing in."""

    async def append(self, key: SessionKey, name: str, items: Any, expect_count: int) -> None:
        raise PersistenceError("the store is down; try later")


async def test_a_snapshot_that_cannot_be_written_costs_a_warning(workspace: Path) -> None:
    async with agent_of(workspace, ScriptedModel(["hello"]), session=ReadOnly()) as agent:
        call = agent.call("hi", ALICE)
        assert (await call).text == "hello"
    [warning] = call.warnings
    assert "SessionPersistenceHook" in warning
    assert "the store is down" in warning
    await assert_next_call_works(workspace)


async def test_a_call_that_is_stopped_holds_nothing(workspace: Path) -> None:
    held = Held()
    async with agent_of(workspace, ScriptedModel([held])) as agent:
        async with agent.call("hi", ALICE) as call:
            await held.asked.wait()
        assert agent.running(ALICE) is None
        await until(lambda: call.done)
    await assert_next_call_works(workspace)
