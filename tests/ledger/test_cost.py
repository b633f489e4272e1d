"""What a turn touches does not grow with the conversation, counted in bytes read and lines looked at."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, agent_of, sessions_folder

from harness import RuntimeContext
from harness.agent import open_session
from harness.filesystem import disk
from harness.hooks import CompactionConfig
from harness.sessions import SessionCatalog, SessionTree
from harness.sessions.lines.entries import Entry
from harness.testing import ScriptedModel

NEVER = CompactionConfig(trigger_messages=10**9, keep_messages=2)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, int]]]:
    """Name and size of everything read from a disk while the test asks for it."""
    seen: list[tuple[str, int]] = []
    real = disk.read

    def read(path: Path, *where: Any, **more: Any) -> bytes:
        data = real(path, *where, **more)
        seen.append((path.name, len(data)))
        return data

    monkeypatch.setattr(disk, "read", read)
    return seen


async def long_session(folder: Path, messages: int, *, boundary: bool = True) -> None:
    """A session `s1` of that many messages of 1 KB, compacted to its last two turns."""
    tree = SessionTree(folder, "s1", agent="notes", namespace=("alice",))
    async with tree.writing():
        for number in range(messages // 2):
            tree.add_message(_message(number, "user"), via="user")
            tree.add_message(_message(number, "assistant"), via="repair")
            if number % 2000 == 1999:
                await tree.commit(sync=False)
        turns = tree.view().turns
        if boundary:
            tree.append_compaction("They talked.", turns[0].id, turns[-3].id, "m", 1)
        await tree.commit()


def _message(number: int, role: str) -> dict[str, Any]:
    return {"id": f"{role}{number}", "role": role, "content": [{"type": "text", "text": f"{number} " + "x" * 1000}]}


def new_process() -> None:
    open_session._cache._open.clear()


@pytest.mark.slow
async def test_the_next_turn_of_a_session_of_100_000_messages_reads_kilobytes(workspace: Path, reads: Any) -> None:
    await long_session(sessions_folder(workspace), 100_000)
    path = sessions_folder(workspace) / "s1.log.jsonl"
    assert path.stat().st_size > 100_000_000
    listed = {"s1": {"title": "t", "summary": "", "createdAt": "2026-01-01T00:00:00.000000Z",
                     "updatedAt": "2026-01-01T00:00:00.000000Z", "turns": 1}}  # fmt: skip
    anchor = json.loads((sessions_folder(workspace) / "s1.head.json").read_bytes())
    counted = {"s1": {"seq": anchor["count"] + 1, "offset": anchor["bytes"]}}
    # An index of an older version has no `counted`; there all of the ledger is read once.
    index = {"version": 1, "sessions": listed, "counted": counted}
    (sessions_folder(workspace) / "sessions.json").write_text(json.dumps(index))
    new_process()
    reads.clear()
    model = ScriptedModel(["done", "again"])
    async with agent_of(workspace, model, compaction=NEVER) as agent:
        await agent.call("on", ALICE, idempotency_key="never seen")
    assert sum(size for _, size in reads) < 32_000
    assert len(model.requests[0].messages) == 6


async def test_a_running_session_is_not_read_again(
    workspace: Path, reads: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SessionCatalog, "note_turn", lambda *_, **__: None)  # the list reads what is new, in its time
    model = ScriptedModel([f"answer {n}" for n in range(9)])
    async with agent_of(workspace, model, compaction=NEVER) as agent:
        await agent.call("first", ALICE)
        await agent.call("second", ALICE)
        reads.clear()
        for n in range(5):
            await agent.call(f"q{n}", ALICE)
        assert [name for name, _ in reads if name.startswith("s1")] == []


async def test_a_key_behind_a_boundary_costs_its_turn(workspace: Path, reads: Any) -> None:
    model = ScriptedModel(["first answer"])
    async with agent_of(workspace, model) as agent:
        await agent.call("first", ALICE, idempotency_key="k")
    await long_session(sessions_folder(workspace), 2_000)
    new_process()
    reads.clear()
    async with agent_of(workspace, ScriptedModel()) as agent:
        assert (await agent.call("first", ALICE, idempotency_key="k")).text == "first answer"
    assert max(size for _, size in reads) <= 64 * 1024


async def test_the_list_of_ten_thousand_sessions_reads_no_ledger(workspace: Path, reads: Any) -> None:
    folder = sessions_folder(workspace)
    folder.mkdir(parents=True)
    info = {"title": "t", "summary": "", "createdAt": "2026-01-01T00:00:00.000000Z",
            "updatedAt": "2026-01-01T00:00:00.000000Z", "turns": 1}  # fmt: skip
    header = {"type": "header", "id": "h", "seq": 1, "format": 1, "agent": "notes", "tenant": ["alice"]}
    for number in range(10_000):
        (folder / f"s{number}.log.jsonl").write_text(json.dumps({**header, "session": f"s{number}"}) + "\n")
    index = {"version": 1, "sessions": {f"s{number}": info for number in range(10_000)}}
    (folder / "sessions.json").write_text(json.dumps(index))
    async with agent_of(workspace, ScriptedModel()) as agent:
        reads.clear()
        found = await agent.sessions("alice").list()
    assert len(found) == 10_000
    assert {name for name, _ in reads} == {"sessions.json"}


class Counted(list[Entry]):
    """A path that counts how often somebody looks at one of its lines."""

    looks = 0

    def __iter__(self) -> Iterator[Entry]:
        for item in super().__iter__():
            self.looks += 1
            yield item

    def __reversed__(self) -> Iterator[Entry]:
        for item in super().__reversed__():
            self.looks += 1
            yield item

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        self.looks += len(found) if isinstance(key, slice) else 1
        return found


async def looks_per_turn(folder: Path, messages: int) -> int:
    await long_session(folder, messages, boundary=False)
    tree = SessionTree(folder, "s1", agent="notes", namespace=("alice",))
    async with tree.writing():
        tree.add("event", {"kind": "warning", "data": {}})
        tree.add_message({"id": "w", "role": "user", "content": [{"type": "text", "text": "warm"}]}, via="user")
        await tree.commit()  # compares the copies with the ledger, once a process
        tree._store.conversation.path = path = Counted(tree._store.conversation.path)
        tree.add_message({"id": "u", "role": "user", "content": [{"type": "text", "text": "q"}]}, via="user")
        binding = tree.bind([], [], "m", "p")
        request = tree.begin_request("execute", 1, binding, tree.messages(), tree.turn, "compaction")
        await tree.commit(sync=False)
        tree.add_message({"id": "a", "role": "assistant", "content": []}, via="model", request=request)
        tree.end_request(request, "completed")
        tree.add_card(str(tree.turn), "completed")
        assert tree.answered("never seen") is None
        await tree.commit()
        return path.looks


async def test_adding_to_an_uncompacted_conversation_does_not_go_over_it(tmp_path: Path) -> None:
    short, long = await looks_per_turn(tmp_path / "a", 20), await looks_per_turn(tmp_path / "b", 2_000)
    assert long <= short + 5


async def test_bytes_written_for_a_turn_do_not_grow(workspace: Path) -> None:
    folder, sizes = sessions_folder(workspace), []
    other = RuntimeContext(session_id="s1", user_id="alice")
    async with agent_of(workspace, ScriptedModel([f"{n:04}" for n in range(400)]), compaction=NEVER) as agent:
        for n in range(120):
            before = (folder / "s1.log.jsonl").stat().st_size if n else 0
            await agent.call(f"{n:04}", other)
            sizes.append((folder / "s1.log.jsonl").stat().st_size - before)
    assert max(sizes[2:]) - min(sizes[2:]) <= 40
