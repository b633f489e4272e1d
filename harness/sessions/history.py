"""What was said in a session, from the ledger: all of it, also what was summarised since."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from harness.filesystem import disk
from harness.messages import MessageDict
from harness.sessions.blobs import read_blob, try_expand
from harness.sessions.entries import START, EntryDict, parse_line
from harness.sessions.reading import active_path, scan
from harness.sessions.turns import is_settled

__all__ = ["lines_backwards", "read_history"]

_BLOCK = 256 * 1024


def lines_backwards(path: Path) -> Iterator[bytes]:
    """The lines of a file from the last to the first, read in blocks from the end."""
    found = disk.mark(path)
    end = found.size if found else 0
    rest = b""
    while end > 0:
        start = max(0, end - _BLOCK)
        lines = (disk.read(path, start, end - start) + rest).split(b"\n")
        rest = lines[0]
        yield from reversed(lines[1:])
        end = start
    yield rest


def read_history(ledger: Path, blobs: Path, last_n: int) -> list[MessageDict]:
    """The last messages of the active branch, oldest first, read from the end of the file.

    Left out: what hooks put in for the model, partial text, output of requests that failed.
    """
    walk = _Walk(last_n)
    if not walk.run(ledger):
        walk = _Walk(last_n)
        walk.run_over_damage(ledger)
    for entry in walk.found:
        try_expand(entry, partial(read_blob, blobs))
    return [entry["message"] for entry in reversed(walk.found)]


class _Walk:
    """Follows the parents from the newest line back until enough messages are found."""

    def __init__(self, wanted: int) -> None:
        self.found: list[EntryDict] = []
        self._wanted = wanted
        self._committed: set[str] = set()

    def run(self, ledger: Path) -> bool:
        """False if a line of the branch is missing."""
        parent: str | None = None
        for raw in lines_backwards(ledger):
            if len(self.found) >= self._wanted:
                return True
            entry = parse_line(raw)
            if entry is None or parent not in (None, entry["id"]):
                continue
            self._take(entry)
            parent = entry.get("parentId")
            if parent is None:
                return True
        return parent is None

    def run_over_damage(self, ledger: Path) -> None:
        entries, _, _ = scan(disk.read(ledger), START)
        for entry in reversed(active_path(entries, damaged=True) or []):
            if len(self.found) < self._wanted:
                self._take(entry.data)

    def _take(self, entry: EntryDict) -> None:
        if entry["type"] == "request_end" and entry.get("status") == "completed":
            self._committed.add(str(entry.get("requestId")))
        elif entry.get("via") != "hook" and is_settled(entry, self._committed):
            self.found.append(entry)
