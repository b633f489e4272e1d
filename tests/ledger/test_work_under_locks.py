"""Whatever a worker does to the files of a session, it does while the session's lock stays with it.

Else the lock of a call whose event loop was closed would go to the next call while a worker still writes or renames.
"""

import os
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, agent_of, context_folder, sessions_folder

from harness import HarnessAgent
from harness.filesystem import locks
from harness.testing import ScriptedModel

LONG = "a contract " * 30_000
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
Operation = Callable[[HarnessAgent, Path], Awaitable[Any]]


class Watch:
    """Notes each change of a file of session `s1` that a worker makes without keeping the session's lock."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.free: list[str] = []
        self.kept: list[str] = []

    def see(self, action: str, path: Any) -> None:
        path = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
        name = os.path.relpath(path, self._folder) if path else ""
        ours = name.startswith("s1.") and name != "s1.lock"
        if ours and threading.current_thread().name.startswith("harness-files"):
            kept = any(lock.path == self._folder / "s1.lock" and lock._at_work for lock in locks._all_held())
            (self.kept if kept else self.free).append(f"{action} {name}")


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    watch = Watch(sessions_folder(tmp_path / "w"))

    def watched(name: str, which: slice) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(*args: Any, **options: Any) -> Any:
            if name != "open" or args[1] & WRITES:
                for path in args[which]:
                    watch.see(name, path)
            return real(*args, **options)

        return call

    for name in ("open", "unlink", "remove", "rmdir", "mkdir", "truncate"):
        monkeypatch.setattr(os, name, watched(name, slice(1)))
    for name in ("rename", "replace", "link"):
        monkeypatch.setattr(os, name, watched(name, slice(2)))
    return watch


def damaged(folder: Path) -> None:
    for name in ("s1.jsonl", "s1.head.json"):
        (folder / name).write_bytes(b"damaged\n")


async def repairing(agent: HarnessAgent, workspace: Path) -> Any:
    damaged(sessions_folder(workspace))
    report = await agent.sessions("alice").repair("s1")
    assert [line for line in report.done if "kept as" in line]


async def importing(agent: HarnessAgent, workspace: Path) -> None:
    await agent.sessions("alice").export("s1", workspace.parent / "bundle")
    await agent.sessions("alice").delete("s1")
    await agent.sessions("alice").import_session(workspace.parent / "bundle")


async def copying(agent: HarnessAgent, workspace: Path) -> None:
    await agent.sessions("alice").fork("s1", to="s2")
    await agent.sessions("alice").delete("s1")
    await agent.sessions("alice").fork("s2", to="s1")


async def finishing(agent: HarnessAgent, workspace: Path) -> None:
    (sessions_folder(workspace) / "s1.log.jsonl").rename(sessions_folder(workspace) / "s1.log.jsonl.deleted")
    await agent.call("again", ALICE)


async def branching(agent: HarnessAgent, workspace: Path) -> None:
    call = agent.call("again", ALICE)
    await call
    await agent.sessions("alice").branch("s1", str(call.entry_id))


OPERATIONS: dict[str, Operation] = {
    "call": lambda agent, _: agent.call("again", ALICE),
    "call with contents": lambda agent, _: agent.call(LONG + "again", ALICE),
    "repair": repairing,
    "delete": lambda agent, _: agent.sessions("alice").delete("s1"),
    "import": importing,
    "fork": copying,
    "a deletion that was cut off": finishing,
    "branch": branching,
    "rename": lambda agent, _: agent.sessions("alice").rename("s1", "Monday"),
}


@pytest.mark.parametrize("what", OPERATIONS)
async def test_a_worker_changes_files_of_a_session_only_while_its_lock_stays_with_it(
    tmp_path: Path, watch: Watch, what: str
) -> None:
    workspace = tmp_path / "w"
    async with agent_of(workspace, ScriptedModel(["ok"] * 3)) as agent:
        await agent.call(LONG, ALICE)
        assert context_folder(workspace).exists()
        await OPERATIONS[what](agent, workspace)
    assert watch.free == []
    assert watch.kept
