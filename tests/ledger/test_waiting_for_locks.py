"""Whatever waits for a lock that somebody else holds, it waits outside of the workers: other tenants are served."""

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, BOB, agent_of, sessions_folder, until

from harness import HarnessAgent
from harness.filesystem import FileLock, local_tree
from harness.sessions.catalog import session_catalog
from harness.testing import ScriptedModel

MANY = 12  # twice as many as there are workers
PATIENCE = 300.0  # seconds, which nobody waits
LONG = "a contract " * 30_000
Operation = Callable[[HarnessAgent, str, Path], Awaitable[Any]]


def files_of(agent: HarnessAgent) -> Any:
    return agent.config.filesystem.for_namespace(("alice",))


def importing(agent: HarnessAgent, name: str, bundle: Path) -> Awaitable[Any]:
    return agent.sessions("alice").import_session(bundle, session_id=f"new-{name}", take_over=True)


FORK: Operation = lambda agent, name, _: agent.sessions("alice").fork("s1", to=f"new-{name}")  # noqa: E731
DELETE: Operation = lambda agent, name, _: agent.sessions("alice").delete(name)  # noqa: E731
CALL: Operation = lambda agent, name, _: agent.call(LONG + name, ALICE.with_changes(session_id=name))  # noqa: E731
OPERATIONS: dict[str, tuple[str, Operation]] = {
    "forks": ("new-{}.lock", FORK),
    "imports": ("new-{}.lock", importing),
    "handoffs": ("new-{}.lock", lambda agent, name, _: agent.sessions("alice").handoff("s1", to=f"new-{name}")),
    "deletions": ("{}.lock", DELETE),
    "repairs": ("{}.lock", lambda agent, name, _: agent.sessions("alice").repair(name)),
    "titles": ("{}.lock", lambda agent, name, _: agent.sessions("alice").rename(name, "Monday")),
    "calls": ("{}.lock", CALL),
    "forks of contents": ("files/files.lock", FORK),
    "imports of contents": ("files/files.lock", importing),
    "deletions of contents": ("files/files.lock", DELETE),
    "calls with contents": ("files/files.lock", CALL),
    "lists": ("sessions.json.lock", lambda agent, *_: agent.sessions("alice").list()),
    "edits": ("../../edit.lock", lambda agent, name, _: files_of(agent).append(f"{name}.md", "text")),
}


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The locks that were asked for and not had."""
    for module, name in ((local_tree, "_TURN_TIMEOUT"), (session_catalog, "_LOCK_SECONDS")):
        monkeypatch.setattr(module, name, PATIENCE)
    found: set[int] = set()
    real = FileLock._try_once

    def seen(lock: FileLock) -> bool:
        had = real(lock)
        if not had:
            found.add(id(lock))
        return had

    monkeypatch.setattr(FileLock, "_try_once", seen)
    return found


@pytest.mark.parametrize("what", OPERATIONS)
async def test_others_are_served_while_many_wait_for_locks(tmp_path: Path, refused: set[int], what: str) -> None:
    place, operation = OPERATIONS[what]
    names = [f"s1-{number}" for number in range(MANY)]
    bundle = tmp_path / "bundle"
    async with agent_of(tmp_path / "w", ScriptedModel(["ok"] * (MANY + 2)), gate_timeout=PATIENCE) as agent:
        await agent.call(LONG, ALICE)
        await agent.sessions("alice").export("s1", bundle)
        for name in names:
            await agent.sessions("alice").fork("s1", to=name)
        await agent.sessions("alice").list()
        held = {sessions_folder(tmp_path / "w") / place.format(name) for name in names}
        async with contextlib.AsyncExitStack() as stack:
            for path in held:
                await stack.enter_async_context(FileLock(path).held_for(1))
            waiting = [asyncio.ensure_future(_done(operation(agent, name, bundle))) for name in names]
            await until(lambda: len(refused) >= 6)
            assert (await agent.call("hello", BOB)).text == "ok"
            assert not [task for task in waiting if task.done()]
        await asyncio.gather(*waiting)


async def _done(operation: Awaitable[Any]) -> None:
    await operation
