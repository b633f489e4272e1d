"""One holder at a time, over threads, loops, processes and forks; a lock file alone means nothing."""

import asyncio
import errno
import fcntl
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harness.errors import FileMissing, PersistenceError, SessionBusy
from harness.filesystem import FileLock, pool

HOLD = """
import asyncio, sys, pathlib
from harness.filesystem import FileLock
lock = FileLock(pathlib.Path(sys.argv[1]))
asyncio.run(lock.acquire(5))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def lock(tmp_path: Path):
    lock = FileLock(tmp_path / "s.lock")
    yield lock
    lock.release()


def other_process(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    return process


async def is_free(path: Path) -> bool:
    probe = FileLock(path)
    try:
        await probe.acquire(0)
    except SessionBusy:
        return False
    probe.release()
    return True


async def test_a_lock_that_must_lie_in_a_folder_makes_none(tmp_path: Path) -> None:
    with pytest.raises(FileMissing, match="is no folder; make it"):
        await FileLock(tmp_path / "missing" / "s.lock", in_folder=True).acquire(1)
    assert os.listdir(tmp_path) == []


async def test_a_held_lock_is_busy_until_it_is_released(lock: FileLock) -> None:
    await lock.acquire(1)
    assert lock.held
    assert not await is_free(lock.path)

    lock.release()
    assert not lock.held
    assert await is_free(lock.path)


@pytest.mark.parametrize("timeout", [0.05, 0.0499983])
async def test_the_message_names_the_lock_and_the_time_as_somebody_set_it(lock: FileLock, timeout: float) -> None:
    await lock.acquire(1)

    with pytest.raises(SessionBusy, match=r"s\.lock and did not release it within 0\.05 s; try again"):
        await FileLock(lock.path).acquire(timeout)


async def test_a_waiter_gets_the_lock_when_it_is_released(lock: FileLock) -> None:
    await lock.acquire(1)
    second = FileLock(lock.path)
    waiting = asyncio.create_task(second.acquire(20))
    await asyncio.sleep(0.06)
    assert not waiting.done()
    lock.release()
    await waiting

    assert second.held
    second.release()


async def test_a_cancelled_waiter_leaves_nothing_behind(lock: FileLock) -> None:
    await lock.acquire(1)
    waiting = asyncio.create_task(FileLock(lock.path).acquire(20))
    await asyncio.sleep(0.03)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    lock.release()

    assert await is_free(lock.path)


async def test_a_second_hold_by_the_same_object_is_refused_at_once(lock: FileLock) -> None:
    await lock.acquire(1)

    with pytest.raises(SessionBusy, match="already"):
        await lock.acquire(20)


async def test_an_old_lock_file_is_no_lock(lock: FileLock) -> None:
    lock.path.write_text("pid 1\n")

    await lock.acquire(0)
    assert lock.held


async def test_another_process_holds_until_it_is_killed(lock: FileLock) -> None:
    process = other_process(lock.path)
    try:
        assert not await is_free(lock.path)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()

    assert await is_free(lock.path)


async def test_after_a_delete_there_is_one_holder(lock: FileLock) -> None:
    await lock.acquire(1)
    waiter = FileLock(lock.path)
    waiting = asyncio.create_task(waiter.acquire(20))
    await asyncio.sleep(0.03)
    lock.unlink_and_release()
    await waiting

    assert os.fstat(waiter._descriptor).st_ino == lock.path.stat().st_ino
    assert not await is_free(lock.path)
    waiter.release()


async def test_a_lock_on_a_replaced_file_is_not_taken_for_the_real_one(lock: FileLock) -> None:
    await lock.acquire(1)
    lock.path.unlink()

    assert await is_free(lock.path)  # who comes by the name meets the new file


def test_only_the_holder_removes_the_lock_file(lock: FileLock) -> None:
    with pytest.raises(SessionBusy, match="only by the holder"):
        lock.unlink_and_release()


async def test_work_that_takes_a_lock_has_it_alone_and_gives_it_back(lock: FileLock) -> None:
    other = FileLock(lock.path)
    assert await lock.run(1, lambda: (lock.held, other.take())) == (True, False)
    assert not lock.held
    with pytest.raises(ZeroDivisionError):
        await lock.run(1, lambda: 1 / 0)
    assert not lock.held


def test_a_lock_is_taken_at_once_or_not_at_all(lock: FileLock) -> None:
    assert lock.take()
    other = FileLock(lock.path)
    assert not other.take()
    lock.release()
    assert other.take()
    other.release()


async def test_work_whose_lock_is_kept_elsewhere_is_refused_when_its_time_is_up(lock: FileLock) -> None:
    done: list[str] = []
    async with FileLock(lock.path).held_for(1):
        with pytest.raises(SessionBusy, match=r"did not release it within 0\.05 s"):
            await lock.run(0.05, done.append, "done")
    assert done == []


async def test_however_many_wait_for_locks_others_find_a_free_worker(lock: FileLock) -> None:
    async with FileLock(lock.path).held_for(1):
        waiting = [asyncio.create_task(FileLock(lock.path).run(20, lambda: None)) for _ in range(20)]
        assert await pool.run(lambda: "served") == "served"
        await asyncio.sleep(0.03)
        assert await FileLock(lock.path.with_name("other.lock")).run(1, lambda: "served") == "served"
        assert not any(task.done() for task in waiting)
    await asyncio.gather(*waiting)


FORKS = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # forking beside threads is the point


def _exit_busy(lock: FileLock) -> None:
    """Exit with 7 if the inherited lock object is not held here, and the lock is not free either."""
    assert not lock.held
    os._exit(1 if lock.take() else 7)


@FORKS
async def test_a_forked_child_does_not_inherit_the_lock(lock: FileLock) -> None:
    await lock.acquire(1)
    child = multiprocessing.get_context("fork").Process(target=_exit_busy, args=(lock,))
    child.start()
    child.join(20)

    assert child.exitcode == 7
    assert lock.held
    assert not await is_free(lock.path)


@FORKS
async def test_a_forked_child_does_not_keep_a_released_lock(lock: FileLock) -> None:
    await lock.acquire(1)
    child = multiprocessing.get_context("fork").Process(target=signal.pause)
    child.start()
    lock.release()
    free = await is_free(lock.path)
    child.kill()
    child.join()

    assert free


def forking_process(path: Path) -> subprocess.Popen[str]:
    """A process that holds the lock and has a child which outlives it."""
    script = HOLD.replace('print("held"', 'import os, signal\nif not os.fork(): signal.pause()\nprint("held"')
    process = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, stdin=subprocess.PIPE,
                               text=True, start_new_session=True)  # fmt: skip
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    return process


async def test_a_forked_child_does_not_keep_the_lock_of_a_killed_parent(lock: FileLock) -> None:
    process = forking_process(lock.path)
    try:
        process.kill()
        process.wait()
        await lock.acquire(10)  # the child still lives, but has closed what it inherited
        assert lock.held
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_a_forgotten_lock_is_released_with_a_warning(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "s.lock")
    asyncio.run(lock.acquire(1))
    held = [lock]
    del lock
    with pytest.warns(ResourceWarning, match="never released"):
        held.clear()

    assert asyncio.run(is_free(tmp_path / "s.lock"))


async def test_the_folder_of_a_lock_is_made(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "a" / "b" / "s.lock")
    await lock.acquire(1)
    lock.release()

    assert lock.path.exists()


async def test_a_lock_is_no_link(lock: FileLock, tmp_path: Path) -> None:
    lock.path.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(PersistenceError, match=r"cannot open the lock file .*s\.lock"):
        await lock.acquire(1)
    assert os.listdir(tmp_path) == ["s.lock"]


async def test_a_disk_without_locks_is_named(lock: FileLock, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.raises(PersistenceError, match="No locks available; put the workspace"):
        await lock.acquire(1)
    assert not lock.held


async def test_work_waits_for_what_is_done_under_the_same_lock(lock: FileLock) -> None:
    order: list[str] = []
    holding, go_on = threading.Event(), threading.Event()

    def first() -> None:
        holding.set()
        go_on.wait()
        order.append("first")

    one = asyncio.create_task(FileLock(lock.path).run(1, first))
    await asyncio.to_thread(holding.wait)
    two = asyncio.create_task(lock.run(20, order.append, "second"))
    await asyncio.sleep(0.03)
    go_on.set()
    await asyncio.gather(one, two)
    assert order == ["first", "second"]


def test_a_lock_whose_event_loop_was_closed_goes_to_who_asks_next(lock: FileLock) -> None:
    lost = FileLock(lock.path)
    asyncio.run(lost.acquire(1))
    asyncio.run(lock.acquire(0))

    assert (lost.held, lock.held) == (False, True)
    lost.release()
    assert lock.held


@pytest.mark.parametrize("way", ["acquire", "held_for", "run", "take"])
def test_a_lost_lock_goes_to_whoever_asks_in_whatever_way(lock: FileLock, way: str) -> None:
    lost = FileLock(lock.path)
    asyncio.run(lost.acquire(1))

    async def held_for() -> bool:
        async with lock.held_for(0):
            return lock.held

    ways = {
        "acquire": lambda: asyncio.run(lock.acquire(0)) is None,
        "held_for": lambda: asyncio.run(held_for()),
        "run": lambda: asyncio.run(lock.run(0, lambda: lock.held)),
        "take": lock.take,
    }
    assert ways[way]()
    assert not lost.held


@pytest.mark.parametrize("spelling", ["link/s.lock", "real/../link/s.lock", "real/sub/../s.lock", "moved/s.lock"])
def test_a_lost_lock_is_known_by_its_file_however_its_path_is_spelled(tmp_path: Path, spelling: str) -> None:
    (tmp_path / "real" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    lost, other = FileLock(tmp_path / "real" / "s.lock"), FileLock(Path(os.path.join(tmp_path, spelling)))
    asyncio.run(lost.acquire(1))
    if spelling.startswith("moved"):
        (tmp_path / "real").rename(tmp_path / "moved")
    asyncio.run(other.acquire(0))

    assert (lost.held, other.held) == (False, True)
    other.release()


async def test_a_lost_lock_of_a_folder_that_was_swapped_is_no_lock_of_the_new_one(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    lost, other, third = (FileLock(tmp_path / "here" / "s.lock") for _ in range(3))
    await asyncio.to_thread(asyncio.run, lost.acquire(1))
    (tmp_path / "here").rename(tmp_path / "away")
    (tmp_path / "here").mkdir()
    await other.acquire(0)
    with pytest.raises(SessionBusy):
        await third.acquire(0)

    assert lost.held
    lost.release()
    other.release()


async def test_a_lock_whose_event_loop_runs_is_kept(lock: FileLock) -> None:
    await lock.acquire(1)
    with pytest.raises(SessionBusy):
        await FileLock(lock.path).acquire(0)
    assert lock.held


def test_what_is_being_done_under_a_lost_lock_is_done_before_it_goes_to_another(lock: FileLock) -> None:
    lost = FileLock(lock.path)
    asyncio.run(lost.acquire(1))

    def meanwhile() -> None:
        with pytest.raises(SessionBusy):
            asyncio.run(lock.acquire(0))

    lost.work(meanwhile)
    asyncio.run(lock.acquire(0))
    with pytest.raises(PersistenceError, match="went to another call, since the event loop of this one was closed"):
        lost.work(meanwhile)


async def test_a_lock_that_is_given_back_while_a_worker_needs_it_goes_when_the_worker_has_ended(tmp_path: Path) -> None:
    lock, other = FileLock(tmp_path / "a.lock"), FileLock(tmp_path / "a.lock")
    await lock.acquire(1)
    taken = []

    def work() -> str:
        lock.release()
        taken.append(other.take())
        return "done"

    assert lock.work(work) == "done"
    assert [*taken, other.take()] == [False, True]
    other.release()
