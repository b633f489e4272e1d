"""What reading a session had to do without, in one sentence for who calls on it."""

from __future__ import annotations

from pathlib import Path

from harness.filesystem import disk
from harness.sessions.ledger.reading import Loaded, unanswered
from harness.sessions.lines.entries import Damage, digest

__all__ = ["stepped_over"]

_LOST = frozenset({"bad", "header", "file", "foreign", "parent"})
_SHOWN = 3


def stepped_over(session_id: str, loaded: Loaded, ledger: Path, *, noted: bool) -> str | None:
    """How many places could not be read, where, and what to run; None where nothing is lost. Blocking.

    What a crash left half-written was never said. A cut or unproved end counts until a line of the ledger notes it.
    """
    wanted = _LOST if noted else _LOST | {"truncated"}
    places = [each for each in loaded.damage if each.kind in wanted and not _is_healed(each, loaded, ledger)]
    if not places:
        return None if noted else _end_unproved(session_id, loaded)
    lines = ", ".join(f"line {each.line} ({each.kind})" for each in places[:_SHOWN])
    more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
    many = "place was" if len(places) == 1 else "places were"
    return (
        f"session {session_id!r}: {len(places)} damaged {many} stepped over: {lines}{more}; "
        "verify the session to see what is missing"
    )


def _end_unproved(session_id: str, loaded: Loaded) -> str | None:
    """That all there is was read, and that nobody can say whether it is all there was."""
    is_there = loaded.anchor is not None and loaded.anchor.count > 0
    if not any(each.kind == "anchor" for each in loaded.damage) or (not is_there and unanswered(loaded.header, loaded)):
        return None
    what = "is not that of this ledger's end" if is_there else "is missing or damaged, as after a power cut"
    return (
        f"session {session_id!r}: all lines were read, but its anchor {what}, so that nobody can say whether they are "
        "all as they were written; verify the session to have the rest checked"
    )


def _is_healed(damage: Damage, loaded: Loaded, ledger: Path) -> bool:
    """Whether an unreadable line is half a line of a crash: the one behind it was written behind these bytes."""
    after = next((entry for entry in loaded.path if entry.seq == damage.line + 1), None)
    if damage.kind != "bad" or after is None:
        return False
    return digest(disk.read(ledger, damage.byte, after.offset - damage.byte - 1)) == after.data.get("prevHash")
