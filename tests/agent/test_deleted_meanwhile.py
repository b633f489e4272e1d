"""A session that is deleted while an operation on it waits: the operation has not happened, and nothing comes back."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agentkit import ALICE, Held, agent_of, sessions_folder, until

from harness.agent.gate import process_gate
from harness.errors import SessionNotFound
from harness.sessions.catalog.session_catalog import SessionCatalog
from harness.testing import ScriptedModel

CHANGES = {
    "rename": lambda sessions, entry, out: sessions.rename("s1", "title"),
    "label": lambda sessions, entry, out: sessions.label("s1", entry, "name"),
    "branch": lambda sessions, entry, out: sessions.branch("s1", entry),
    "repair": lambda sessions, entry, out: sessions.repair("s1"),
    "compact": lambda sessions, entry, out: sessions.compact("s1"),
    "switch": lambda sessions, entry, out: sessions.switch_model("s1", "offline", compact=False),
}
READS = {
    "fork": lambda sessions, entry, out: sessions.fork("s1"),
    "export": lambda sessions, entry, out: sessions.export("s1", out),
    "handoff": lambda sessions, entry, out: sessions.handoff("s1"),
    "usage": lambda sessions, entry, out: sessions.usage("s1"),
    "tree": lambda sessions, entry, out: sessions.tree("s1"),
    "branches": lambda sessions, entry, out: sessions.branches("s1"),
    "labels": lambda sessions, entry, out: sessions.labels("s1"),
}


@pytest.mark.parametrize("name", [*CHANGES, *READS])
async def test_what_was_there_a_moment_ago_is_not_found(tmp_path: Path, name: str, monkeypatch: Any) -> None:
    exists = SessionCatalog.exists

    async def then_deleted(catalog: SessionCatalog, session_id: str) -> bool:
        found = await exists(catalog, session_id)
        await agent.sessions("alice").delete(session_id)
        return found

    async with agent_of(tmp_path, ScriptedModel(["Yes."])) as agent:
        call = agent.call("hello", ALICE)
        await call
        monkeypatch.setattr(SessionCatalog, "exists", then_deleted)
        with pytest.raises(SessionNotFound, match="s1") as raised:
            await (CHANGES | READS)[name](agent.sessions("alice"), call.entry_id, tmp_path / "x.zip")
        assert str(tmp_path) not in str(raised.value)
        assert await agent.sessions("alice").list() == []
    assert not [*sessions_folder(tmp_path).glob("*.jsonl")]


@pytest.mark.parametrize("name", CHANGES)
async def test_an_operation_that_waits_behind_a_deletion_brings_nothing_back(tmp_path: Path, name: str) -> None:
    step = Held()
    async with agent_of(tmp_path, ScriptedModel(["Yes.", step])) as agent:
        sessions, first = agent.sessions("alice"), agent.call("hello", ALICE)
        await first
        running = asyncio.ensure_future(_reply(agent, "more"))
        await step.asked.wait()
        tasks = []
        for asked in (sessions.delete("s1"), CHANGES[name](sessions, first.entry_id, None)):
            tasks.append(asyncio.ensure_future(asked))
            await until(lambda: _waiting() == len(tasks))
        step.let_go.set()
        deleted, changed, _ = await asyncio.gather(*tasks, running, return_exceptions=True)
        assert deleted is True
        assert isinstance(changed, SessionNotFound)
        assert await sessions.list() == []


def _waiting() -> int:
    return sum(len(queue.waiting) for queue in process_gate()._queues.values())


async def _reply(agent: Any, text: str) -> Any:
    return await agent.call(text, ALICE)


async def test_a_tree_that_is_kept_says_of_a_deleted_session_that_it_is_not_there(tmp_path: Path) -> None:
    async with agent_of(tmp_path, ScriptedModel(["Yes."])) as agent:
        await agent.call("hello", ALICE)
        tree = await agent.sessions("alice").tree("s1")
        request = next(entry.id for entry in tree.path() if entry.kind == "request_begin")
        await agent.sessions("alice").delete("s1")
        for ask in (tree.branches, tree.notes, lambda: tree.context_at(request)):
            with pytest.raises(SessionNotFound, match="s1"):
                await ask()
