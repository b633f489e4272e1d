"""Texts of bindings that a copy of one branch needs, and that only another branch wrote.

Versions up to 0.1.0 took a text as written wherever in the file it stood.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from harness.sessions.lines.digest import items_of
from harness.sessions.lines.entries import MAX_LINE, Entry, EntryDict
from harness.sessions.lines.skimming import uncut
from harness.text import dumps

__all__ = ["put_texts", "texts_elsewhere"]

_HELD = frozenset({"text", "schema", "stored"})
_ROOM = MAX_LINE - 16 * 1024
_PARTS = ("system", "tools")


def texts_elsewhere(entries: Sequence[Entry], path: Sequence[Entry], ledger: Path) -> dict[str, EntryDict]:
    """What holds a text or schema that a line of the path names before any line of the path has it, by digest."""
    lost: set[str] = set()
    seen: set[str] = set()
    for item in _items(path, ledger):
        sha256 = str(item.get("sha256"))
        if not _HELD.isdisjoint(item):
            seen.add(sha256)
        elif sha256 not in seen:
            lost.add(sha256)
    found = _items(entries, ledger) if lost else ()
    return {
        sha256: {key: item[key] for key in item if key in _HELD}
        for item in found
        if (sha256 := str(item.get("sha256"))) in lost and not _HELD.isdisjoint(item)
    }


def put_texts(binding: EntryDict, lost: dict[str, EntryDict]) -> EntryDict:
    """The fields of a binding with what it names of these, which is then taken out of `lost`.

    What a line has no room for stays there, for the next line that names it.
    """
    size, changed = len(dumps(binding)) if lost else 0, dict(binding)
    for part in _PARTS if lost else ():
        items: list[Any] = []
        for item in binding.get(part) or ():
            held = lost.get(str(item.get("sha256"))) if isinstance(item, dict) else None
            more = len(dumps(held)) if held else 0
            if held and size + more < _ROOM:
                size += more
                del lost[str(item["sha256"])]
                items.append({**item, **held})
            else:
                items.append(item)
        changed[part] = items
    return changed


def _items(entries: Iterable[Entry], ledger: Path) -> Iterable[EntryDict]:
    for entry in entries:
        if entry.kind == "binding":
            data = uncut(entry, ledger)
            for part in _PARTS:
                yield from items_of(data, part)
