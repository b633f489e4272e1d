"""File work leaves the event loop, keeps its context and is never abandoned."""

import asyncio
import contextvars
import logging
import multiprocessing
import threading

import pytest

from harness.filesystem import pool

speaker: contextvars.ContextVar[str] = contextvars.ContextVar("speaker")


async def test_work_runs_in_a_thread_of_our_own() -> None:
    assert (await pool.run(lambda: threading.current_thread().name)).startswith("harness-files")


async def test_work_sees_the_callers_context() -> None:
    speaker.set("alice")

    assert await pool.run(speaker.get) == "alice"


async def test_arguments_results_and_errors_pass_through() -> None:
    assert await pool.run(int, "ff", base=16) == 255
    with pytest.raises(ValueError, match="invalid literal"):
        await pool.run(int, "x")


async def test_a_cancelled_caller_waits_for_its_work_however_often_it_is_cancelled() -> None:
    started, may_end, ended = threading.Event(), threading.Event(), []

    def work() -> None:
        started.set()
        may_end.wait()
        ended.append(True)

    caller = asyncio.create_task(pool.run(work))
    await asyncio.to_thread(started.wait)
    for _ in range(3):
        caller.cancel()
        await asyncio.sleep(0)
        assert not caller.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert ended == [True]


async def test_an_error_behind_a_cancellation_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    started, may_end = threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        may_end.wait()
        raise OSError("disk on fire")

    caller = asyncio.create_task(pool.run(work))
    await asyncio.to_thread(started.wait)
    caller.cancel()
    await asyncio.sleep(0)
    may_end.set()
    with caplog.at_level(logging.WARNING, logger="harness.filesystem"), pytest.raises(asyncio.CancelledError):
        await caller
    assert "disk on fire" in caplog.text


def test_every_event_loop_can_use_it() -> None:
    assert [asyncio.run(pool.run(abs, -n)) for n in range(3)] == [0, 1, 2]


async def test_more_work_than_threads_all_gets_done() -> None:
    assert await asyncio.gather(*(pool.run(abs, -n) for n in range(100))) == list(range(100))


def _in_child() -> None:
    raise SystemExit(asyncio.run(pool.run(lambda: 7)))


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # forking beside threads is the point
def test_a_forked_child_makes_a_pool_of_its_own() -> None:
    asyncio.run(pool.run(abs, -1))
    child = multiprocessing.get_context("fork").Process(target=_in_child)
    child.start()
    child.join(20)

    assert child.exitcode == 7


async def test_of_one_key_one_piece_of_work_runs_at_a_time_and_others_run_beside_it() -> None:
    running, most, beside = 0, 0, threading.Event()

    def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        assert beside.wait(30)  # another key's work runs meanwhile, or this never ends well
        running -= 1

    mine = [asyncio.create_task(pool.run_alone("alice", work)) for _ in range(8)]
    await pool.run_alone("bob", beside.set)
    await asyncio.gather(*mine)

    assert most == 1


async def test_work_that_waits_for_its_turn_can_be_cancelled_and_is_not_done() -> None:
    may_end, done = threading.Event(), list[int]()
    first = asyncio.create_task(pool.run_alone("alice", may_end.wait))
    second = asyncio.create_task(pool.run_alone("alice", done.append, 2))
    third = asyncio.create_task(pool.run_alone("alice", done.append, 3))
    await asyncio.sleep(0)
    second.cancel()
    may_end.set()
    await asyncio.gather(first, third)

    assert second.cancelled()
    assert done == [3]


def test_turns_are_kept_in_each_event_loop_for_itself() -> None:
    for _ in range(2):  # a lock of the first loop could not be waited for in the second
        asyncio.run(test_work_that_waits_for_its_turn_can_be_cancelled_and_is_not_done())
