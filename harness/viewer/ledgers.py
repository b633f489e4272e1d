"""What only a ledger of this library can tell: its branches, its requests, and whether it is whole.

Blocking; call it through the pool. Reading is lenient, as for display: damage is named beside what
could be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from harness.filesystem import disk
from harness.sessions.blobs import read_blob, try_expand
from harness.sessions.entries import START, Entry
from harness.sessions.layout import LEDGER_SUFFIX, Owner, SessionFiles
from harness.sessions.prices import find_price
from harness.sessions.reading import active_path, scan
from harness.sessions.usage import UsageReport, report_of, requests_in
from harness.sessions.verify import Finding, VerifyReport, verify_session
from harness.viewer.shown import first_words

__all__ = ["Ledger", "branches", "context_window", "events", "open_ledger", "usage"]


@dataclass(frozen=True, slots=True)
class Ledger:
    """The lines of a file, the ones that lead to its end, and what is wrong with it."""

    files: SessionFiles
    entries: Sequence[Entry]
    path: Sequence[Entry]
    findings: Sequence[Finding]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong that was not healed."""
        return not any(finding.error for finding in self.findings)


def open_ledger(path: Path) -> Ledger:
    """Read and check a ledger. Raises `FileMissing`."""
    entries, damage, _ = scan(disk.read(path), START)
    read = partial(read_blob, path.parent / "files")
    for entry in entries:
        if entry.refers:
            try_expand(entry.data, read)
    files = SessionFiles(path.parent, path.name.removesuffix(LEDGER_SUFFIX))
    report = verify_session(files, _owner(entries))
    active = active_path(entries, damaged=bool(damage)) or entries
    return Ledger(files, entries, active, _without_places(report, path))


def _owner(entries: Sequence[Entry]) -> Owner:
    """Whose ledger it says it is; whose it must be was decided by what is on the shelf."""
    header = entries[0].data if entries else {}
    tenant = header.get("tenant")
    names = tenant if isinstance(tenant, list) else []
    return Owner(str(header.get("session", "")), str(header.get("agent", "")), tuple(str(name) for name in names))


def _without_places(report: VerifyReport, path: Path) -> list[Finding]:
    """Findings tell where files are; pages name no place of the machine."""
    return [replace(found, text=found.text.replace(f"{path.parent}/", "")) for found in report.findings]


def usage(ledger: Ledger) -> UsageReport:
    """Every request that went out, how it ended and what it cost, and the sums."""
    header = ledger.entries[0].data if ledger.entries else {}
    rows = requests_in(str(header.get("session", "")), (entry.data for entry in ledger.entries), find_price)
    return report_of(rows)


def events(ledger: Ledger) -> list[dict[str, Any]]:
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
    names = ("boundary", "keepsOpenTurn", "firstTurn", "lastTurn", "model", "tokensBefore", "summary")
    return {"kind": "compaction", "details": {name: data[name] for name in names if name in data}}


def branches(ledger: Ledger) -> list[dict[str, Any]]:
    """The tree as pieces without a fork, parents first: `parent` is the piece it leaves, `active` leads to the end."""
    children: dict[str | None, list[Entry]] = {}
    known = {entry.id for entry in ledger.entries}
    for entry in ledger.entries:
        parent = entry.data.get("parentId")
        children.setdefault(parent if parent in known else None, []).append(entry)
    active = {entry.id for entry in ledger.path}
    labels = {entry.data.get("target"): entry.data.get("name") for entry in ledger.entries if entry.kind == "label"}
    return list(_pieces(children, active, labels))


def _pieces(
    children: Mapping[str | None, Sequence[Entry]], active: set[str], labels: Mapping[Any, Any]
) -> Iterator[dict[str, Any]]:
    waiting: list[tuple[Entry, str | None, int]] = [(entry, None, 0) for entry in reversed(children.get(None, ()))]
    while waiting:
        entry, parent, depth = waiting.pop()
        piece = [entry]
        while len(following := children.get(piece[-1].id, ())) == 1:
            piece.append(following[0])
        yield _piece(piece, parent, depth, entry.id in active, labels)
        waiting += [(each, piece[0].id, depth + 1) for each in reversed(following)]


def _piece(
    piece: Sequence[Entry], parent: str | None, depth: int, active: bool, labels: Mapping[Any, Any]
) -> dict[str, Any]:
    messages = [entry.data["message"] for entry in piece if entry.kind == "message"]
    asked: Mapping[str, Any] = next((message for message in messages if message.get("role") == "user"), {})
    fields = {
        "id": piece[0].id,
        "parent": parent,
        "depth": depth,
        "at": piece[0].data.get("timestamp"),
        "active": active,
        "messages": len(messages),
        "words": first_words(_text(asked)),
        "label": next((labels[entry.id] for entry in piece if entry.id in labels), None),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return " ".join(str(block.get("text", "")) for block in blocks if isinstance(block, dict))


def context_window(ledger: Ledger) -> int | None:
    """The tokens that the bound model takes, where the header says it."""
    header = ledger.entries[0].data if ledger.entries else {}
    window = header.get("contextWindow")
    return window if isinstance(window, int) else None
