"""Blocking code of users: threads of their own, with the caller's context."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import queue
import subprocess
import sys
import threading

import pytest

from harness.context import CallScope
from harness.tools import ToolCall, as_tool
from harness.tools.base import Function
from harness.tools.threads import run_in_own_thread

_WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who")


async def test_forty_functions_that_hang_do_not_stop_another_one() -> None:
    over = threading.Event()
    hanging = [asyncio.create_task(run_in_own_thread("a test", over.wait)) for _ in range(40)]
    try:
        async with asyncio.timeout(30):
            assert await run_in_own_thread("a test", lambda: "done") == "done"
    finally:
        over.set()
        assert await asyncio.gather(*hanging) == [True] * 40


async def test_a_function_sees_the_context_of_its_caller_and_changes_none_of_it() -> None:
    _WHO.set("alice")

    def ask() -> str:
        seen = _WHO.get()
        _WHO.set("bob")
        return seen

    assert await run_in_own_thread("a test", ask) == "alice"
    assert _WHO.get() == "alice"


@pytest.mark.parametrize("error", [StopIteration("x"), GeneratorExit("x")], ids=repr)
async def test_an_error_that_would_end_the_caller_without_a_word_comes_by_its_name(error: BaseException) -> None:
    def end() -> None:
        raise error

    async with asyncio.timeout(30):
        with pytest.raises(RuntimeError, match=f"{type(error).__name__}: x") as caught:
            await run_in_own_thread("a test", end)
    assert caught.value.__cause__ is error


async def test_an_error_reaches_the_caller_as_it_was_raised() -> None:
    with pytest.raises(ZeroDivisionError, match="division"):
        await run_in_own_thread("a test", lambda: 1 / 0)


async def test_a_cancelled_caller_does_not_wait_and_the_late_end_harms_nobody() -> None:
    begun, over, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        over.wait()
        ended.set()
        raise OSError("late")

    task = asyncio.create_task(run_in_own_thread("a test", work))
    assert await run_in_own_thread("a test", begun.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    over.set()
    assert await run_in_own_thread("a test", ended.wait, 30)


async def refunded_too_late(scope: CallScope, refund: Function, over: threading.Event) -> str:
    """What the model reads of a call whose function goes on behind it."""
    result = await as_tool(refund).run(ToolCall("c1", "refund", {}), scope, timeout=0.02)
    over.set()
    return result.text


async def test_a_function_that_ends_after_its_time_is_told_in_the_log_and_for_whom(
    scope: CallScope, caplog: pytest.LogCaptureFixture
) -> None:
    over = threading.Event()

    def refund() -> str:
        over.wait(30)
        return "refunded"

    assert "whether it has an effect is not known" in await refunded_too_late(scope, refund, over)
    await logged(caplog, 2)
    assert [record.getMessage() for record in caplog.records] == [
        "tool refund took longer than 0.02 s (agent 'agent', tenant 'alice', session 's1', call c1)",
        (
            "tool refund (agent 'agent', tenant 'alice', session 's1') has ended, when nobody waited for it any more: "
            "its result is lost"
        ),
    ]


async def test_a_function_that_fails_after_its_time_is_told_with_its_error(
    scope: CallScope, caplog: pytest.LogCaptureFixture
) -> None:
    over = threading.Event()

    def refund() -> str:
        over.wait(30)
        raise OSError("the bank is closed")

    await refunded_too_late(scope, refund, over)
    await logged(caplog, 2)
    last = caplog.records[-1]
    assert last.getMessage() == (
        "tool refund (agent 'agent', tenant 'alice', session 's1') has failed, when nobody waited for it any more"
    )
    assert last.exc_info is not None
    assert str(last.exc_info[1]) == "the bank is closed"


def test_a_function_that_outlives_its_loop_is_told_in_the_log() -> None:
    over, told = threading.Event(), queue.SimpleQueue[str]()

    class Told(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.put(record.getMessage())

    async def leave() -> None:
        task = asyncio.create_task(run_in_own_thread("a test", over.wait))
        await asyncio.sleep(0)
        task.cancel()

    logger, handler = logging.getLogger("harness.tools"), Told()
    logger.addHandler(handler)
    try:
        asyncio.run(leave())
        over.set()
        assert told.get(timeout=30) == "a test has ended, when nobody waited for it any more: its result is lost"
    finally:
        logger.removeHandler(handler)


async def logged(caplog: pytest.LogCaptureFixture, count: int) -> None:
    """Waits until the log has so many lines."""
    async with asyncio.timeout(30):
        while len(caplog.records) < count:
            await asyncio.sleep(0.001)


def test_a_function_that_hangs_does_not_keep_the_process_from_ending() -> None:
    script = """
import asyncio, threading
from harness.tools.threads import run_in_own_thread

async def main():
    try:
        async with asyncio.timeout(0.05):
            await run_in_own_thread("a test", threading.Event().wait)
    except TimeoutError:
        print("given up")

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "given up\n"
