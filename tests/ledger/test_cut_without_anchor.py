"""Of a ledger whose anchor is gone, what was made from it still tells that there was more of it."""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, agent_of, sessions_folder

from harness.agent import open_session
from harness.filesystem import disk
from harness.sessions import SessionCache
from harness.testing import ScriptedModel

TURNS = 3


@pytest.fixture
async def folder(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That of a session of some turns, without its anchor; nobody remembers it."""
    async with agent_of(workspace, ScriptedModel(["Yes."] * TURNS)) as agent:
        for number in range(TURNS):
            await agent.call(f"Question {number}?", ALICE)
    monkeypatch.setattr(open_session, "_cache", SessionCache())
    (sessions_folder(workspace) / "s1.head.json").unlink()
    return sessions_folder(workspace)


def lines_of(folder: Path) -> list[bytes]:
    return (folder / "s1.log.jsonl").read_bytes().splitlines(keepends=True)


def cut(folder: Path, turns: int) -> None:
    """Leave the lines of so many turns."""
    lines = lines_of(folder)
    starts = [number for number, line in enumerate(lines) if json.loads(line).get("via") == "user"]
    (folder / "s1.log.jsonl").write_bytes(b"".join(lines[: starts[turns]]))


def forget(folder: Path, what: str) -> None:
    if what == "context file":
        (folder / "s1.jsonl").unlink()
    elif what == "snapshot":
        shutil.rmtree(folder.parent / "context")


@pytest.mark.parametrize("turns", range(1, TURNS))
@pytest.mark.parametrize("gone", ["nothing", "context file", "snapshot"])
async def test_a_cut_ledger_without_an_anchor_is_told_by_verify_and_by_the_next_call(
    workspace: Path, folder: Path, turns: int, gone: str
) -> None:
    cut(folder, turns)
    forget(folder, gone)
    async with agent_of(workspace, ScriptedModel(["Yes."])) as agent:
        report = await agent.sessions("alice").verify("s1")
        assert "truncated" in [each.kind for each in report.findings if each.error]
        call = agent.call("And?", ALICE)
        await call
        assert any("(truncated); verify the session" in warning for warning in call.warnings)
        report = await agent.sessions("alice").verify("s1")
        assert [each.kind for each in report.findings if each.noted] == ["truncated"]


async def test_what_another_ledger_left_behind_says_nothing_of_this_one(workspace: Path, folder: Path) -> None:
    cut(folder, 1)
    for name in ("s1.jsonl", "../context/s1/memory.json"):
        other = json.loads(lines_of(folder)[0])["ledgerId"][::-1]
        text = (folder / name).read_text()
        (folder / name).write_text(text.replace(other[::-1], other))
    async with agent_of(workspace, ScriptedModel()) as agent:
        assert (await agent.sessions("alice").verify("s1")).ok


async def test_a_writer_that_has_made_the_copies_and_not_yet_the_anchor_is_no_damage(
    workspace: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = shutil.copytree(folder, tmp_path / "later")
    cut(folder, 1)
    kept = [line for line in (folder / "s1.jsonl").read_bytes().splitlines(keepends=True) if b"Question 0" in line]
    first = (folder / "s1.jsonl").read_bytes().splitlines(keepends=True)[0]
    (folder / "s1.jsonl").write_bytes(first + b"".join(kept))
    shutil.rmtree(folder.parent / "context")
    real = disk.read_blocks

    def read(path: Path, *sizes: int) -> Iterator[bytes]:
        yield from real(path, *sizes)
        shutil.copytree(later, folder, dirs_exist_ok=True)

    monkeypatch.setattr(disk, "read_blocks", read)
    async with agent_of(workspace, ScriptedModel()) as agent:
        assert (await agent.sessions("alice").verify("s1")).ok
