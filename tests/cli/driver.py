"""Runs the `harness` command in processes of its own, over pipes or at a pseudo-terminal."""

import fcntl
import io
import json
import logging
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any, Self

import pytest

from harness.cli.app import run

ROOT = Path(__file__).resolve().parents[2]
# A failsafe for a child that hangs, nothing that a test measures.
PATIENCE = 30.0
PLAIN = [sys.executable, "-W", "error", "-m", "harness"]
TEST_MODELS = """
from harness.models import OfflineModel, register_model
register_model("slow", lambda: OfflineModel(name="slow", delay=0.2))
register_model("small", lambda: OfflineModel(name="small", context_window=10))
from harness.cli import main
main()
"""


def environment(**extra: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HARNESS_")}
    return {**kept, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "120", "NO_COLOR": "1", **extra}


def harness(*words: str, cwd: Path, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PLAIN, *words],
        cwd=cwd,
        env=environment(**env),
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )


def within(*words: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """The command within this process, which is quicker; what goes through the system is tried in one of its own.

    So is what reads transcripts: its worker processes outlive a command here, and keep the folder it was in.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd)
        patch.setattr(sys, "stdin", io.StringIO())
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        for name in [name for name in os.environ if name.startswith("HARNESS_")]:
            patch.delenv(name)
        for name, value in environment(**env).items():
            patch.setenv(name, value)
        code = run(words)
    logging.getLogger("harness").handlers.clear()
    said = [stream.buffer.getvalue().decode() for stream in (out, err) if not stream.flush()]
    return subprocess.CompletedProcess(words, code, *said)


def harness_json(*words: str, cwd: Path, stdin: str = "", **env: str) -> Any:
    done = harness(*words, "--json", cwd=cwd, stdin=stdin, **env)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def _own_terminal() -> None:
    """Make standard input the controlling terminal, so that Ctrl-C typed there becomes a signal."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored where the tests run in the background of a shell
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """A command at a terminal of its own: type into it, and read until something is shown."""

    def __init__(self, *words: str, cwd: Path) -> None:
        self._screen, child = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", TEST_MODELS, *words],
            cwd=cwd,
            env=environment(),
            stdin=child,
            stdout=child,
            stderr=child,
            start_new_session=True,
            preexec_fn=_own_terminal,  # noqa: PLW1509 - the child of a test starts no threads before
        )
        os.close(child)
        self.shown = ""
        self._seen = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._screen)

    def type(self, keys: str) -> None:
        os.write(self._screen, keys.encode())

    def wait_for(self, text: str) -> str:
        """Read until `text` is shown behind what was waited for before; return what came up to it."""
        deadline = time.monotonic() + PATIENCE
        while (found := self.shown.find(text, self._seen)) < 0:
            ready, _, _ = select.select([self._screen], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{text!r} was not shown; shown was {self.shown[self._seen :]!r}"
            self.shown += self._read()
        before, self._seen = self.shown[self._seen : found], found + len(text)
        return before

    def wait_for_exit(self) -> int:
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"the command goes on; shown was {self.shown[self._seen :]!r}"
            ready, _, _ = select.select([self._screen], [], [], 0.05)
            if ready:
                self.shown += self._read(at_end="")
        return self.process.returncode

    def _read(self, at_end: str | None = None) -> str:
        try:
            read = os.read(self._screen, 65536).decode("utf-8", "replace")
        except OSError:  # Linux says EIO when the last holder of the terminal has gone
            assert at_end is not None, f"the command ended; shown was {self.shown[self._seen :]!r}"
            return at_end
        # Programs ask where the cursor is, and a terminal answers as if it had been typed.
        os.write(self._screen, b"\x1b[1;1R" * read.count("\x1b[6n"))
        return read
