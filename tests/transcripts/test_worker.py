"""Reading off the event loop: in a process that answers, fails like the function, and can be stopped."""

import asyncio
import json
import os
import time
from pathlib import Path

import pytest

from harness.errors import FileMissing, TranscriptRefused
from harness.transcripts import in_worker, page, read
from harness.transcripts import worker as module


def session(path: Path) -> Path:
    line = {"type": "user", "uuid": "u", "sessionId": "s", "message": {"content": "Hello"}}
    path.write_text(json.dumps(line) + "\n")
    return path


async def test_a_worker_gives_what_the_function_gives(tmp_path: Path) -> None:
    path = session(tmp_path / "s.jsonl")

    transcript = await in_worker(read, path)
    shown = await in_worker(page, path, where="head")

    assert transcript == read(path)
    assert shown.to_dict() == page(path, where="head").to_dict()
    assert await in_worker(os.getpid) != os.getpid()


async def test_a_worker_raises_what_the_function_raises(tmp_path: Path) -> None:
    (tmp_path / "other.jsonl").write_text("hello")

    with pytest.raises(FileMissing):
        await in_worker(read, tmp_path / "none.jsonl")
    with pytest.raises(TranscriptRefused) as refused:
        await in_worker(read, tmp_path / "other.jsonl")
    assert refused.value.code == "unknown_format"


async def test_a_cancelled_call_stops_its_worker_and_the_next_call_works(tmp_path: Path) -> None:
    pid = await in_worker(os.getpid)
    task = asyncio.create_task(in_worker(time.sleep, 600))
    await asyncio.sleep(0.2)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert await in_worker(os.getpid) != pid


async def test_a_worker_that_dies_is_reported_and_replaced() -> None:
    with pytest.raises(module.HarnessError, match="ended with code 3"):
        await in_worker(os._exit, 3)

    assert await in_worker(len, "abc") == 3
