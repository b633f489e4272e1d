"""A ledger that is emptied or gone, and its anchor with it, is missed as long as anything else knows of its lines."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, agent_of, context_folder, sessions_folder

from harness.errors import SessionNotFound
from harness.testing import ScriptedModel

KEY = "k" * 32


async def _lost(workspace: Path, kept: set[str], *, emptied: bool, **options: Any) -> Any:
    async with agent_of(workspace, ScriptedModel(["Yes."]), **options) as agent:
        await agent.call("hello", ALICE)
    folder = sessions_folder(workspace)
    if emptied:
        (folder / "s1.log.jsonl").write_bytes(b"")
    for path in (*folder.glob("s*"), *context_folder(workspace).glob("memory.json")):
        if path.name not in kept and not (emptied and path.name == "s1.log.jsonl"):
            path.unlink()
    return agent_of(workspace, ScriptedModel([]), **options)


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize("emptied", [True, False])
@pytest.mark.parametrize("kept", ["s1.jsonl", "memory.json"])
async def test_verify_misses_the_lines_that_another_file_names(
    tmp_path: Path, kept: str, emptied: bool, key: str | None
) -> None:
    options = {"anchor_key": key} if key else {}
    async with await _lost(tmp_path, {kept}, emptied=emptied, **options) as agent:
        report = await agent.sessions("alice").verify("s1")
    assert not report.ok
    [finding] = [finding for finding in report.findings if finding.error]
    assert finding.kind == "truncated"
    assert "missing" in finding.text


@pytest.mark.parametrize("emptied", [True, False])
@pytest.mark.parametrize("kept", ["s1.jsonl", "sessions.json", "s1.head.json", "memory.json"])
async def test_such_a_session_is_among_the_lost_ones(tmp_path: Path, kept: str, emptied: bool) -> None:
    async with await _lost(tmp_path, {kept}, emptied=emptied) as agent:
        assert await agent.sessions("alice").lost() == ["s1"]


async def test_a_deleted_session_is_not_lost_whatever_names_it(tmp_path: Path) -> None:
    async with agent_of(tmp_path, ScriptedModel(["Yes."])) as agent:
        await agent.call("hello", ALICE)
        folder = sessions_folder(tmp_path)
        await agent.sessions("alice").list()
        files = (folder / "s1.jsonl", folder / "sessions.json")
        kept = [path.read_bytes() for path in files]
        await agent.sessions("alice").delete("s1")
        for path, raw in zip(files, kept, strict=True):
            path.write_bytes(raw)
        assert await agent.sessions("alice").lost() == []
        with pytest.raises(SessionNotFound):
            await agent.sessions("alice").verify("s1")


async def test_an_empty_ledger_that_nothing_knows_of_is_no_loss(tmp_path: Path) -> None:
    async with await _lost(tmp_path, set(), emptied=True) as agent:
        assert (await agent.sessions("alice").verify("s1")).ok
        assert await agent.sessions("alice").lost() == []
