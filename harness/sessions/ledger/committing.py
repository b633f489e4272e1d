"""One commit: what a worker thread does in one go, in an order that a crash at any point survives.

Files that lines name come first, then the lines with one write and one sync, then the copies in
the context file, then the anchor. Only the first two may fail a commit; the rest can be rebuilt.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import FileMissing, PersistenceError
from harness.filesystem import disk
from harness.filesystem.locks import FileLock
from harness.sessions.ledger.appending import Ledger
from harness.sessions.ledger.reading import Tail
from harness.sessions.lines.blobs import Blobs, write_blobs
from harness.sessions.lines.contextfile import ContextFile
from harness.sessions.lines.entries import Entry
from harness.sessions.lines.layout import SessionFiles
from harness.text import error_text

__all__ = ["BLOB_LOCK_SECONDS", "Commit", "ContextUpdate", "blob_lock"]

_log = logging.getLogger("harness.sessions")
BLOB_LOCK_SECONDS = 60.0
"""How long the lock of the contents is waited for; outside of the workers."""
_PIECE = 1024 * 1024


@dataclass(slots=True)  # a frozen one takes three times as long to make
class ContextUpdate:
    """What happens to the context file: `fresh` lines are added, or `header` and all that `whole` gives written."""

    header: Callable[[], bytes]
    fresh: Sequence[bytes]
    whole: Callable[[], Sequence[Entry]]
    anew: bool


@dataclass(slots=True)
class Commit:
    """The parts of one commit; `written` says that the ledger has the lines, whatever came after.

    sync     whether the lines are synced now
    durable  whether they will be, so that the contents they name must be
    along    what else is to be done in the same hop, once the lines are written; it cannot fail the commit
    """

    files: SessionFiles
    ledger: Ledger
    context: ContextFile
    lines: list[bytes]
    end: Tail
    sync: bool
    durable: bool
    blobs: Blobs = field(default_factory=dict)
    update: ContextUpdate | None = None
    anchor: bytes | None = None
    along: Callable[[], None] | None = None
    written: bool = False
    unanchored: str | None = None
    """Why the anchor could not be written; the lines are."""

    def run(self) -> None:
        """Do it, in a worker. Raises `PersistenceError`; then the ledger has none of the lines.

        With `blobs` the caller holds `blob_lock`: no session that is deleted now may take away what these lines name.
        """
        if self.blobs:
            # Synced also where the lines are not yet: a later sync of the ledger makes those durable.
            write_blobs(self.files.blobs, self.blobs, sync=self.durable)
        self._write_lines()
        if self.update:
            update = self.update
            self.context.update(update.header, update.fresh, lambda: self._copies(update.whole()), anew=update.anew)
        if self.anchor:
            self._write_anchor(self.anchor)
        if self.along:
            self._take_along(self.along)

    def _write_lines(self) -> None:
        self.ledger.write(self.lines, self.sync)
        self.written = True

    def _copies(self, entries: Sequence[Entry]) -> list[bytes]:
        """The bytes of lines, read back from the ledger in pieces; what lies between them may be long."""
        copies: list[bytes] = []
        for piece in _pieces(entries):
            start = piece[0].offset
            data = disk.read(self.files.ledger, start, piece[-1].offset + piece[-1].size - start)
            copies += [data[e.offset - start : e.offset - start + e.size] for e in piece]
        return copies

    def _write_anchor(self, block: bytes) -> None:
        try:
            disk.write_block(self.files.anchor, block)
        except (FileMissing, PersistenceError) as error:
            self.unanchored = error_text(error)
            _log.warning("the anchor %s could not be written, the next writer will: %s", self.files.anchor, error)

    def _take_along(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:  # noqa: BLE001 - the lines are written, whatever else goes wrong
            _log.warning("what went along with a commit to %s failed", self.files.ledger, exc_info=True)


def _pieces(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    """The lines in groups that are worth one reading each."""
    first = 0
    for index in range(1, len(entries) + 1):
        if index == len(entries) or entries[index].offset + entries[index].size - entries[first].offset > _PIECE:
            yield entries[first:index]
            first = index


def blob_lock(folder: Path, *, sync: bool = False) -> FileLock:
    """The lock between those who add contents to a folder, which it makes, with `sync` durably, and who remove them."""
    return FileLock(folder / "files.lock", sync=sync)
