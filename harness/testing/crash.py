"""A crash kit: run a conversation in a process of its own, kill it there, and see what had been promised.

    script.py      async def talk(progress: Progress, arguments: Mapping[str, Any]) -> None:
                       agent = …
                       for number in range(arguments["first"], arguments["first"] + 5):
                           progress.begun(number, prompt)
                           reply = await agent.call(prompt, ctx)
                           progress.committed(number, prompt, reply.text)

    with CrashKit("script.py:talk") as kit:
        crash = kit.run({"first": 1}, Kill.at_step(40, portion=0.5))
    check = await check_session(agent, ctx, crash.committed)
    assert check.problems == []

A kill loses nothing that was written, synced or not: this proves that a crash of the process costs no
promised turn. It proves nothing about a power cut.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from harness.errors import ConfigError, ScriptError
from harness.text import dumps, loads

__all__ = ["CommittedTurn", "Crash", "CrashKit", "Kill"]

_SERVE = "from harness.testing.crash_process import serve; serve()"
_KILLED = -9


@dataclass(frozen=True, slots=True)
class Kill:
    """When a process dies: after so many seconds, or within a file operation. Made by `after` and `at_step`."""

    delay: float | None = None
    step: int = 0
    portion: float = 1.0

    @classmethod
    def after(cls, delay: float) -> Kill:
        """So many seconds after the script began, wherever it then is."""
        if delay < 0:
            raise ConfigError(f"a kill after {delay} s cannot be; give 0 or more")
        return cls(delay=delay)

    @classmethod
    def at_step(cls, step: int, portion: float = 1.0) -> Kill:
        """In the file operation of that number, counted from 1 (a whole run tells how many there are).

        Of a write only the first `portion` of its bytes gets into the file, which leaves a torn line;
        any other operation is done first if `portion` is 0.5 or more, and left undone otherwise.
        """
        if step < 1 or not 0 <= portion <= 1:
            raise ConfigError(f"no kill at step {step} with portion {portion}; steps begin at 1, portions are 0 to 1")
        return cls(step=step, portion=portion)


@dataclass(frozen=True, slots=True)
class CommittedTurn:
    """A turn whose reply was given before the kill: it must never be lost."""

    number: int
    prompt: str
    reply: str


@dataclass(frozen=True, slots=True)
class Crash:
    """What became of one run.

    committed  the turns reported as given, in order
    begun      how many turns were asked for; one more than committed if a turn was cut off
    killed     False if the script ended before its time came
    step       the file operation it died in (`write`, `fdatasync`, …), empty for a kill by time
    written    bytes of the fatal write that reached the file, and how many there were
    steps      how many file operations a run to the end took; 0 for one that was killed
    """

    committed: tuple[CommittedTurn, ...]
    begun: int
    killed: bool
    step: str = ""
    written: tuple[int, int] = (0, 0)
    steps: int = 0

    @property
    def torn(self) -> bool:
        """Whether a write was cut in its middle."""
        return 0 < self.written[0] < self.written[1]


class CrashKit:
    """Runs one script again and again, each time in a new process that is killed.

    script  `module:function` or `path/to/file.py:function`, of an async function that takes a
            `Progress` and the arguments of the run

    A context manager. The processes are forked from one that has imported the script, so a run costs
    little more than what it does. Needs a system with `fork`.
    """

    def __init__(self, script: str) -> None:
        self._script = script
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(  # noqa: S603 - this Python, with code that stands above
            [sys.executable, "-c", _SERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def run(self, arguments: Mapping[str, Any], kill: Kill | None = None) -> Crash:
        """Run the script with these arguments (JSON) and kill it, or let it end without `kill`.

        Blocks. Raises `ScriptError` when the script itself fails.
        """
        order: dict[str, Any] = {"script": self._script, "arguments": dict(arguments)}
        if kill is not None:
            order |= {"delay": kill.delay, "step": kill.step, "portion": kill.portion}
        self._send(order)
        return _crash_of(list(self._reports()), self._script)

    def _send(self, order: Mapping[str, Any]) -> None:
        if self._process is None or self._process.stdin is None:
            raise ConfigError("the crash kit has no process; use it as `with CrashKit(script) as kit:`")
        self._process.stdin.write(dumps(order) + b"\n")
        self._process.stdin.flush()

    def _reports(self) -> Iterator[dict[str, Any]]:
        """What comes until the child has ended; a torn line was not reported."""
        pipe = self._process.stdout if self._process else None
        while line := pipe.readline() if pipe else b"":
            report = _report_in(line)
            yield report
            if "ended" in report:
                return
        raise ScriptError(f"the process of {self._script!r} ended; its standard error says why")


def _report_in(line: bytes) -> dict[str, Any]:
    try:
        report = loads(line)
    except ValueError:
        return {}
    return report if isinstance(report, dict) else {}


def _crash_of(reports: list[dict[str, Any]], script: str) -> Crash:
    merged = {key: value for report in reports for key, value in report.items()}
    if "error" in merged:
        raise ScriptError(f"the script {script!r} failed before it was killed:\n{merged['error']}")
    return Crash(
        committed=tuple(
            CommittedTurn(each["committed"], each["prompt"], each["reply"]) for each in reports if "committed" in each
        ),
        begun=sum("begun" in report for report in reports),
        killed=merged["ended"] == _KILLED,
        step=merged.get("step", ""),
        written=(merged.get("bytes", 0), merged.get("of", 0)),
        steps=merged.get("steps", 0),
    )
