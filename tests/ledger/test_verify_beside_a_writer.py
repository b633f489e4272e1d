"""Whoever verifies a session while it is begun, goes on, is deleted or begins anew is told of no damage."""

import shutil
import sys
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, agent_of, sessions_folder

from harness.agent import open_session
from harness.errors import SessionNotFound
from harness.sessions import SessionCache
from harness.sessions.checking import verify
from harness.sessions.lines.anchor import Anchor, read_anchor
from harness.testing import ScriptedModel

STATES = ["begun", "one turn", "two turns", "deleted", "begun anew", "a turn anew"]
"""What becomes of a session, in this order."""


@pytest.fixture
async def states(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """A copy of its folder in each state."""
    folder, copies = sessions_folder(workspace).parent, {}

    def keep(state: str, *without: str) -> None:
        copies[state] = shutil.copytree(folder, tmp_path / state, ignore=shutil.ignore_patterns(*without))

    async def turn(state: str, before: str, *without: str) -> None:
        def asked(*_: object) -> str:
            keep(before, *without)
            return "Yes."

        monkeypatch.setattr(open_session, "_cache", SessionCache())
        async with agent_of(workspace, ScriptedModel([asked])) as agent:
            await agent.call("And?", ALICE)
        keep(state)

    await turn("one turn", "begun")
    await turn("two turns", "in the second turn")
    async with agent_of(workspace, ScriptedModel()) as agent:
        await agent.sessions("alice").delete("s1")
    keep("deleted")
    await turn("a turn anew", "begun anew")
    return copies


def changing(workspace: Path, later: Path, real: Callable[[Path], Anchor | None]) -> Callable[[Path], Anchor | None]:
    """Reads an anchor; directly after the first one the session goes on to another state."""
    times = iter([True])

    def read(path: Path) -> Anchor | None:
        anchor = real(path)
        if next(times, False):
            shutil.rmtree(sessions_folder(workspace).parent)
            shutil.copytree(later, sessions_folder(workspace).parent)
        return anchor

    return read


@pytest.mark.parametrize(("before", "later"), [*combinations(STATES, 2)])
async def test_what_changes_while_it_is_read_is_no_damage(
    workspace: Path, states: dict[str, Path], before: str, later: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(sessions_folder(workspace).parent)
    shutil.copytree(states[before], sessions_folder(workspace).parent)
    monkeypatch.setattr(verify, "read_anchor", changing(workspace, states[later], read_anchor))
    async with agent_of(workspace, ScriptedModel()) as agent:
        if later == "deleted":
            with pytest.raises(SessionNotFound):
                await agent.sessions("alice").verify("s1")
        else:
            assert (await agent.sessions("alice").verify("s1")).ok


async def test_what_is_wrong_with_a_session_that_is_written_to_is_told(
    workspace: Path, states: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = states["two turns"] / "sessions/s1.log.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b"Yes.", b"No!!"))
    monkeypatch.setattr(verify, "read_anchor", changing(workspace, states["two turns"], read_anchor))
    async with agent_of(workspace, ScriptedModel()) as agent:
        assert not (await agent.sessions("alice").verify("s1")).ok
