"""What a command prints: text that cannot steer the terminal, or one JSON document."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator, Mapping
from typing import Any

from harness.text import dumps, visible

__all__ = [
    "one_line",
    "present",
    "report_error",
    "say",
    "say_aside",
    "say_json",
    "say_json_list",
    "stream_aside",
    "stream_text",
]

_MOST_LINES = 30
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


async def say_json_list(document: Mapping[str, Any], name: str, items: AsyncIterator[Mapping[str, Any]]) -> None:
    """Print the one JSON document with a list as its last field, item by item; nothing if the first one cannot be had.

    An error behind the first item leaves a document without an end: nobody takes it for a whole one.
    """
    before = _escaped({**document, name: []}).removesuffix(b"]}")
    async for item in items:
        _write(before + _escaped(item))
        before = b","
    _write(b"]}\n" if before == b"," else before + b"]}\n")


def present(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that have a value: absent, never null."""
    return {name: value for name, value in fields.items() if value is not None}


def report_error(error: BaseException, *, as_json: bool) -> None:
    """The error on standard error, what it lists one a line; with `--json` the document that is owed, too."""
    if as_json:
        say_json({"error": str(error), "type": type(error).__name__})
    first, *listed = (one_line(line, 2000) for line in str(error).split("\n"))
    say_aside(f"error: {first}")
    for line in listed[:_MOST_LINES]:
        say_aside(f"  {line}")


def _escaped(value: Mapping[str, Any]) -> bytes:
    """JSON in which nothing steers a terminal."""
    return _C1.sub(lambda found: f"\\u{ord(found[0]):04x}", dumps(value).decode()).encode()


def _write(raw: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(raw)
    sys.stdout.buffer.flush()
