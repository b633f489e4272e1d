"""An anchor that cannot be written: the lines are stored, who called is told, and the next call that can mends it."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, agent_of, sessions_folder

from harness import HarnessAgent
from harness.agent import open_session
from harness.errors import PersistenceError, SessionNotFound
from harness.filesystem import disk
from harness.filesystem.archives import write_blocks
from harness.sessions import SessionCache
from harness.sessions.moving import importing
from harness.testing import ScriptedModel

TOLD = (
    "session 's1': all is stored, but the anchor of its ledger could not be written (no room); until a call can, nobody "
    "can prove that no line is missing at the end"
)


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """While it holds anything, no anchor can be written."""
    refusing: list[str] = []

    def refused(real: Any) -> Any:
        def write(path: Path, *rest: Any, **more: Any) -> Any:
            if refusing and path.name.endswith(".head.json"):
                raise PersistenceError(refusing[0])
            return real(path, *rest, **more)

        return write

    monkeypatch.setattr(disk, "write_block", refused(disk.write_block))
    monkeypatch.setattr(importing, "write_blocks", refused(write_blocks))
    yield refusing
    open_session._cache = SessionCache()


async def warnings_of(agent: HarnessAgent) -> list[str]:
    call = agent.call("And?", ALICE)
    await call
    return call.warnings


@pytest.mark.parametrize("turns", [0, 1, 2])
async def test_the_caller_is_told_until_a_call_can_write_it(workspace: Path, full: list[str], turns: int) -> None:
    async with agent_of(workspace, ScriptedModel(["Yes."] * 6)) as agent:
        for _ in range(turns):
            assert await warnings_of(agent) == []
        full.append("no room")
        assert await warnings_of(agent) == [TOLD]
        assert await warnings_of(agent) == [TOLD]
        full.clear()
        assert await warnings_of(agent) == []
        report = await agent.sessions("alice").verify("s1")
    assert (report.ok, report.findings) == (True, ())


async def test_after_the_first_turn_a_new_process_mends_it_and_says_nothing(workspace: Path, full: list[str]) -> None:
    async with agent_of(workspace, ScriptedModel(["Yes."] * 6)) as agent:
        full.append("no room")
        assert await warnings_of(agent) == [TOLD]
        assert (await agent.sessions("alice").verify("s1")).ok
    full.clear()
    open_session._cache = SessionCache()
    async with agent_of(workspace, ScriptedModel(["Yes."] * 6)) as agent:
        assert await warnings_of(agent) == []
        assert (await agent.sessions("alice").verify("s1")).findings == ()


async def test_a_session_is_handed_over_with_its_anchor_or_not_at_all(workspace: Path, full: list[str]) -> None:
    async with agent_of(workspace, ScriptedModel(["Yes."] * 6)) as agent:
        await agent.call("And?", ALICE)
        sessions, before = agent.sessions("alice"), sorted(sessions_folder(workspace).iterdir())
        full.append("no room")
        with pytest.raises(PersistenceError, match="no room"):
            await sessions.handoff("s1", "next")
        with pytest.raises(SessionNotFound):
            await sessions.verify("next")
        assert [path for path in sessions_folder(workspace).iterdir() if path not in before and path.is_dir()] == []
        full.clear()
        assert await sessions.handoff("s1", "next") == "next"
        assert (await sessions.verify("next")).findings == ()
