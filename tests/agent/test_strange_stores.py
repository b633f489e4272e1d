"""A store of snapshots that anybody may have written: it hangs, is down, or raises what it likes."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, Held, agent_of, logged

from harness.agent import Call
from harness.agent.open_session import _cache
from harness.errors import CallCancelled, CallTimeout, PersistenceError, SessionNotFound
from harness.hooks import persistence
from harness.sessions import InMemorySession
from harness.sessions.snapshots import asking
from harness.sessions.snapshots.snapshot import _put
from harness.state import SessionKey
from harness.testing import ScriptedModel


class Unreliable(InMemorySession):
    """A store elsewhere; while it is `down` it does that with every method named."""

    def __init__(self, *methods: str) -> None:
        super().__init__()
        self._methods = methods
        self.down: Any = None
        self.asked = asyncio.Event()

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._methods or self.down is None:
            return super().__getattribute__(name)
        return self._refuse

    async def _refuse(self, *_: Any) -> Any:
        self.asked.set()
        return await self.down()


async def hang() -> None:
    await asyncio.Event().wait()


async def break_off() -> None:
    raise ConnectionError("the store is down")


async def cancel_itself() -> None:
    raise asyncio.CancelledError


@contextmanager
def down_as(store: Unreliable, how: Any) -> Iterator[None]:
    """The store is down for the block, and is not waited for: tests have no half minutes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(persistence, "SECONDS_TO_STOP", 0.01)
        patch.setattr(asking, "SECONDS_TO_ANSWER", 0.01)
        store.down = how
        yield
    store.down = None


def let_time_run_out(call: Call) -> None:
    assert call._limit is not None
    call._limit.reschedule(asyncio.get_running_loop().time())


@pytest.mark.parametrize("method", ["save", "append"])
@pytest.mark.parametrize("how", [hang, break_off, cancel_itself])
async def test_a_snapshot_that_cannot_be_stored_costs_a_warning_and_not_the_answer(
    workspace: Path, method: str, how: Any
) -> None:
    store = Unreliable(method)
    async with agent_of(workspace, ScriptedModel(["one", "two"]), session=store) as agent:
        with down_as(store, how):
            call = agent.call("a", ALICE)
            assert (await call).text == "one"
        assert ["session 's1'" in warning and "the next call stores it" in warning for warning in call.warnings] == [
            True
        ]
        following = agent.call("b", ALICE)
        await following
        assert following.warnings == []
    assert [text for _, _, text in logged(workspace)] == ["a", "one", "b", "two"]
    [key] = await store.list_keys(("alice",), "notes")
    assert len(await store.get_list(key, "memory_messages")) == 4


