"""Reading off the event loop: in a process that answers, fails like the function, and can be stopped."""

import asyncio
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from harness.errors import FileMissing, HarnessError, TranscriptRefused
from harness.filesystem import pool
from harness.transcripts import in_worker, page, read
from harness.transcripts import worker as module

ROOT = Path(__file__).resolve().parents[2]


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
    with pytest.raises(HarnessError, match=r"ended with code 3.*ends the workers again and again") as failed:
        await in_worker(os._exit, 3)

    assert type(failed.value) is HarnessError  # its name is what a page shows
    assert await in_worker(len, "abc") == 3


def _end_once(mark: Path) -> str:
    """Dies as if it had been killed, the first time it is run."""
    if mark.exists():
        return "done"
    mark.touch()
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


async def test_a_call_whose_worker_was_killed_from_outside_is_made_once_more(tmp_path: Path) -> None:
    assert await in_worker(_end_once, tmp_path / "mark") == "done"


async def test_workers_keep_no_thread_from_file_work() -> None:
    calls = [asyncio.create_task(in_worker(time.sleep, 600)) for _ in range(12)]
    await asyncio.sleep(0.2)

    assert await asyncio.wait_for(pool.run(len, "abc"), 30) == 3

    for each in calls:
        each.cancel()
    assert {type(each) for each in await asyncio.gather(*calls, return_exceptions=True)} == {asyncio.CancelledError}


class Pipe(io.BytesIO):
    """A pipe that notes how much is asked of it at once."""

    def __init__(self, raw: bytes) -> None:
        super().__init__(raw)
        self.asked: list[int] = []

    def read(self, size: int | None = -1) -> bytes:
        self.asked.append(size or 0)
        return super().read(size)


def test_an_answer_is_built_in_small_pieces_with_a_pause_for_the_loop_after_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = [{"text": f"{number:064}", "at": [number, number + 1]} for number in range(20_000)]
    raw = pickle.dumps((True, said), protocol=pickle.HIGHEST_PROTOCOL)
    pauses: list[float] = []
    monkeypatch.setattr(module.time, "sleep", pauses.append)
    pipe = Pipe(raw)

    built = pickle.Unpickler(module._Pieces(pipe)).load()

    assert built == (True, said)
    assert len(raw) > 1_500_000
    assert max(pipe.asked) < 70_000
    assert len(pauses) >= len(raw) // 70_000
    assert min(pauses) > 0


async def test_the_loops_own_thread_neither_starts_a_worker_nor_builds_its_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: list[str] = []
    start, call = module._Worker.__init__, module._Worker.call

    def started(self: module._Worker) -> None:
        threads.append(threading.current_thread().name)
        start(self)

    def called(self: module._Worker, *given: Any) -> tuple[bool, object]:
        threads.append(threading.current_thread().name)
        return call(self, *given)

    monkeypatch.setattr(module._Worker, "__init__", started)
    monkeypatch.setattr(module._Worker, "call", called)
    module._idle.stop()

    assert await in_worker(len, "abc") == 3

    assert len(threads) == 2
    assert threading.current_thread().name not in threads


async def test_a_call_that_is_cancelled_before_its_worker_runs_leaves_none_behind() -> None:
    job = module._Job(pickle.dumps((time.sleep, (600,), {})))
    job.stop()

    with pytest.raises(module.HarnessError, match="stopped before it began"):
        job.run()

    assert await in_worker(len, "abc") == 3


BUSY = """
import asyncio
from harness.transcripts import in_worker
work = "import os, sys, time\\nprint(os.getpid(), file=sys.stderr, flush=True)\\n{}"
asyncio.run(in_worker(exec, work))
"""


@pytest.mark.parametrize("work", ["time.sleep(600)", "while True: pass"])
def test_a_worker_ends_with_who_started_it_whatever_it_does(work: str) -> None:
    process = subprocess.Popen([sys.executable, "-c", BUSY.format(work)], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    worker = int(process.stderr.readline())
    process.kill()
    try:
        _, rest = process.communicate(timeout=60)  # the worker holds the other end too, for as long as it lives
    except subprocess.TimeoutExpired:
        os.kill(worker, signal.SIGKILL)
        raise
    assert rest == ""


async def test_ctrl_c_at_a_terminal_does_not_reach_a_worker() -> None:
    assert await in_worker(os.getsid, 0) != os.getsid(0)
