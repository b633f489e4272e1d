"""The snapshot of track 1 is taken on every way out, once, by a hook that can be left out."""

from pathlib import Path
from typing import Any

import pytest

from harness import HarnessAgent, RuntimeContext
from harness.errors import ModelRejected
from harness.hooks import SessionPersistenceHook
from harness.sessions import InMemorySession, SessionKey
from harness.testing import ScriptedModel

ALICE = RuntimeContext(session_id="s1", user_id="alice")
KEY = SessionKey(("alice",), "notes", "s1")


class Recording(InMemorySession):
    """Notes what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[tuple[str, str, int]] = []

    async def append(self, key: SessionKey, name: str, items: Any, expect_count: int) -> None:
        self.written.append(("append", name, len(items)))
        await super().append(key, name, items, expect_count)

    async def replace(self, key: SessionKey, name: str, items: Any) -> None:
        self.written.append(("replace", name, len(items)))
        await super().replace(key, name, items)


def agent_of(workspace: Path, model: ScriptedModel, store: InMemorySession, *without: str) -> HarnessAgent:
    builder = HarnessAgent.builder().name("notes").model(model).workspace(workspace).session(store)
    return builder.without("workspace_context", *without).build()


async def test_each_call_appends_what_is_new_and_names_its_place_in_the_ledger(workspace: Path) -> None:
    store = Recording()
    async with agent_of(workspace, ScriptedModel(["one", "two"]), store) as agent:
        await agent.call("a", ALICE)
        first = await store.get(KEY, "memory")
        await agent.call("b", ALICE)
        second = await store.get(KEY, "memory")
        tree = await agent.sessions("alice").tree("s1")
    assert store.written == [("append", "memory_messages", 2), ("append", "memory_messages", 2)]
    assert first is not None
    place = {"ledgerId": tree.ledger_id, "seq": tree.count, "hash": tree.last_hash, "count": 4}
    assert second == {**place, "owner": first["owner"]}
    assert (first["ledgerId"], first["count"]) == (tree.ledger_id, 2)


async def test_a_call_that_fails_is_in_the_snapshot_too(workspace: Path) -> None:
    store = Recording()
    async with agent_of(workspace, ScriptedModel([ModelRejected("no")]), store) as agent:
        with pytest.raises(ModelRejected):
            await agent.call("a", ALICE)
    assert [message["role"] for message in await store.get_list(KEY, "memory_messages")] == ["user"]


async def test_a_store_that_somebody_else_wrote_to_is_put_right(workspace: Path) -> None:
    store = Recording()
    async with agent_of(workspace, ScriptedModel(["one", "two"]), store) as agent:
        await agent.call("a", ALICE)
        stray = {"id": "stray", "role": "user", "content": [{"type": "text", "text": "stray"}]}
        await InMemorySession.append(store, KEY, "memory_messages", [stray], 2)
        await agent.call("b", ALICE)
    texts = [message["content"][0]["text"] for message in await store.get_list(KEY, "memory_messages")]
    assert texts == ["a", "one", "b", "two"]


async def test_without_the_hook_nothing_is_written_to_track_1(workspace: Path) -> None:
    store = Recording()
    async with agent_of(workspace, ScriptedModel(["one", "two"]), store, "session_persistence") as agent:
        await agent.call("a", ALICE)
        assert (await agent.call("b", ALICE)).text == "two"
    assert (store.written, await store.exists(KEY)) == ([], False)


def test_it_comes_after_the_users_own_hooks() -> None:
    assert SessionPersistenceHook.priority == 900
