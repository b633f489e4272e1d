"""What reading a session had to do without, in one sentence for who calls on it."""

from __future__ import annotations

from pathlib import Path

from harness.filesystem import disk
from harness.sessions.entries import Damage, digest
from harness.sessions.reading import Loaded

__all__ = ["stepped_over"]

_LOST = frozenset({"bad", "header", "file", "parent"})
_END = frozenset({"truncated", "anchor"})
_SHOWN = 3


def stepped_over(session_id: str, loaded: Loaded, ledger: Path, *, noted: bool) -> str | None:
    """How many places could not be read, where, and what to run; None where nothing is lost. Blocking.

    What a crash left half-written was never said. A cut or unproved end counts until a line of the ledger notes it.
    """
    wanted = _LOST if noted else _LOST | _END
    places = [each for each in loaded.damage if each.kind in wanted and not _is_healed(each, loaded, ledger)]
    if not places:
        return None
    lines = ", ".join(f"line {each.line} ({each.kind})" for each in places[:_SHOWN])
    more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
    many = "place was" if len(places) == 1 else "places were"
    return (
        f"session {session_id!r}: {len(places)} damaged {many} stepped over: {lines}{more}; "
        f"`harness sessions verify {session_id}` says what is missing"
    )


def _is_healed(damage: Damage, loaded: Loaded, ledger: Path) -> bool:
    """Whether an unreadable line is half a line of a crash: the one behind it was written behind these bytes."""
    after = next((entry for entry in loaded.path if entry.seq == damage.line + 1), None)
    if damage.kind != "bad" or after is None:
        return False
    return digest(disk.read(ledger, damage.byte, after.offset - damage.byte - 1)) == after.data.get("prevHash")
