"""Work that would hold the event loop up, in a process of its own that can be stopped.

Parsing is work of the processor: in a thread it would still take turns with the loop. One worker is
kept between calls; a call that is cancelled takes its worker with it.

Of a call the loop's own thread does nothing but wait: starting a process, sending, receiving and building
what came back are done in a thread that exists for this. That thread lets go of the interpreter after every
piece of an answer, so that the loop never waits for more than one piece, however large the answer is.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import gc
import io
import logging
import os
import pickle
import queue
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, NoReturn, ParamSpec, TypeVar

from harness.errors import HarnessError
from harness.transcripts.telling import Sparing, Tell

__all__ = ["in_worker", "packed", "serve", "told_by_worker", "unpacked"]

P = ParamSpec("P")
T = TypeVar("T")

_THREADS = 6
"""Workers at a time. Their threads are not those for file work, which a call may not wait for."""
_KEPT = 2
_PIECE = 32 * 1024
_PAUSE = 0.0001
_SIZE = struct.Struct("<Q")
_ROOT = Path(__file__).resolve().parents[2]
_log = logging.getLogger("harness.transcripts")


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="harness-workers")


os.register_at_fork(after_in_child=_threads.cache_clear)  # threads do not survive a fork


async def in_worker(fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """What a function of this library gives, run in a worker process; raises what it raises.

    The function and what goes in and out have to be picklable; it may be run a second time, where a worker was
    killed from outside. A cancelled call stops the worker at once.
    """
    return await _worked(_Job(pickle.dumps((fn, args, kwargs, False))))  # type: ignore[no-any-return]  # what fn gives


async def told_by_worker(tell: Tell, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    """The same, for a function that takes a `tell`: what it tells comes here, in a thread of its own.

    A call that is made a second time begins to tell anew.
    """
    return await _worked(_Job(pickle.dumps((fn, args, kwargs, True)), tell))  # type: ignore[no-any-return]  # as above


def packed(found: Any) -> bytes:
    """What a worker found as bytes: for a caller who keeps it, or passes it on, and has no use for it yet."""
    return pickle.dumps(found, protocol=pickle.HIGHEST_PROTOCOL)


def unpacked(raw: bytes) -> Any:
    """What `packed` made bytes of. Blocks: in a thread, which lets the loop go on as every answer does."""
    return _load(io.BytesIO(raw))


async def _worked(job: _Job) -> Any:
    work = asyncio.get_running_loop().run_in_executor(_threads(), job.run)
    try:
        succeeded, found = await asyncio.shield(work)
    except BaseException:
        job.stop()
        await asyncio.wait([work])
        if not work.cancelled():
            work.exception()  # the worker's end is ours, not news
        raise
    if not succeeded:
        raise found
    return found


class _Ended(HarnessError):
    """A worker that was there no more before it had answered."""


class _Job:
    """One call: `run` in a thread, `stop` from any other."""

    def __init__(self, request: bytes, tell: Tell | None = None) -> None:
        self._request = request
        self._tell = tell
        self._lock = threading.Lock()
        self._worker: _Worker | None = None
        self._is_stopped = False

    def run(self) -> tuple[bool, Any]:
        """Whether the function succeeded, and what it gave or raised.

        A worker that was ended from outside, by a keeper of memory or by hand, is replaced once.
        """
        try:
            return self._run()
        except _Ended as error:
            if self._is_stopped:
                raise
            _log.warning("%s; the call is made again", error)
        try:
            return self._run()
        except _Ended as error:
            raise HarnessError(f"{error}; something outside ends the workers again and again") from error

    def _run(self) -> tuple[bool, Any]:
        self._check()
        worker = _idle.take()
        with self._lock:
            self._worker = None if self._is_stopped else worker
        if self._worker is None:
            _idle.give(worker)
            self._check()
        try:
            answer = worker.call(self._request, self._tell)
        except BaseException:
            worker.stop()
            raise
        with self._lock:
            self._worker = None
        if self._is_stopped:  # it may have been killed just now
            worker.stop()
        else:
            _idle.give(worker)
        return answer

    def _check(self) -> None:
        if self._is_stopped:
            raise HarnessError("a call was stopped before it began; call again")

    def stop(self) -> None:
        """Kill the worker of a call that runs; of one that has not begun, see to it that it never does."""
        with self._lock:
            self._is_stopped = True
            if self._worker is not None:
                self._worker.kill()


class _Worker:
    """A process that answers one call after the other over its pipes."""

    def __init__(self) -> None:
        path = os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        command = [sys.executable, "-c", "from harness.transcripts.worker import serve; serve()"]
        self._process = subprocess.Popen(  # noqa: S603 - the interpreter that runs us, with our own code
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C at a terminal is for who started it, who then ends it
        )
        self._pid = os.getpid()

    @property
    def is_usable(self) -> bool:
        """Whether it lives, and was started by this process and not by one that forked."""
        return self._pid == os.getpid() and self._process.poll() is None

    def call(self, request: bytes, tell: Tell | None = None) -> tuple[bool, Any]:
        """Send a request and wait for the answer: whether it succeeded, and what it gave or raised."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise HarnessError("a worker process has no pipes; this is a fault of the library")
        try:
            _write(stdin, request)
            answer: tuple[bool | None, Any] = _load(stdout)  # how it ended, or, with None, how far it has come
            while answer[0] is None:
                if tell is not None:
                    tell(*answer[1])
                answer = _load(stdout)
        except OSError as error:
            raise _Ended(f"a worker process broke off: {error}; try again") from error
        except (EOFError, pickle.UnpicklingError):
            code = self._process.wait()
            raise _Ended(f"a worker process ended with code {code}; try again with less at once") from None
        return bool(answer[0]), answer[1]

    def kill(self) -> None:
        """End it, whatever it does, and do not wait for its end."""
        if self._pid == os.getpid():
            self._process.kill()

    def stop(self) -> None:
        """End it, and wait until it has."""
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


