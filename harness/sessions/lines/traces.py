"""What else knows of the lines of a ledger, where it has no anchor that would tell."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from harness.errors import FileMissing, PersistenceError
from harness.filesystem import disk
from harness.sessions.lines.anchor import is_deleted, read_anchor
from harness.sessions.lines.layout import SessionFiles
from harness.text import loads

__all__ = ["Trace", "find_trace", "find_traces", "furthest"]


class Trace(NamedTuple):
    """That there were at least so many lines, what says so, and of which ledger."""

    lines: int
    source: str
    ledger_id: str


def find_trace(files: SessionFiles) -> Trace | None:
    """What the file beside a ledger says that knows most; None where all know of none, or of one that was deleted.

    Blocking.
    """
    return furthest(find_traces(files))


def find_traces(files: SessionFiles) -> list[Trace]:
    """What each file says that knows of some lines, those of a ledger that was deleted left out. Blocking.

    Lines are written before any file that knows of them: asked before the ledger is read, none can know of more
    than is read then, whoever writes meanwhile.
    """
    anchor = read_anchor(files.anchor)
    deleted = anchor.deleted if anchor else ()
    found = [
        Trace(lines, source, ledger_id)
        for path, source in ((files.context, "the context file"), (files.snapshot, "the snapshot"))
        for ledger_id, lines in [_position_in(path)]
    ]
    return [trace for trace in found if trace.lines and not is_deleted(trace.ledger_id, deleted)]


def furthest(traces: Iterable[Trace], ledger_id: str | None = None) -> Trace | None:
    """The trace that knows of most lines of a ledger, or of any ledger."""
    return max((each for each in traces if ledger_id in {None, each.ledger_id}), default=None)


def _position_in(path: Path) -> tuple[str, int]:
    """The ledger that the first line of a file names, and the furthest line of it that the file knows of, or 0."""
    try:
        first, *others = (disk.read(path) if disk.has_file(path) else b"").split(b"\n")
    except (FileMissing, PersistenceError):
        return "", 0
    ledger_id = _value(first, "ledgerId")
    # What follows the last line feed was never finished.
    known = (_value(line, "seq") for line in (first, *others[:-1][-1:]))
    lines = max(seq if type(seq) is int else 0 for seq in known)
    return (ledger_id, lines) if isinstance(ledger_id, str) and lines > 0 else ("", 0)


def _value(line: bytes, name: str) -> object:
    try:
        value = loads(line)
    except ValueError:
        return None
    return value.get(name) if isinstance(value, dict) else None
