"""Work that would hold the event loop up, in a process of its own that can be stopped.

Parsing is work of the processor: in a thread it would still take turns with the loop. One worker is
kept between calls; a call that is cancelled takes its worker with it.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import logging
import os
import pickle
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, ParamSpec, TypeVar

from harness.errors import HarnessError
from harness.filesystem import pool

__all__ = ["in_worker", "serve"]

P = ParamSpec("P")
T = TypeVar("T")

_KEPT = 2
_SIZE = struct.Struct("<Q")
_ROOT = Path(__file__).resolve().parents[2]
_log = logging.getLogger("harness.transcripts")


async def in_worker(fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """What a function of this library gives, run in a worker process; raises what it raises.

    The function and what goes in and out have to be picklable. A cancelled call stops the worker at once.
    """
    worker = _idle.take()
    work = asyncio.ensure_future(pool.run(worker.call, pickle.dumps((fn, args, kwargs))))
    try:
        raw = await asyncio.shield(work)
    except BaseException:
        worker.stop()
        await asyncio.wait([work])
        if not work.cancelled():
            work.exception()  # the worker's end is ours, not news
        raise
    _idle.give(worker)
    succeeded, found = pickle.loads(raw)  # noqa: S301 - our own process wrote it
    if not succeeded:
        raise found
    result: T = found
    return result


class _Worker:
    """A process that answers one call after the other over its pipes."""

    def __init__(self) -> None:
        path = os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        command = [sys.executable, "-c", "from harness.transcripts.worker import serve; serve()"]
        self._process = subprocess.Popen(  # noqa: S603 - the interpreter that runs us, with our own code
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
        )
        self._pid = os.getpid()

    @property
    def is_usable(self) -> bool:
        """Whether it lives, and was started by this process and not by one that forked."""
        return self._pid == os.getpid() and self._process.poll() is None

    def call(self, request: bytes) -> bytes:
        """Send a request and wait for the answer."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise HarnessError("a worker process has no pipes; this is a fault of the library")
        try:
            _write(stdin, request)
            answer: bytes | None = _read(stdout)
        except OSError as error:
            raise HarnessError(f"a worker process broke off: {error}; try again") from error
        if answer is None:
            raise HarnessError(f"a worker process ended with code {self._process.wait()}; try again with less at once")
        return answer

    def stop(self) -> None:
        """End it, whatever it does."""
        if self._pid != os.getpid():
            return
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    _log.debug("a stopped worker left a request unread")


class _Idle:
    """The workers that wait for work."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._workers: list[_Worker] = []

    def take(self) -> _Worker:
        """One that waits, or a new one."""
        with self._lock:
            while self._workers:
                worker = self._workers.pop()
                if worker.is_usable:
                    return worker
        return _Worker()

    def give(self, worker: _Worker) -> None:
        """Keep one for the next call."""
        with self._lock:
            if len(self._workers) < _KEPT:
                self._workers.append(worker)
                return
        worker.stop()

    def stop(self) -> None:
        """End all that wait."""
        with self._lock:
            workers, self._workers = self._workers, []
        for worker in workers:
            worker.stop()


_idle = _Idle()
atexit.register(_idle.stop)


def serve() -> None:
    """The worker's side: answer requests from standard input until it ends."""
    gc.disable()  # everything a request makes is gone with its answer; circles are collected between requests
    incoming, outgoing = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not get between the answers
    while (request := _read(incoming)) is not None:
        _write(outgoing, _answer(request))
        gc.collect()


def _answer(request: bytes) -> bytes:
    try:
        fn, args, kwargs = pickle.loads(request)  # noqa: S301 - the process that started us wrote it
        return pickle.dumps((True, fn(*args, **kwargs)), protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # noqa: BLE001 - whatever it is, the caller is to get it
        return _failure(error)


def _failure(error: Exception) -> bytes:
    try:
        raw = pickle.dumps((False, error))
        pickle.loads(raw)  # noqa: S301 - an error that cannot be read back must not break the pipe
    except Exception:  # noqa: BLE001 - as above
        raw = pickle.dumps((False, HarnessError(f"{type(error).__name__}: {error}")))
    return raw


def _write(pipe: IO[bytes], data: bytes) -> None:
    pipe.write(_SIZE.pack(len(data)))
    pipe.write(data)
    pipe.flush()


def _read(pipe: IO[bytes]) -> bytes | None:
    head = pipe.read(_SIZE.size)
    if len(head) < _SIZE.size:
        return None
    (size,) = _SIZE.unpack(head)
    data = pipe.read(size)
    return data if len(data) == size else None
