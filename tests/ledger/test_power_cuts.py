"""A power cut at every point of a conversation, with unsynced writes lost or reordered across files (promise 2)."""

import logging
import os
from pathlib import Path

import pytest

from harness.errors import ConfigError
from harness.testing import CommittedTurn, DiskRecorder, Loss, check_session

TURNS = 8  # a turn of each kind, and a compaction


async def record(conversation, workspace: Path, new_process, turns: int = TURNS) -> DiskRecorder:
    recorder = DiskRecorder(workspace)
    new_process()
    with recorder.recording():
        async with conversation.build(workspace) as agent:
            for number in range(1, turns + 1):
                reply = await agent.call(conversation.message_of(number), conversation.context_of("s"))
                recorder.promise(CommittedTurn(number, conversation.prompt_of(number), reply.text))
    return recorder


async def problems_after(
    conversation, recorder: DiskRecorder, point: int, loss: Loss, place: Path, new_process
) -> list[str]:
    recorder.leave(point, loss, place)
    new_process()
    async with conversation.build(place) as agent:
        check = await check_session(
            agent, conversation.context_of("s"), recorder.promised(point), prompt="turn 9 state, please", power_cut=True
        )
        verified = await agent.sessions("alice").verify("s")
    return [*check.problems, *(f"{found.kind}: {found.text}" for found in verified.findings if found.error)]


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "every"), [("everything", 1), ("something", 2)])
async def test_no_point_of_a_conversation_loses_a_promised_turn(
    conversation, tmp_path, new_process, caplog, loss, every
):
    caplog.set_level(logging.CRITICAL)
    recorder = await record(conversation, tmp_path / "w", new_process)
    assert recorder.points > 150
    assert len(recorder.promised(recorder.points)) == TURNS
    for point in range(0, recorder.points + 1, every):
        cut = Loss() if loss == "everything" else Loss(seed=point)
        problems = await problems_after(conversation, recorder, point, cut, tmp_path / f"left {point}", new_process)
        assert problems == [], f"point {point}, after {recorder.describe(point)}"


@pytest.mark.slow
async def test_holes_in_what_was_not_synced_lose_no_promised_turn(conversation, tmp_path, new_process, caplog):
    """Some file systems may lose earlier bytes of a file and keep later ones; verify may then name the hole."""
    caplog.set_level(logging.CRITICAL)
    recorder = await record(conversation, tmp_path / "w", new_process)
    for point in range(0, recorder.points + 1, 4):
        recorder.leave(point, Loss(seed=point, holes=True), tmp_path / f"left {point}")
        new_process()
        async with conversation.build(tmp_path / f"left {point}") as agent:
            promised = recorder.promised(point)
            await agent.call("turn 9 state, please", conversation.context_of("s"))
            texts = [message.text for message in await agent.sessions("alice").history("s", 1000)]
        assert {turn.reply for turn in promised} <= set(texts), f"point {point}, {recorder.describe(point)}"


async def test_a_library_that_forgets_to_sync_is_caught(conversation, tmp_path, new_process, monkeypatch, caplog):
    caplog.set_level(logging.CRITICAL)
    monkeypatch.setattr("harness.filesystem.appending.sync_descriptor", lambda descriptor: None)
    recorder = await record(conversation, tmp_path / "w", new_process, turns=1)
    problems = await problems_after(conversation, recorder, recorder.points, Loss(), tmp_path / "left", new_process)
    assert "the prompt of committed turn 1 is in the ledger 0 times" in problems


async def test_a_library_that_forgets_to_sync_the_folder_is_caught(
    conversation, tmp_path, new_process, monkeypatch, caplog
):
    caplog.set_level(logging.CRITICAL)
    monkeypatch.setattr("harness.filesystem.appending.sync_folder", lambda path: None)
    recorder = await record(conversation, tmp_path / "w", new_process, turns=1)
    problems = await problems_after(conversation, recorder, recorder.points, Loss(), tmp_path / "left", new_process)
    assert "the reply of committed turn 1 is in the ledger 0 times" in problems


def test_the_recorder_keeps_what_was_synced_and_loses_the_rest(tmp_path):
    recorder = DiskRecorder(tmp_path / "w")
    with recorder.recording():
        os.mkdir(tmp_path / "w")
        parent = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(parent)
        os.close(parent)
        file = os.open(tmp_path / "w/a", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, b"synced")
        os.fdatasync(file)
        folder = os.open(tmp_path / "w", os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(folder)
        os.write(file, b" and lost")
        os.close(os.open(tmp_path / "w/b", os.O_WRONLY | os.O_CREAT))
    recorder.leave(recorder.points, Loss(), tmp_path / "left")
    assert {path.name: path.read_bytes() for path in (tmp_path / "left").iterdir()} == {"a": b"synced"}
    recorder.leave(4, Loss(), tmp_path / "early")
    assert [*(tmp_path / "early").iterdir()] == []
    assert recorder.describe(4) == f"write {tmp_path}/w/a"


def test_a_recording_begins_with_nothing(tmp_path):
    with pytest.raises(ConfigError, match="begins with nothing"):
        DiskRecorder(tmp_path)
