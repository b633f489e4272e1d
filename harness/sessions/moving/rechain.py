"""Writing a ledger anew under another header: the same lines, linked to each other again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.errors import SessionDamaged
from harness.sessions.lines.entries import EntryDict, digest, parse_line
from harness.sessions.lines.listed import written_again
from harness.sessions.lines.skimming import read_lines
from harness.text import dumps

__all__ = ["rechained"]

_POSITIONS = ("boundary", "prevBoundary")


def rechained(path: Path, header: Mapping[str, Any]) -> Iterator[bytes]:
    """The bytes of a ledger, line by line, whose header has these values instead; in a worker.

    Ids, numbers, times and contents stay. What changes is what follows from the header's bytes: the link from each line
    to the one before, and the places of lines that others name. Each line is marked `inherited`, as in a fork: what it
    cost was counted where it was spent. Lines that nobody can read stay as they are.
    """
    moved: dict[object, int] = {}
    end, link = 0, ""
    for line in read_lines(path):
        raw = line.raw or b""
        entry = parse_line(raw)
        if line.seq == 1:
            if entry is None or entry["type"] != "header":
                raise SessionDamaged(
                    "the ledger begins with no header, so nobody can take it over; restore its first line"
                )
            raw = dumps({**entry, **header})
        elif entry is not None:
            raw = _written(_relinked(entry, link, moved))
        moved[line.offset] = end
        end, link = end + len(raw) + 1, digest(raw)
        # Half a line that a crash left is no line where it has an end.
        yield raw + b"\n" if line.ended else raw


def _written(entry: EntryDict) -> bytes:
    try:
        return written_again(entry)
    except TypeError as error:
        raise SessionDamaged(
            f"line {entry.get('seq')} cannot be written again ({error}); import it as it is"
        ) from error


def _relinked(entry: EntryDict, link: str, moved: Mapping[object, int]) -> EntryDict:
    """The line with its new link; `moved` says where the lines before it are now, by where they were."""
    changed: EntryDict = {**entry, "prevHash": link, "inherited": True}
    for name in _POSITIONS:
        position = entry.get(name)
        if isinstance(position, dict) and (place := moved.get(position.get("offset"))) is not None:
            changed[name] = {**position, "offset": place}
    if isinstance(keys := entry.get("keys"), dict):
        changed["keys"] = {key: moved[offset] for key, offset in keys.items() if offset in moved}
    return changed