class _Pieces:
    """An answer on its way through the pipe, as an unpickler asks for it: some 64 KB at a time.

    While a piece is turned into objects no other thread can work. Letting go of the interpreter does not suffice
    for the loop to get it, as this thread would mostly be the first to take it again: it has to sleep.
    """

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._since = 0

    def read(self, size: int) -> bytes:
        if self._since > _PIECE:
            time.sleep(_PAUSE)
            self._since = 0
        self._since += size
        return self._pipe.read(size)

    def readline(self) -> bytes:
        return self._pipe.readline()


def _load(pipe: IO[bytes]) -> Any:
    """The next thing that a worker has to say."""
    return pickle.Unpickler(_Pieces(pipe)).load()  # noqa: S301 - our own process wrote it


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


def serve() -> NoReturn:
    """The worker's side: answer requests from standard input. It ends when that does, whatever is under way."""
    gc.disable()  # everything a request makes is gone with its answer; circles are collected between requests
    outgoing = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not get between the answers
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    while True:
        request = requests.get()
        _say(outgoing, _answer(request, Sparing(lambda done, total: _say(outgoing, _packed(None, (done, total))))))
        gc.collect()


def _listen(requests: queue.SimpleQueue[bytes]) -> NoReturn:
    """Take requests in for as long as somebody can send them.

    Who is killed stops no worker. Their end of the pipe closes all the same, on every system, and then nobody is
    left whom an answer could reach: a worker that was reading a large file must not go on with that.
    """
    while (request := _read(sys.stdin.buffer)) is not None:
        requests.put(request)
    os._exit(0)


def _say(outgoing: IO[bytes], raw: bytes) -> None:
    outgoing.write(raw)
    outgoing.flush()


def _packed(succeeded: bool | None, found: Any) -> bytes:
    return packed((succeeded, found))


def _answer(request: bytes, tell: Tell) -> bytes:
    try:
        fn, args, kwargs, tells = pickle.loads(request)  # noqa: S301 - the process that started us wrote it
        return _packed(True, fn(*args, **kwargs, tell=tell) if tells else fn(*args, **kwargs))
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
