"""Blocking code of users: threads of their own, with the caller's context."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading

import pytest

from harness.tools.threads import run_in_own_thread

_WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who")


async def test_forty_functions_that_hang_do_not_stop_another_one() -> None:
    over = threading.Event()
    hanging = [asyncio.create_task(run_in_own_thread(over.wait)) for _ in range(40)]
    try:
        async with asyncio.timeout(30):
            assert await run_in_own_thread(lambda: "done") == "done"
    finally:
        over.set()
        assert await asyncio.gather(*hanging) == [True] * 40


async def test_a_function_sees_the_context_of_its_caller_and_changes_none_of_it() -> None:
    _WHO.set("alice")

    def ask() -> str:
        seen = _WHO.get()
        _WHO.set("bob")
        return seen

    assert await run_in_own_thread(ask) == "alice"
    assert _WHO.get() == "alice"


async def test_an_error_reaches_the_caller_as_it_was_raised() -> None:
    with pytest.raises(ZeroDivisionError, match="division"):
        await run_in_own_thread(lambda: 1 / 0)


async def test_a_cancelled_caller_does_not_wait_and_the_late_end_harms_nobody() -> None:
    begun, over, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        over.wait()
        ended.set()
        raise OSError("late")

    task = asyncio.create_task(run_in_own_thread(work))
    assert await run_in_own_thread(begun.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    over.set()
    assert await run_in_own_thread(ended.wait, 30)


def test_a_function_that_hangs_does_not_keep_the_process_from_ending() -> None:
    script = """
import asyncio, threading
from harness.tools.threads import run_in_own_thread

async def main():
    try:
        async with asyncio.timeout(0.05):
            await run_in_own_thread(threading.Event().wait)
    except TimeoutError:
        print("given up")

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "given up\n"
