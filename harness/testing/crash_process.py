"""The process that a crash kit kills: it imports everything once and forks a child for each run.

Only the forked child runs the script, so no loop, thread or lock of an earlier run is ever copied.
The child may be killed from outside after a time, or kills itself in the middle of a file operation.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

from harness.errors import ConfigError
from harness.text import dumps, loads

__all__ = ["STEPS", "FatalSteps", "Progress", "load_script", "serve"]

STEPS = ("write", "fdatasync", "fsync", "replace", "rename", "link", "unlink", "ftruncate", "mkdir")
"""The functions of `os` that count as a step: all by which the library changes what is on disk."""

_POLL = 0.0005  # seconds
_LONGEST = 60.0  # seconds; a child that takes longer hangs


class Progress:
    """What a script reports to those who will judge it; only what was reported counts as promised."""

    def __init__(self, write: Callable[[bytes | memoryview], int]) -> None:
        self._write = write

    def begun(self, number: int, prompt: str) -> None:
        """A turn is about to be asked."""
        self.send({"begun": number, "prompt": prompt})

    def committed(self, number: int, prompt: str, reply: str) -> None:
        """The turn's reply was given, so both must be there for ever."""
        self.send({"committed": number, "prompt": prompt, "reply": reply})

    def send(self, report: Mapping[str, Any]) -> None:
        """Write one line; a kill may tear it, and then it was not reported."""
        rest = memoryview(dumps(report) + b"\n")
        while rest:
            rest = rest[self._write(rest) :]


class FatalSteps:
    """Counts the file operations of this process, and dies in the one that was chosen.

    step     the operation to die in, counted from 1; 0 to count only
    portion  how much of a write reaches the file before; other operations are done from 0.5 on
    """

    def __init__(self, progress: Progress, step: int, portion: float) -> None:
        self.count = 0
        self._progress = progress
        self._step = step
        self._portion = portion
        self._lock = threading.Lock()

    def install(self) -> None:
        """Stand in for the functions named in `STEPS`, for the rest of this process's life."""
        for name in STEPS:
            setattr(os, name, self._counted(name, getattr(os, name)))

    def _counted(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def stand_in(*arguments: Any, **options: Any) -> Any:
            with self._lock:
                self.count += 1
                if self.count == self._step:
                    self._die(name, real, arguments, options)
            return real(*arguments, **options)

        return stand_in

    def _die(self, name: str, real: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        try:
            if name == "write":
                self._die_writing(real, *arguments)
            elif self._portion >= 0.5:
                real(*arguments, **options)
            self._progress.send({"step": name})
        finally:  # also where the operation itself fails, as removing what is not there does
            os.kill(os.getpid(), signal.SIGKILL)

    def _die_writing(self, real: Callable[..., Any], descriptor: int, data: bytes) -> None:
        cut = int(len(data) * self._portion)
        self._progress.send({"bytes": real(descriptor, data[:cut]), "of": len(data)})


def load_script(name: str) -> Callable[..., Any]:
    """The function behind `module:function` or `path/to/file.py:function`. Raises `ConfigError`."""
    place, _, function = name.rpartition(":")
    module = _from_file(place) if place.endswith(".py") else importlib.import_module(place)
    found = getattr(module, function, None)
    if not callable(found):
        raise ConfigError(f"the script {name!r} names no function; give module:function or file.py:function")
    return found  # type: ignore[no-any-return]  # whatever is callable is tried


def serve() -> None:
    """Take orders from standard input, a JSON line each, and run one child after the other."""
    # What the script prints must not get between the reports.
    pipe = os.dup(1)
    os.dup2(2, 1)
    progress = Progress(partial(os.write, pipe))  # the real one, before a child counts its steps
    while line := sys.stdin.buffer.readline():
        order = loads(line)
        script = load_script(order["script"])
        if threading.active_count() > 1:
            raise ConfigError(f"{order['script']!r} starts threads when imported, which a fork would lose; do it later")
        progress.send(_run(script, order, progress))


def _from_file(place: str) -> ModuleType:
    known = sys.modules.get(place)
    if known is not None:
        return known
    spec = spec_from_file_location("crash_script", place)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{place} is no Python file; give module:function or file.py:function")
    module = module_from_spec(spec)
    sys.modules[place] = sys.modules["crash_script"] = module
    spec.loader.exec_module(module)
    return module


def _run(script: Callable[..., Any], order: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Fork, wait, kill if asked to, and tell how the child ended."""
    ready, at_start = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ready)
        _be_the_child(script, order, progress, at_start)
    os.close(at_start)
    os.read(ready, 1)
    os.close(ready)
    status = _wait(child, order.get("delay"))
    # Ends a report that the kill has torn.
    progress.send({})
    return {"ended": os.waitstatus_to_exitcode(status)}


def _wait(child: int, delay: float | None) -> int:
    deadline = time.monotonic() + (_LONGEST if delay is None else delay)
    while time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return status
        time.sleep(_POLL)
    # Not yet waited for, so the number still belongs to the child.
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def _be_the_child(script: Callable[..., Any], order: Mapping[str, Any], progress: Progress, at_start: int) -> None:
    """Run the script and end the process; never returns."""
    code = 1
    try:
        steps = FatalSteps(progress, int(order.get("step") or 0), float(order.get("portion", 1.0)))
        steps.install()
        os.close(at_start)
        asyncio.run(script(progress, order["arguments"]))
        progress.send({"steps": steps.count})
        code = 0
    except BaseException:  # noqa: BLE001 - whatever it is, the parent is told
        progress.send({"error": traceback.format_exc()})
    finally:
        os._exit(code)
