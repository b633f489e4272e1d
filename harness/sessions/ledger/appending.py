"""The append-only file: lines are planned in memory, each linked to the one before, and written together.

Planning fixes a line's number, place and hash link, so that later lines can name it. Nothing moves
in what is written until the bytes are there; what could not be written stays planned and goes out
with the next commit, without a gap.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.errors import ConfigError, FileMissing, PersistenceError
from harness.filesystem.disk import AppendFile, FileMark
from harness.sessions.ledger.reading import Tail
from harness.sessions.lines.entries import MAX_LINE, Entry, digest, make_line, own_copy
from harness.text import dumps

__all__ = ["Ledger"]


class Ledger:
    """The end of one ledger, as written and as planned. Plan on the event loop, write in a worker."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.written = Tail()
        self.planned = Tail()
        self.pending: list[bytes] = []
        self.unsynced = False
        self._file: AppendFile | None = None
        self._existed = False
        self._named = False

    def reset(self, tail: Tail, *, synced: bool) -> None:
        """Start from the end that a reader found; planned lines are dropped.

        `synced` says that the file was synced before, and so its name: a writer may have been killed before that.
        """
        self._named = synced
        self.written = self.planned = tail
        self._existed = tail.size > 0
        self.pending.clear()

    def plan(
        self,
        kind: str,
        entry_id: str,
        fields: Mapping[str, Any],
        *,
        parent: str | None,
        turn: str | None = None,
        request: str | None = None,
        whole: Mapping[str, Any] | None = None,
    ) -> tuple[Entry, bytes]:
        """Add a line to those to be written. Raises `ConfigError` if it cannot be one.

        `whole` has what the entry shall hold of the fields, where that is known and nobody will change it; otherwise
        it is read from the line.
        """
        end = self.planned
        seq, offset = end.count + 1, end.size
        line = make_line(kind, entry_id, fields, parent=parent, seq=seq, prev_hash=end.hash, turn=turn, request=request)
        try:
            raw = dumps(line)
        except TypeError as error:
            raise ConfigError(f"a {kind} entry cannot be stored: {error}; clean its values first") from error
        size = len(raw)
        if size > MAX_LINE:
            raise ConfigError(f"a {kind} entry has {size} bytes, a line at most {MAX_LINE}; store a part as a file")
        if end.ended:
            self.pending.append(raw)
        else:  # a torn tail gets its line end first and stays a line of its own
            offset += 1
            self.pending.append(b"\n" + raw)
        self.planned = Tail(seq, offset + size + 1, digest(raw))
        return Entry({**line, **whole} if whole else own_copy(line, raw), seq, offset, size), raw

    def write(self, lines: list[bytes], sync: bool) -> None:
        """Append lines that were planned, in a worker. Raises `PersistenceError`, with nothing written.

        A file that was there and is gone is not made anew: it would begin in the middle.
        """
        try:
            file, is_fresh = self._opened()
            if lines:
                # What was opened by its path just now is still there; what was left open may have been taken away.
                append = file.add if is_fresh else file.append
                append(b"\n".join([*lines, b""]), sync)
            elif sync:
                file.sync()
        except FileMissing as error:
            raise PersistenceError(
                f"the ledger {self.path} was removed while its session was in use; nothing was written: "
                "restore the file, or send the prompt again to begin a new conversation under this id"
            ) from error

    def advance(self, lines: int, end: Tail, synced: bool) -> None:
        """Note that the first planned lines, up to `end`, are written."""
        del self.pending[:lines]
        self.written = end
        self._existed = True
        self._named = self._named or synced
        self.unsynced = not synced and (self.unsynced or lines > 0)

    def close(self) -> None:
        """Let go of the file; the next write opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    @property
    def mark(self) -> FileMark | None:
        """What the file is as this writer leaves it; None where it wrote nothing, or nobody can say."""
        file = self._file
        if file is None:
            return None
        try:
            found = file.mark()
        except PersistenceError:
            return None
        return found if found.size == file.size else found._replace(size=file.size)

    def _opened(self) -> tuple[AppendFile, bool]:
        """The file, and whether it was opened now."""
        if self._file is not None:
            return self._file, False
        file = AppendFile.open(self.path, create=not self._existed, named=self._named)
        if file.size != self.written.size:
            file.close()
            raise PersistenceError(
                f"the ledger {self.path} has {file.size} bytes where its writer left {self.written.size}; "
                "nothing was written: find out what else writes to it, then send the prompt again"
            )
        self._file = file
        return file, True
