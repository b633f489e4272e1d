"""Walking, globbing and grepping below a folder, within bounds.

A search asked for by a model may meet any number of files and any pattern, so it has a budget of
files, bytes and time; what it did not get to is said, not hidden.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from itertools import islice

from harness.errors import FilesystemError
from harness.filesystem.base import FileInfo, FileList, GrepMatch, GrepResult
from harness.filesystem.globs import Glob
from harness.filesystem.paths import MAX_DEPTH, Parts, join
from harness.filesystem.trees import Layers, Node

__all__ = ["Search", "info"]

_MAX_SECONDS = 1.5
_MAX_FILES = 50_000
_MAX_BYTES = 256 * 2**20
_MAX_HITS = 1000
_MAX_LINE = 500  # characters of a line that is shown
_SNIFFED = 8192  # bytes in which a NUL tells a binary file

_log = logging.getLogger("harness.filesystem")


def info(node: Node) -> FileInfo:
    """What callers see of a node."""
    return FileInfo(join(node.parts), node.is_dir, node.size, node.modified)


class Search:
    """One search: its budget, and whether it left anything out."""

    def __init__(self, layers: Layers, shows: Callable[[Parts], bool], max_file_bytes: int) -> None:
        self._layers = layers
        self._shows = shows
        self._max_file_bytes = max_file_bytes
        self._deadline = time.monotonic() + _MAX_SECONDS
        self._files = _MAX_FILES
        self._bytes = _MAX_BYTES
        self._truncated = False

    def glob(self, start: Parts, pattern: str) -> FileList:
        """Files below `start` that match."""
        glob = Glob(pattern)
        found: list[FileInfo] = []
        for node in self._walk(start):
            if glob.matches(node.parts[len(start) :]):
                found.append(info(node))
                if self._is_full(len(found)):
                    break
        return FileList(tuple(sorted(found, key=lambda one: one.path)), self._truncated)

    def grep(self, start: Parts, text: str, pattern: str | None) -> GrepResult:
        """Lines that contain `text`, in the file `start` or below the folder `start`."""
        glob = Glob(pattern) if pattern else None
        wanted = text.encode(errors="replace")
        found: list[GrepMatch] = []
        for node in self._files_of(start):
            if glob is None or glob.matches(node.parts[len(start) :] or node.parts[-1:]):
                found.extend(self._grep_file(node, wanted, _MAX_HITS - len(found)))
                if self._is_full(len(found)):
                    break
        return GrepResult(tuple(found), self._truncated)

    def _files_of(self, start: Parts) -> Iterator[Node]:
        node = self._layers.stat(start) if start else None
        return iter([node]) if node and not node.is_dir else self._walk(start)

    def _walk(self, start: Parts) -> Iterator[Node]:
        """All files below a folder, folder by folder; a folder that cannot be read only if it is the first."""
        pending = [start]
        while pending:
            nodes = self._list(pending.pop(), start)
            for node in nodes:
                if not node.is_dir:
                    if self._is_spent():
                        return
                    yield node
            pending.extend(node.parts for node in reversed(nodes) if node.is_dir)

    def _list(self, folder: Parts, start: Parts) -> list[Node]:
        if len(folder) >= MAX_DEPTH:
            self._truncated = True
            return []
        try:
            nodes = self._layers.children(folder)
        except FilesystemError as error:
            if folder == start:
                raise
            self._pass_over(error)
            return []
        return [node for node in nodes if self._shows(node.parts)]

    def _grep_file(self, node: Node, wanted: bytes, most: int) -> list[GrepMatch]:
        if node.size > min(self._max_file_bytes, self._bytes):
            self._truncated = True
            return []
        try:
            data = self._layers.load(node.parts, self._max_file_bytes)
        except FilesystemError as error:
            self._pass_over(error)
            return []
        self._bytes -= len(data)
        if wanted not in data or b"\0" in data[:_SNIFFED]:
            return []
        return self._matches(join(node.parts), data, wanted, most)

    def _matches(self, path: str, data: bytes, wanted: bytes, most: int) -> list[GrepMatch]:
        lines = (pair for pair in enumerate(data.split(b"\n"), 1) if wanted in pair[1])
        # One more than fits, to know whether there are more.
        found = list(islice(lines, most + 1))
        self._truncated = self._truncated or len(found) > most
        return [GrepMatch(path, number, _shown(line)) for number, line in found[:most]]

    def _is_full(self, hits: int) -> bool:
        full = hits >= _MAX_HITS
        self._truncated = self._truncated or full
        return full

    def _is_spent(self) -> bool:
        self._files -= 1
        spent = self._files < 0 or time.monotonic() > self._deadline
        self._truncated = self._truncated or spent
        return spent

    def _pass_over(self, error: FilesystemError) -> None:
        _log.info("passed over in a search: %s", error)
        self._truncated = True


def _shown(line: bytes) -> str:
    text = line.removesuffix(b"\r").decode(errors="replace")
    return text if len(text) <= _MAX_LINE else text[:_MAX_LINE] + "…"
