"""What a command prints: text that cannot steer the terminal, or one JSON document."""

from __future__ import annotations

import errno
import re
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from harness.cli.streams import nowhere
from harness.errors import PersistenceError
from harness.filesystem import disk, pool
from harness.filesystem.lowlevel import advice
from harness.text import dumps, visible

__all__ = [
    "JsonList",
    "json_list",
    "one_line",
    "present",
    "report_error",
    "say",
    "say_aside",
    "say_json",
    "snake_keys",
    "stream_aside",
    "stream_text",
    "unwritten",
]

_MOST_LINES = 30
_AT_ONCE = 1024 * 1024
_CAPITAL = re.compile("(?<=[a-z0-9])[A-Z]")
_C1 = re.compile("[\x7f-\x9f]")


def one_line(text: str, width: int = 100) -> str:
    """`text` for a cell of a list: one line, at most `width` characters, nothing that steers."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= width else line[: width - 1] + "…"


def say(text: str = "") -> None:
    """Print a line for a person."""
    stream_text(f"{text}\n")


def say_aside(text: str) -> None:
    """Print a line for a person beside the output, on standard error."""
    stream_aside(f"{text}\n")


def stream_aside(text: str) -> None:
    """Print a piece beside the output, on standard error, at once."""
    sys.stderr.write(visible(text))
    sys.stderr.flush()


def stream_text(text: str) -> None:
    """Print a piece for a person, at once."""
    _write(visible(text).encode(sys.stdout.encoding or "utf-8", "replace"))


def say_json(document: Mapping[str, Any]) -> None:
    """Print the command's one JSON document, in UTF-8 whatever the terminal."""
    _write(_escaped(document) + b"\n")


@asynccontextmanager
async def json_list(name: str, /, **fields: Any) -> AsyncIterator[JsonList]:
    """The one JSON document, with a list as its last field: printed when the block has given all; else none of it."""
    with disk.temporary_folder() as folder:
        whole = JsonList(folder, name, fields)
        yield whole
        await whole.say()


class JsonList:
    """A JSON document that grows by the items of its last field; what is too much to be held waits in files."""

    def __init__(self, folder: Path, name: str, fields: dict[str, Any]) -> None:
        self.fields = fields
        """What stands before the list."""
        self._folder, self._name = folder, name
        self._held: list[bytes] = []
        self._size = 0
        self._parts: list[Path] = []

    async def add(self, item: Mapping[str, Any]) -> None:
        """One more item."""
        self._held.append(_escaped(item))
        self._size += len(self._held[-1])
        if self._size > _AT_ONCE:
            await pool.run(self._put_aside)

    async def say(self) -> None:
        """Print it."""
        before = _escaped({**self.fields, self._name: []}).removesuffix(b"]}")
        for part in self._parts:
            _write(before + await pool.run(disk.read, part))
            before = b","
        _write((before if self._held or not self._parts else b"") + b",".join(self._held) + b"]}\n")

    def _put_aside(self) -> None:
        part = self._folder / str(len(self._parts))
        disk.create(part, b",".join(self._held), sync=False)
        self._parts.append(part)
        self._held, self._size = [], 0


def snake_keys(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields as a command names them; what they hold stays as it is.

    Keys that a command makes are snake_case. Messages, usage and lines of a ledger are shown as they are stored.
    """
    return {_CAPITAL.sub(lambda found: f"_{found[0].lower()}", name): value for name, value in fields.items()}


def present(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that have a value: absent, never null."""
    return {name: value for name, value in fields.items() if value is not None}


def report_error(error: BaseException, *, as_json: bool) -> None:
    """The error on standard error, what it lists one a line, then its notes; with `--json` the document owed, too."""
    hints: list[str] = getattr(error, "__notes__", [])
    first, *listed = (one_line(line, 2000) for line in str(error).split("\n"))
    say_aside(f"error: {first}")
    for line in listed[:_MOST_LINES]:
        say_aside(f"  {line}")
    for hint in hints:
        say_aside(f"hint: {one_line(hint, 2000)}")
    if as_json:
        try:
            say_json({"error": str(error), "type": type(error).__name__, **({"hints": hints} if hints else {})})
        except PersistenceError as unsaid:  # the document cannot be given; what it would have said stands above
            say_aside(f"error: {unsaid}")


def _escaped(value: Mapping[str, Any]) -> bytes:
    """JSON in which nothing steers a terminal."""
    return _C1.sub(lambda found: f"\\u{ord(found[0]):04x}", dumps(value).decode()).encode()


def _write(raw: bytes) -> None:
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(raw)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        sys.stdout = nowhere()
        raise
    except OSError as error:
        raise unwritten(error) from error


def unwritten(error: OSError) -> PersistenceError:
    """What is to be raised or reported where standard output took nothing."""
    sys.stdout = nowhere()  # or Python would try once more to write what is left when it ends, and complain
    said = "it is closed; send it to a file or a terminal" if error.errno == errno.EBADF else advice(error)
    return PersistenceError(f"cannot write to standard output: {said}")
