"""What only a ledger of this library can tell: its requests, its decisions, and whether it is whole.

Blocking: run it in a worker. Reading is lenient, as for display: damage is named beside what could be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from harness.filesystem import disk
from harness.sessions.catalog.prices import find_price
from harness.sessions.catalog.request_pages import request_line
from harness.sessions.catalog.usage import UsageReport, report_of, requests_in
from harness.sessions.checking.verify import VerifyReport, verify_session
from harness.sessions.ledger.reading import active_path, scan
from harness.sessions.lines.blobs import read_blob, try_expand
from harness.sessions.lines.entries import START, Entry
from harness.sessions.lines.layout import LEDGER_SUFFIX, Owner, SessionFiles

__all__ = ["Ledger", "Lines", "context_window", "events", "open_ledger", "read_lines", "read_to", "usage"]

_ENVELOPE = frozenset({"type", "id", "parentId", "seq", "prevHash", "timestamp", "turnId", "requestId", "prevBoundary"})


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a file."""

    files: SessionFiles
    entries: Sequence[Entry]


@dataclass(frozen=True, slots=True)
class Ledger(Lines):
    """The lines of a whole file, the ones that lead to its end, and what is wrong with it."""

    path: Sequence[Entry]
    report: VerifyReport


def open_ledger(path: Path) -> Ledger:
    """Read and check a ledger. Raises `FileMissing`."""
    lines, is_damaged = _read(path)
    report = verify_session(lines.files, _owner(lines.entries))
    active = active_path(lines.entries, damaged=is_damaged) or lines.entries
    return Ledger(lines.files, lines.entries, active, _without_places(report, path))


def read_to(path: Path, request_id: str) -> Lines:
    """A ledger up to the line with which a request begins. Raises `FileMissing`, `SessionNotFound`."""
    line = request_line(path, request_id)
    return _read(path, line.offset + line.size)[0]


def read_lines(path: Path) -> Lines:
    """A ledger as it stands there, unchecked. Raises `FileMissing`."""
    return _read(path)[0]


def _read(path: Path, length: int | None = None) -> tuple[Lines, bool]:
    entries, damage, _ = scan(disk.read(path, length=length), START)
    read = partial(read_blob, path.parent / "files")
    for entry in entries:
        if entry.refers:
            try_expand(entry.data, read)
    return Lines(SessionFiles(path.parent, path.name.removesuffix(LEDGER_SUFFIX)), entries), bool(damage)


def _owner(entries: Sequence[Entry]) -> Owner:
    """Whose ledger it says it is; whose it must be was decided by what is on the shelf."""
    header = entries[0].data if entries else {}
    tenant = header.get("tenant")
    names = tenant if isinstance(tenant, list) else []
    return Owner(str(header.get("session", "")), str(header.get("agent", "")), tuple(str(name) for name in names))


def _without_places(report: VerifyReport, path: Path) -> VerifyReport:
    """Findings tell where files are; pages name no place of the machine."""
    findings = (replace(found, text=found.text.replace(f"{path.parent}/", "")) for found in report.findings)
    return replace(report, findings=tuple(findings))


def usage(ledger: Lines) -> UsageReport:
    """Every request that went out, how it ended and what it cost, and the sums."""
    header = ledger.entries[0].data if ledger.entries else {}
    rows = requests_in(str(header.get("session", "")), (entry.data for entry in ledger.entries), find_price)
    return report_of(rows)


def events(ledger: Lines) -> list[dict[str, Any]]:
    """Decisions and incidents in order: compactions, approvals, retries, switches, sub-agents, whatever was noted."""
    return [
        {"id": entry.id, "at": entry.data.get("timestamp"), **_told(entry)}
        for entry in ledger.entries
        if entry.kind in ("compaction", "event")
    ]


def _told(entry: Entry) -> dict[str, Any]:
    data = entry.data
    if entry.kind == "event":
        details = data.get("data")
        return {"kind": data.get("kind"), "details": details if isinstance(details, dict) else {}}
    details = {name: value for name, value in data.items() if name not in _ENVELOPE}
    if isinstance(cards := details.get("cards"), list):
        details["cards"] = len(cards)  # each is shown where a request shows it
    return {"kind": "compaction", "details": details}


def context_window(ledger: Lines) -> int | None:
    """The tokens that the bound model takes, where the header says it."""
    header = ledger.entries[0].data if ledger.entries else {}
    window = header.get("contextWindow")
    return window if isinstance(window, int) else None