async def test_a_time_limit_cuts_short_a_store_that_hangs(workspace: Path) -> None:
    store = Unreliable("save")
    async with agent_of(workspace, ScriptedModel(["one", "two"]), session=store) as agent:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(persistence, "SECONDS_TO_STOP", 0.01)
            store.down = hang
            call = agent.call("a", ALICE, timeout=3600)
            call.start()
            await store.asked.wait()
            let_time_run_out(call)
            with pytest.raises(CallTimeout):
                await call
        assert call.entry_id is not None
        assert ["was not stored" in warning for warning in call.warnings] == [True]
        store.down = None
        assert (await agent.call("b", ALICE)).text == "two"
    assert [text for _, _, text in logged(workspace)] == ["a", "one", "b", "two"]


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_second_cancel_cuts_short_a_store_that_hangs(
    workspace: Path, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Unreliable("save")
    store.down = hang
    monkeypatch.setattr(persistence, "SECONDS_TO_STOP", 3600.0)
    async with agent_of(workspace, ScriptedModel(["one", "two"]), session=store) as agent:
        call = agent.call("a", ALICE)
        call.start()
        await store.asked.wait()
        assert call.cancel()
        if not at_once:
            await asyncio.sleep(0)
        assert call.cancel()
        with pytest.raises(CallCancelled):
            await call
        assert ["was not stored" in warning for warning in call.warnings] == [True]
        store.down = None
        assert (await agent.call("b", ALICE)).text == "two"


async def test_a_first_cancel_lets_a_store_finish(workspace: Path) -> None:
    store, let_go = Unreliable("save"), asyncio.Event()

    async def in_its_time() -> None:
        await let_go.wait()

    store.down = in_its_time
    async with agent_of(workspace, ScriptedModel(["one"]), session=store) as agent:
        call = agent.call("a", ALICE)
        call.start()
        await store.asked.wait()
        call.cancel()
        let_go.set()
        with pytest.raises(CallCancelled):
            await call
    assert call.warnings == []


async def test_a_call_that_was_stopped_already_is_not_held_by_a_store_that_hangs(workspace: Path) -> None:
    store, held = Unreliable("save"), Held()
    async with agent_of(workspace, ScriptedModel([held]), session=store) as agent:
        with down_as(store, hang):
            call = agent.call("a", ALICE, timeout=3600)
            call.start()
            await held.asked.wait()
            let_time_run_out(call)
            with pytest.raises(CallTimeout):
                await call
    assert ["was not stored" in warning for warning in call.warnings] == [True]


@pytest.mark.parametrize("method", ["get", "get_list"])
@pytest.mark.parametrize("way", ["timeout", "cancel"])
async def test_a_call_can_be_stopped_while_a_store_does_not_answer(workspace: Path, method: str, way: str) -> None:
    store = Unreliable(method)
    store.down = hang
    async with agent_of(workspace, ScriptedModel(["one"]), session=store) as agent:
        call = agent.call("a", ALICE, timeout=3600)
        call.start()
        await store.asked.wait()
        call.cancel() if way == "cancel" else let_time_run_out(call)
        with pytest.raises(CallTimeout if way == "timeout" else CallCancelled):
            await call
        store.down = None
        assert (await agent.call("a", ALICE)).text == "one"


@pytest.mark.parametrize("method", ["get", "get_list"])
@pytest.mark.parametrize("how", [hang, break_off, cancel_itself])
async def test_while_a_store_is_down_no_call_is_made_nothing_is_logged_and_nothing_is_lost(
    workspace: Path, method: str, how: Any
) -> None:
    store = Unreliable(method)
    async with agent_of(workspace, ScriptedModel(["one", "two"]), session=store) as agent:
        await agent.call("My name is Alice.", ALICE)
        _cache._open.clear()
        before = logged(workspace)
        with down_as(store, how):
            for _ in range(2):
                with pytest.raises(PersistenceError, match=r"store of session 's1' \(Unreliable\) failed: .*try again"):
                    await agent.call("Who am I?", ALICE)
        assert logged(workspace) == before
        assert (await agent.call("Who am I?", ALICE)).text == "two"
    assert [text for _, _, text in logged(workspace)] == ["My name is Alice.", "one", "Who am I?", "two"]


@pytest.mark.parametrize(("method", "given"), [("get", 5), ("get", []), ("get_list", None), ("get_list", {"a": 1})])
async def test_a_store_that_gives_what_it_may_not_is_named(workspace: Path, method: str, given: Any) -> None:
    async def give() -> Any:
        return given

    store = Unreliable(method)
    store.down = give
    async with agent_of(workspace, ScriptedModel(["one"]), session=store) as agent:
        with pytest.raises(PersistenceError, match=r"\(Unreliable\) gave a .*; mend the store"):
            await agent.call("a", ALICE)
        assert await agent.sessions("alice").list() == []


@pytest.mark.parametrize("method", ["exists", "delete"])
@pytest.mark.parametrize("how", [hang, break_off, cancel_itself])
async def test_a_deletion_says_what_is_gone_and_what_is_left_and_can_be_repeated(
    workspace: Path, method: str, how: Any
) -> None:
    store = Unreliable(method)
    async with agent_of(workspace, ScriptedModel(["one"]), session=store) as agent:
        await agent.call("a", ALICE)
        sessions = agent.sessions("alice")
        told = "the ledger of session 's1' is deleted, its snapshot may be there"
        with down_as(store, how), pytest.raises(PersistenceError, match=told):
            await sessions.delete("s1")
        assert await sessions.list() == []
        assert await sessions.delete("s1")
        with pytest.raises(SessionNotFound):
            await sessions.history("s1")
        assert await store.list_keys(("alice",), "notes") == []


async def test_a_snapshot_that_fails_in_part_has_no_part_that_is_still_being_written() -> None:
    let_go, ended = asyncio.Event(), list[str]()

    class Slow(Unreliable):
        async def save(self, *_: Any) -> None:
            await let_go.wait()
            ended.append("saved")

    store = Slow("append")
    store.down = break_off
    writing = asyncio.create_task(_put(store, SessionKey(("alice",), "notes", "s1"), {}, {}, [{}], 0))
    await store.asked.wait()
    for _ in range(10):
        await asyncio.sleep(0)
    assert not writing.done()
    let_go.set()
    with pytest.raises(ConnectionError):
        await writing
    assert ended == ["saved"]
