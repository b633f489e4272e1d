"""Lines that are linked as they must be, and that no writer leaves where they stand."""

from __future__ import annotations

__all__ = ["misplaced"]


def misplaced(kind: str, line: int) -> str:
    """What a readable line of this type cannot be as the `line`-th, from 1; empty if it can.

    A header is only ever written to an empty file. `redacted` is reserved: whoever wrote one here took out a line by
    hand, or wants it believed.
    """
    if kind == "header" and line > 1:
        return "is a second header, and a ledger has one, its first line"
    return "says that a line was erased here, which no writer of this format does" if kind == "redacted" else ""
