"""The contents that a line names which does not list them, as none of version 0.1.0 does; see `listed`.

Then the places tell where this library wrote a reference, and what only looks like one names nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harness.sessions.lines.references import is_sum, media_beside, media_in, objects_in, stored_field, sums_of

__all__ = ["unlisted_names"]


def unlisted_names(entry: Mapping[str, Any]) -> Iterator[str]:
    """The SHA-256 of each content that a parsed line names at such a place."""
    message = entry.get("message") if entry["type"] == "message" else None
    if isinstance(message, dict):
        yield from _moved(message.values())
        yield from _of_message(message)
        return
    yield from _moved(entry.values())
    yield from media_beside(entry["type"], entry)
    if entry["type"] == "binding":
        yield from sums_of(item.get("stored") for key in ("system", "tools") for item in objects_in(entry.get(key)))


def _of_message(message: Mapping[str, Any]) -> Iterator[str]:
    blocks = objects_in(message.get("content"))
    for stored in [block["stored"] for block in blocks if isinstance(block.get("stored"), dict)]:
        # Versions between 0.1.0 and the list named the media of the blocks in there so.
        yield from sums_of([stored, *objects_in(stored.get("media"))])
    yield from media_in(block for block in blocks if "stored" not in block)


def _moved(fields: Iterable[Any]) -> Iterator[str]:
    return (name for value in fields if (name := stored_field(value)) and is_sum(name))
