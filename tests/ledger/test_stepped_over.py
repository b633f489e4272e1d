"""A call on a damaged session says what it has to do without, once, and what to run."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, agent_of, sessions_folder

from harness.agent import open_session
from harness.sessions.cache import SessionCache
from harness.testing import ScriptedModel


@pytest.fixture
async def ledger(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of two turns; the next call reads it as a new process does."""
    async with agent_of(workspace, ScriptedModel(["Hello.", "Fine."])) as agent:
        await agent.call("I am Alice.", ALICE)
        await agent.call("How are you?", ALICE)
    monkeypatch.setattr(open_session, "_cache", SessionCache())
    return sessions_folder(workspace) / "s1.log.jsonl"


def edit(ledger: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    ledger.write_bytes(b"\n".join(change(ledger.read_bytes().split(b"\n"))))


async def warnings_of_next(workspace: Path) -> list[str]:
    async with agent_of(workspace, ScriptedModel(["Yes."])) as agent:
        call = agent.call("And now?", ALICE)
        await call
        return call.warnings


async def test_unreadable_lines_are_counted_and_placed(workspace: Path, ledger: Path) -> None:
    edit(ledger, lambda lines: [lines[0], lines[1][:-1] + b"?", *lines[2:4], b"\xff" * len(lines[4]), *lines[5:]])
    [told] = await warnings_of_next(workspace)
    assert told == (
        "session 's1': 2 damaged places were stepped over: line 2 (bad), line 5 (bad); "
        "`harness sessions verify s1` says what is missing"
    )


async def test_a_line_that_a_crash_cut_short_is_no_loss(workspace: Path, ledger: Path) -> None:
    with ledger.open("ab") as file:
        file.write(b'{"type":"mess')
    assert await warnings_of_next(workspace) == []
    open_session._cache = SessionCache()
    assert await warnings_of_next(workspace) == []


async def test_a_cut_end_is_told_until_the_ledger_notes_it(workspace: Path, ledger: Path) -> None:
    edit(ledger, lambda lines: [*lines[:-3], b""])
    first, *_ = await warnings_of_next(workspace)
    assert first.startswith("session 's1': 1 damaged place was stepped over: line ")
    assert "(truncated)" in first
    assert await warnings_of_next(workspace) == []
