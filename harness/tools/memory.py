"""The memory tools: search and read `MEMORY.md` and the daily files under `memory/`."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from harness.context import CallScope
from harness.errors import FileMissing, FilesystemError, ToolError
from harness.filesystem import pool
from harness.filesystem.base import AbstractFilesystem, FileInfo
from harness.tools.base import Function
from harness.tools.bounds import bounded_list, shortened
from harness.tools.function import tool
from harness.tools.queries import asked, echoed
from harness.tools.words import Line, Ranked, rank

__all__ = ["MEMORY_TOOLS", "memory_get", "memory_search"]

_MEMORY = "MEMORY.md"
_FOLDER = "memory"
_TIMEOUT = 60.0
_MAX_RESULTS = 100
_MAX_LINE = 500
_NARROWER = "there are more; add a word to the query"

log = logging.getLogger("harness.tools")


@tool(timeout=_TIMEOUT)
async def memory_search(files: AbstractFilesystem, scope: CallScope, query: str, max_results: int = 10) -> str:
    """Search what is remembered about this user, in MEMORY.md and the daily notes, as path#line: text.

    Args:
        query: words to look for, in any order
        max_results: how many lines at most
    """
    wanted = asked(query)
    texts = [(path, await _text(files, path)) for path in await _paths(files)]
    limit = min(max(max_results, 1), _MAX_RESULTS)
    ranked = await pool.run_alone(scope.namespace, rank, wanted, _lines(texts), limit)
    return _report(query, ranked) if ranked.lines else f"No matching memories found for: {echoed(query)}"


def _report(query: str, ranked: Ranked) -> str:
    head = (
        f"Found {ranked.found} matches:"
        if ranked.complete
        else f"No line holds all of: {echoed(query)}\nClosest lines:"
    )
    lines = [f"{line.path}#{line.number}: {shortened(line.text.strip(), _MAX_LINE)}" for line in ranked.lines]
    return bounded_list([head, "", *lines], _NARROWER, truncated=ranked.found > len(lines))


@tool(timeout=_TIMEOUT)
async def memory_get(files: AbstractFilesystem, path: str, start_line: int = 1, end_line: int = 0) -> str:
    """Read lines of a memory file, each with its number.

    Args:
        path: MEMORY.md, or a file under memory/
        start_line: the first line, counted from 1
        end_line: the last line; 0 for the end of the file
    """
    _check_path(path)
    first = max(start_line, 1)
    if end_line and end_line < first:
        raise ToolError(
            f"Error: end_line {end_line} lies before start_line {first}; give a later one, or 0 for the end"
        )
    found = await files.read(path, first - 1, end_line - first + 1 if end_line else 0)
    lines = found.text.removesuffix("\n").split("\n") if found.text else []
    numbered = (f"{number}|{line.removesuffix(chr(13))}" for number, line in enumerate(lines, first))
    return bounded_list(numbered, "the text goes on; read it with a later start_line")


def _check_path(path: str) -> None:
    """Whatever else the path is, the filesystem checks; here only that it names memory."""
    if path.strip().removeprefix("./") != _MEMORY and not path.strip().removeprefix("./").startswith(f"{_FOLDER}/"):
        raise ToolError(f"Error: {echoed(path)} is no memory file; give {_MEMORY} or a file under {_FOLDER}/")


async def _paths(files: AbstractFilesystem) -> list[str]:
    """`MEMORY.md`, then the daily files, the newest first."""
    names = [item.path for item in await _daily(files) if item.path.count("/") == 1]
    return [*([_MEMORY] if await files.exists(_MEMORY) else []), *sorted(names, reverse=True)]


async def _daily(files: AbstractFilesystem) -> tuple[FileInfo, ...]:
    try:
        return (await files.glob("*.md", _FOLDER)).items
    except FileMissing:
        return ()
    except FilesystemError as error:  # no folder: the rest is searched all the same
        log.warning("the daily files are left out of a search: %s", error)
        return ()


async def _text(files: AbstractFilesystem, path: str) -> str:
    try:
        return (await files.read_bytes(path)).decode(errors="replace")
    except FilesystemError as error:
        log.warning("memory file left out of a search: %s", error)
        return ""


def _lines(texts: list[tuple[str, str]]) -> Iterator[Line]:
    for path, text in texts:
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield Line(path, number, line)


MEMORY_TOOLS: tuple[Function, ...] = (memory_search, memory_get)
"""Searching and reading what is remembered about the tenant."""
