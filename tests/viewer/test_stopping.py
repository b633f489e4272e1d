"""A server that is told to stop ends, whatever its clients do: no answer under way keeps it, and none leaves a worker."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60
"""A failsafe for a server that goes on; on its way out it needs no more than two seconds."""
SERVER = """
import asyncio, signal, sys, time
from starlette.applications import Starlette
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from harness.transcripts import in_worker
from harness.viewer import serve
from harness.viewer.leaving import StopsWhenLeft

async def at_once(request):
    return Response("done")

async def waiting(request):
    print("begun", flush=True)
    await asyncio.sleep(600)

async def reading(request):
    work = "import sys, time; print('begun', file=sys.stdout, flush=True); time.sleep(600)"
    await in_worker(exec, work)

async def sending(request):
    async def endless():
        print("begun", flush=True)
        while True:
            yield bytes(1024 * 1024)
    return StreamingResponse(endless())

def told(port):
    print(port, flush=True)

signal.signal(signal.SIGINT, signal.default_int_handler)
app = StopsWhenLeft(Starlette(routes=[Route(f"/{each.__name__}", each) for each in (at_once, waiting, reading, sending)]))
try:
    asyncio.run(serve(app, port=0, started=told))
except KeyboardInterrupt:
    sys.exit(130)
"""
KINDS = ["at_once", "waiting", "reading", "sending", "half a request"]


@contextmanager
def served() -> Iterator[tuple["subprocess.Popen[str]", int]]:
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", SERVER],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process, int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def client(process: "subprocess.Popen[str]", port: int, kind: str) -> socket.socket:
    """Somebody who asks, and reads no more than the beginning of an answer."""
    made = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    made.sendall(f"GET /{kind} HTTP/1.1\r\nHost: 127.0.0.1\r\n".encode())
    if kind != "half a request":
        made.sendall(b"\r\n")
    if kind in ("waiting", "sending"):
        assert process.stdout.readline() == "begun\n"
    if kind == "reading":
        assert process.stderr.readline() == "begun\n"  # a worker's own output goes there
    return made


def ended(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """How it ended, and what was said: all of it, so the workers, which hold that end too, have ended as well."""
    _, errors = process.communicate(timeout=PATIENCE)
    return process.returncode, errors


@pytest.mark.parametrize("kind", KINDS)
def test_ctrl_c_ends_it_and_its_workers_without_a_word(kind: str) -> None:
    with served() as (process, port), closing(client(process, port, kind)):
        process.send_signal(signal.SIGINT)
        assert ended(process) == (130, "")


def test_to_be_terminated_ends_it_and_its_workers_too() -> None:
    with served() as (process, port), closing(client(process, port, "sending")):
        with closing(client(process, port, "reading")):
            process.send_signal(signal.SIGTERM)
            assert ended(process) == (-signal.SIGTERM, "")


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_a_second_signal_ends_it_as_well_without_a_traceback(sent: signal.Signals, code: int) -> None:
    with served() as (process, port), closing(client(process, port, "reading")):
        process.send_signal(sent)
        while is_listening(port):
            pass
        process.send_signal(sent)
        assert ended(process) == (code, "")


def test_workers_end_with_a_server_that_was_killed() -> None:
    with served() as (process, port), closing(client(process, port, "reading")):
        process.kill()
        assert ended(process) == (-signal.SIGKILL, "")


def is_listening(port: int) -> bool:
    with closing(socket.socket()) as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0
