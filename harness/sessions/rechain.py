"""Writing a ledger anew under another header: the same lines, linked to each other again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.errors import SessionDamaged
from harness.sessions.entries import EntryDict, digest, parse_line
from harness.text import dumps

__all__ = ["rechained"]

_POSITIONS = ("boundary", "prevBoundary")


def rechained(data: bytes, header: Mapping[str, Any]) -> bytes:
    """The bytes of a ledger whose header has these values instead.

    Ids, numbers, times and contents stay. What changes is what follows from the header's bytes: the link from each line
    to the one before, and the places of lines that others name. Lines that nobody can read stay as they are.
    """
    lines = data.removesuffix(b"\n").split(b"\n")
    first = parse_line(lines[0])
    if first is None or first["type"] != "header":
        raise SessionDamaged("the ledger begins with no header, so nobody can take it over; restore its first line")
    made = [dumps({**first, **header})]
    starts = [0, len(made[0]) + 1]
    for raw in lines[1:]:
        entry = parse_line(raw)
        made.append(raw if entry is None else _written(_relinked(entry, digest(made[-1]), starts)))
        starts.append(starts[-1] + len(made[-1]) + 1)
    return b"".join(line + b"\n" for line in made)


def _written(entry: EntryDict) -> bytes:
    try:
        return dumps(entry)
    except TypeError as error:
        raise SessionDamaged(
            f"line {entry.get('seq')} cannot be written again ({error}); import it as it is"
        ) from error


def _relinked(entry: EntryDict, link: str, starts: list[int]) -> EntryDict:
    changed: EntryDict = {**entry, "prevHash": link}
    for name in _POSITIONS:
        position = entry.get(name)
        if isinstance(position, dict) and isinstance(position.get("seq"), int) and 0 < position["seq"] <= len(starts):
            changed[name] = {**position, "offset": starts[position["seq"] - 1]}
    return changed
