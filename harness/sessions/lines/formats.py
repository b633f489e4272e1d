"""Formats of the ledger by number, and what this version makes of each.

A ledger says in its header which format it has. Since no line is ever changed, an older format is not rewritten: a new
format comes with a step that reads the one before it, and with the fixtures of every format so far, which the tests
open. There has been one format up to now, so there is no step yet.
"""

from __future__ import annotations

from pathlib import Path

from harness.errors import NewerFormat, SessionDamaged
from harness.sessions.lines.entries import EntryDict

__all__ = ["FORMAT", "check_format", "is_known", "refuse_later"]

FORMAT = 1
"""The format that is written."""
_FIRST = 1
"""The format of what does not say."""


def check_format(header: EntryDict, place: Path, newest: int = FORMAT) -> None:
    """Raise `NewerFormat` for what a newer version has written, `SessionDamaged` for a number that none ever wrote.

    header  of a ledger; one that does not say is of format 1. Or what else has a `format`, of which `newest` is known
    """
    refuse_later(header, place, newest)
    if (found := header.get("format", _FIRST)) < _FIRST:
        raise SessionDamaged(
            f"{place} has format {found}, which no version writes; nothing was changed: restore it from a backup"
        )


def refuse_later(header: EntryDict, place: Path, newest: int = FORMAT) -> None:
    """Raise `NewerFormat` for what a newer version has written, or may have."""
    found = header.get("format", _FIRST)
    if type(found) is not int or found > newest:
        raise NewerFormat(
            f"{place} has format {found!r}, this version reads formats up to {newest}; nothing was changed: "
            "use the version of dualtrack-harness that wrote it, or a later one"
        )


def is_known(header: EntryDict) -> bool:
    """Whether this version knows what the lines behind a header say."""
    found = header.get("format", _FIRST)
    return type(found) is int and _FIRST <= found <= FORMAT
