"""What was said in a session, from the ledger: all of it, also what was summarised since."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from harness.filesystem import disk
from harness.messages import MessageDict
from harness.sessions.ledger.reading import active_path
from harness.sessions.lines.anchor import read_anchor
from harness.sessions.lines.blobs import read_blob, try_expand
from harness.sessions.lines.entries import Entry, EntryDict, parse_line
from harness.sessions.lines.layout import SessionFiles
from harness.sessions.lines.second_header import may_have_another
from harness.sessions.lines.skimming import LONGEST, cut_short, skim, uncut
from harness.sessions.view.turns import is_settled

__all__ = ["lines_backwards", "read_history", "read_told"]

_BLOCK = 256 * 1024


def lines_backwards(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file from the last to the first, each with its first byte's place, read in blocks from the end.

    Of a line that is longer than `LONGEST`, which none of ours is, nothing comes.
    """
    found = disk.mark(path)
    end = found.size if found else 0
    rest: list[bytes] = []  # the parts of a line that begins further ahead, the last one first
    size = 0
    while end > 0:
        start = max(0, end - _BLOCK)
        first, *others = disk.read(path, start, end - start).split(b"\n")
        place = end
        for number, part in enumerate(reversed(others)):
            place -= len(part)
            if number:
                yield place, part
            elif size + len(part) <= LONGEST:
                yield place, b"".join(reversed([*rest, part]))
            place -= 1
        if others:
            rest, size = [], 0
        size += len(first)
        rest = [*rest, first] if size <= LONGEST else []
        end = start
    if size <= LONGEST:
        yield 0, b"".join(reversed(rest))


def read_history(files: SessionFiles, last_n: int) -> Iterator[MessageDict]:
    """The last messages of the active branch, oldest first; see `read_told`. Blocking."""
    return (line["message"] for line in read_told(files, last_n))


def read_told(files: SessionFiles, last_n: int) -> Iterator[EntryDict]:
    """The lines of the last messages of the active branch, oldest first; they are found from the end of the file.

    Left out: what hooks put in for the model, partial text, output of requests that failed. Each
    message is read when its turn comes, so that many large ones need not be held. Blocking.
    """
    walk = _Walk(files.ledger, last_n)
    if _ends_with_anothers(files) or not walk.run():
        walk = _Walk(files.ledger, last_n)
        walk.run_over_damage()
    for entry in reversed(walk.found):
        data = {**uncut(entry, files.ledger)}
        try_expand(data, partial(read_blob, files.blobs))
        yield data


def _ends_with_anothers(files: SessionFiles) -> bool:
    """Whether the newest line may be of another ledger; where the anchor's end is, a writer of this one was."""
    anchor, found = read_anchor(files.anchor), disk.mark(files.ledger)
    known = anchor.bytes if anchor and found and anchor.bytes <= found.size else 0
    return may_have_another(files.ledger, known)


class _Walk:
    """Follows the parents from the newest line back until enough messages are found."""

    def __init__(self, ledger: Path, wanted: int) -> None:
        self.found: list[Entry] = []
        self._ledger = ledger
        self._wanted = wanted
        self._committed: set[str] = set()

    def run(self) -> bool:
        """False if a line of the branch is missing, or another ledger's are in the way."""
        parent: str | None = None
        for offset, raw in lines_backwards(self._ledger):
            if len(self.found) >= self._wanted:
                return True
            data = parse_line(raw)
            if data is None or parent not in (None, data["id"]):
                continue
            if offset and data["type"] == "header":
                return False
            self._take(Entry(data, 0, offset, len(raw)))
            parent = data.get("parentId")
            if parent is None:
                return True
        return parent is None

    def run_over_damage(self) -> None:
        entries, _, _ = skim(self._ledger)
        for entry in reversed(active_path(entries, damaged=True) or []):
            if len(self.found) < self._wanted:
                self._take(entry)

    def _take(self, entry: Entry) -> None:
        data = entry.data
        if entry.kind == "request_end" and data.get("status") == "completed":
            self._committed.add(str(data.get("requestId")))
        elif data.get("via") != "hook" and is_settled(data, self._committed):
            self.found.append(cut_short(entry))
