"""Formats of the ledger by number, and what this version makes of each.

A ledger says in its header which format it has. Since no line is ever changed, an older format is not rewritten: a new
format comes with a step that reads the one before it, and with the fixtures of every format so far, which the tests
open. There has been one format up to now, so there is no step yet.
"""

from __future__ import annotations

from pathlib import Path

from harness.errors import NewerFormat
from harness.sessions.lines.entries import EntryDict

__all__ = ["FORMAT", "check_format"]

FORMAT = 1
"""The format that is written."""


def check_format(header: EntryDict, place: Path) -> None:
    """Raise `NewerFormat` for a ledger that a newer version has written. A header that does not say is of format 1."""
    found = header.get("format", 1)
    if not isinstance(found, int) or found > FORMAT:
        raise NewerFormat(
            f"{place} has format {found!r}, this version reads formats up to {FORMAT}; nothing was changed: "
            "use the version of dualtrack-harness that wrote it, or a later one"
        )
