"""The context file: the lines that make up what the model sees now, copied byte for byte from the ledger.

Line 1 is `{"type":"context","ledgerId","seq","hash","policy"}`, the position of the ledger when the
file was begun. Then follow the newest boundary's line, if there is one, and the message lines that
count since, in the order of the ledger. The file can be rebuilt at any time, so it is never synced,
and trouble with it is logged and does not stop a call.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.errors import FileMissing, PersistenceError
from harness.filesystem import disk
from harness.text import dumps, loads

__all__ = ["ContextFile", "context_header"]

_log = logging.getLogger("harness.sessions")


def context_header(ledger_id: str, seq: int, line_hash: str, policy: str) -> bytes:
    """Line 1 without its end."""
    return dumps({"type": "context", "ledgerId": ledger_id, "seq": seq, "hash": line_hash, "policy": policy})


class ContextFile:
    """One context file; all methods are for a worker thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.distrust()

    def distrust(self) -> None:
        """Compare the file with the ledger before the next write: somebody else may have been there."""
        self._size = -1

    def update(
        self, header: Callable[[], bytes], fresh: Sequence[bytes], whole: Callable[[], Sequence[bytes]], *, anew: bool
    ) -> None:
        """Append the lines that are new, or write the `whole` file where it is not as it must be, or `anew`."""
        try:
            if anew or not self._append(fresh):
                self._put(header(), whole(), anew)
        except (FileMissing, PersistenceError) as error:
            self.distrust()
            _log.warning("the context file %s could not be written and will be rebuilt: %s", self.path, error)

    def _append(self, fresh: Sequence[bytes]) -> bool:
        if self._size < 0:
            return False
        try:
            self._size = disk.append(self.path, _joined(fresh), sync=False, expect_size=self._size)
        except (FileMissing, PersistenceError) as error:
            _log.warning("the context file %s is not as it was left and is rebuilt: %s", self.path, error)
            return False
        return True

    def _put(self, header: bytes, lines: Sequence[bytes], anew: bool) -> None:
        """Make the file right: by the lines it lacks if it is a beginning of what it must be, else anew."""
        body = _joined(lines)
        there = None if anew else self._read_body(header)
        if there and body.startswith(there[1]):
            self._size = disk.append(self.path, body[len(there[1]) :], sync=False, expect_size=there[0])
            return
        data = header + b"\n" + body
        disk.replace(self.path, data, sync=False)
        self._size = len(data)

    def _read_body(self, header: bytes) -> tuple[int, bytes] | None:
        """The size of the file and its lines behind the first; None if it is of no use."""
        try:
            data = disk.read(self.path)
        except (FileMissing, PersistenceError):
            return None
        first, ended, body = data.partition(b"\n")
        if not ended or _ledger_of(first) != _ledger_of(header):
            return None
        return len(data), body


def _ledger_of(header: bytes) -> object:
    try:
        data = loads(header)
    except ValueError:
        return None
    return data.get("ledgerId") if isinstance(data, dict) else None


def _joined(lines: Sequence[bytes]) -> bytes:
    return b"\n".join([*lines, b""])
