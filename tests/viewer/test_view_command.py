"""`harness view`: one address, one process, nothing left behind."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx2
import pytest

from harness.viewer.serving import USUAL_PORT

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (
    "import signal, typer; from harness.cli import view; app = typer.Typer(); app.command()(view.run); "
    "signal.signal(signal.SIGINT, signal.default_int_handler); app()"
)
"""Ctrl-C counts, also where the tests run in the background of a shell."""
LINE = '{"type":"user","uuid":"u1","sessionId":"s-1","message":{"role":"user","content":"hello there"}}\n'
PATIENCE = 60


def start(*words: str, cwd: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(cwd), "NO_COLOR": "1"}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", COMMAND, *words],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def viewing(*words: str, cwd: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = start(*words, cwd=cwd)
    try:
        yield process, process.stdout.readline()
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)


def ended(*words: str, cwd: Path) -> tuple[int, str]:
    process = start(*words, cwd=cwd)
    _, errors = process.communicate(timeout=PATIENCE)
    return process.returncode, errors


@pytest.fixture
def session(tmp_path: Path) -> Path:
    file = tmp_path / "s-1.jsonl"
    file.write_text(LINE)
    return file


def test_the_address_has_the_token_and_the_server_answers_on_the_loopback_address_only(session: Path) -> None:
    with viewing("s-1.jsonl", "--json", cwd=session.parent) as (_, first):
        said = json.loads(first)
        assert said["url"] == f"http://127.0.0.1:{said['port']}/#token={said['token']}"
        assert said["host"] == "127.0.0.1"
        base = f"http://127.0.0.1:{said['port']}"
        assert "hello there" not in httpx2.get(base).text
        assert "hello there" in httpx2.get(base, headers={"authorization": f"Bearer {said['token']}"}).text
        listening = [
            line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines() if line.split()[3] == "0A"
        ]
        assert f"0100007F:{said['port']:04X}" in listening
        assert f"00000000:{said['port']:04X}" not in listening


def test_ctrl_c_ends_it_without_a_traceback(session: Path) -> None:
    process = start("s-1.jsonl", cwd=session.parent)
    assert process.stdout.readline().startswith("Open http://127.0.0.1:")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode in (0, 130), errors) == (True, "")


def test_it_leaves_nothing_beside_what_it_opened(session: Path) -> None:
    with viewing(".", "--json", cwd=session.parent) as (_, first):
        said = json.loads(first)
        httpx2.get(said["url"].partition("#")[0], headers={"authorization": f"Bearer {said['token']}"})
    assert [path.name for path in session.parent.iterdir()] == ["s-1.jsonl"]


def test_a_place_that_is_not_there_is_exit_3(tmp_path: Path) -> None:
    code, errors = ended("nowhere.jsonl", cwd=tmp_path)
    assert code == 3
    assert errors.startswith("error: there is nothing at nowhere.jsonl")


def test_a_file_that_is_no_session_is_exit_2(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("only notes\n")
    code, errors = ended("notes.txt", cwd=tmp_path)
    assert (code, errors.count("\n")) == (2, 1)


def test_an_unknown_zone_is_exit_2(session: Path) -> None:
    code, errors = ended("s-1.jsonl", "--zone", "Middle/Earth", cwd=session.parent)
    assert code == 2
    assert "Europe/Berlin" in errors


def test_the_usual_port_is_taken_while_it_is_free_and_any_other_where_it_is_not(session: Path) -> None:
    # A browser keeps what it was told by the port: the next run is to find it again.
    with viewing("s-1.jsonl", "--json", cwd=session.parent) as (_, first):
        with viewing("s-1.jsonl", "--json", cwd=session.parent) as (_, second):
            ports = [json.loads(said)["port"] for said in (first, second)]
    with closing(socket.socket()) as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if free.connect_ex(("127.0.0.1", USUAL_PORT)):  # nobody else on this machine has it
            assert ports[0] == USUAL_PORT
    assert ports[1] != ports[0]


def test_a_taken_port_is_said_with_what_to_do(session: Path) -> None:
    with viewing("s-1.jsonl", "--json", cwd=session.parent) as (_, first):
        code, errors = ended("s-1.jsonl", "--port", str(json.loads(first)["port"]), cwd=session.parent)
    assert code == 2
    assert "--port" in errors


def test_without_the_packages_of_the_viewer_there_is_one_sentence_and_exit_3(session: Path) -> None:
    code = f"import sys; sys.modules['starlette'] = None; sys.argv = ['view', 's-1.jsonl']; {COMMAND}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=session.parent, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert done.stderr == (
        "error: harness view needs packages that are not installed: pip install 'dualtrack-harness[viewer]'\n"
    )
