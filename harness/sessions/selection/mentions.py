"""The files that a tool call names in its arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["MOST_LETTERS", "files_in", "one_line"]

MOST_LETTERS = 300
"""A longer one is no name of a file, and a longer line is cut."""
_PATHS = frozenset(
    {"path", "paths", "file", "files", "file_path", "filepath", "filename", "source", "target", "destination"}
)


def files_in(arguments: Any) -> Iterator[str]:
    """The names of files among a call's arguments, known by the arguments' own names."""
    if not isinstance(arguments, dict):
        return
    for key, value in arguments.items():
        values = value if isinstance(value, list) else [value]
        if str(key).lower() in _PATHS:
            yield from (one_line(item) for item in values if isinstance(item, str) and 0 < len(item) <= MOST_LETTERS)


def one_line(text: str) -> str:
    """A text as one line of bounded length."""
    short = " ".join(text.split())
    return short if len(short) <= MOST_LETTERS else f"{short[:MOST_LETTERS]}…"
