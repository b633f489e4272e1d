"""A content that a damaged or lost session still needs stays when another session that names it is deleted."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import agent_of, sessions_folder

from harness import RuntimeContext
from harness.messages import Media, MediaBlock, Msg
from harness.testing import ScriptedModel

BIG = "a contract " * 30_000
PICTURE = MediaBlock(type="image", media=Media.from_bytes(b"\x89PNG" * 100, "image/png"))


def _removed(ledger: Path) -> None:
    ledger.unlink()


def _emptied(ledger: Path) -> None:
    ledger.write_bytes(b"")


def _zeros(ledger: Path) -> None:
    ledger.write_bytes(bytes(ledger.stat().st_size))


def _cut(ledger: Path) -> None:
    os.truncate(ledger, ledger.read_bytes().index(b"\n") + 1)


def _folder(ledger: Path) -> None:
    ledger.unlink()
    ledger.mkdir()


def _only_set_aside(ledger: Path) -> None:
    ledger.with_name("kept.jsonl").unlink()
    ledger.rename(ledger.with_name(f"{ledger.name}.damaged-20260101T000000Z-aaaa"))


@pytest.mark.parametrize("lose", [_removed, _emptied, _zeros, _cut, _folder, _only_set_aside])
async def test_what_a_lost_session_needs_outlives_the_deletion_of_another(tmp_path: Path, lose: Any) -> None:
    async with agent_of(tmp_path, ScriptedModel(["ok", "ok"])) as agent:
        for session in ("gone", "kept"):
            await agent.call(Msg.user(BIG, PICTURE), RuntimeContext(session_id=session, user_id="alice"))
    folder = sessions_folder(tmp_path)
    raw = (folder / "kept.log.jsonl").read_bytes()
    lose(folder / "kept.log.jsonl")
    async with agent_of(tmp_path, ScriptedModel([])) as agent:
        assert await agent.sessions("alice").delete("gone")
        assert len([*folder.glob("files/??/*")]) == 2
        if (folder / "kept.log.jsonl").is_dir():
            (folder / "kept.log.jsonl").rmdir()
        (folder / "kept.log.jsonl").write_bytes(raw)
        assert (await agent.sessions("alice").verify("kept")).ok
        await agent.sessions("alice").delete("kept")
    for path in folder.glob("kept.*damaged*"):
        path.unlink()
    assert [*folder.glob("files/??/*")] == []
