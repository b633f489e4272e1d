"""What the pages of a ledger tell, put together in a worker process: the loop only sends it on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.sessions.catalog.request_pages import request_page
from harness.transcripts.windows import Where
from harness.viewer import ledgers
from harness.viewer.branches import branches, key_of_end, piece_of
from harness.viewer.seen import Seen, seen_by

__all__ = ["audit", "branch", "requests", "seen", "spent"]

_TOLD = 200
"""Findings, branches and decisions that are told at a time."""


def requests(source: Path, session_id: str, where: Where, cursor: str | None) -> dict[str, Any]:
    """A page of the requests of a ledger in its JSON form. Raises what `request_page` raises."""
    return request_page(source, session_id, where, cursor).to_dict()


def audit(source: Path, _session_id: str, start: int) -> dict[str, Any]:
    """What takes the whole ledger to be known: findings, sums, branches, and the decisions but for the last `start`.

    Of each no more than a page shows; what is left out is counted. Raises `FileMissing`.
    """
    ledger = ledgers.open_ledger(source)
    decided, pieces = ledgers.events(ledger), [piece.to_dict() for piece in branches(ledger)]
    found = [finding.to_dict() for finding in ledger.report.findings]
    end = max(0, len(decided) - start)
    first = max(0, end - _TOLD)
    left_out = {
        "findingsLeftOut": len(found[_TOLD:]),
        "branchesLeftOut": len(pieces[_TOLD:]),
        "eventsLeftOut": first,
    }
    return {
        "ok": ledger.report.ok,
        "noted": len(ledger.report.noted),
        "lines": len(ledger.entries),
        "findings": found[:_TOLD],
        "usage": ledgers.usage(ledger).to_dict(),
        "events": decided[first:end],
        "branches": pieces[:_TOLD],
        **{name: number for name, number in left_out.items() if number},
    }


def spent(source: Path, _session_id: str) -> tuple[list[dict[str, Any]], int | None]:
    """The tokens of each request, and the window of the bound model where it is known. Raises `FileMissing`."""
    lines = ledgers.read_lines(source)
    return [{"usage": row.tokens} for row in ledgers.usage(lines).rows], ledgers.context_window(lines)


def branch(source: Path, _session_id: str, piece_id: str) -> tuple[dict[str, Any], frozenset[int], str | None]:
    """A piece of the tree in its JSON form, where its lines are, and the key of the turn behind which it begins.

    Raises `FileMissing`, `SessionNotFound`.
    """
    piece = piece_of(ledgers.open_ledger(source), piece_id)
    lines = frozenset(entry.offset for entry in piece.entries)
    return piece.to_dict(), lines, key_of_end(piece.left) if piece.left else None


def seen(source: Path, _session_id: str, request_id: str, start: int, most: int, marks: int) -> Seen:
    """What a request showed, as `seen_by` tells it. Raises `FileMissing`, `SessionNotFound`."""
    return seen_by(ledgers.read_to(source, request_id), request_id, start, most, marks)
