"""Where a line names a content beside the ledger: where this library writes a reference, and nowhere else.

What looks like one in any other place (in a tool's input, a state, an application's data) is what somebody said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeGuard

__all__ = ["LOOK", "media_in", "names_in", "stored_field", "stored_in"]

LOOK = b'"sha256":"'
"""Bytes without which a line names no content."""

_SHA256 = re.compile("[0-9a-f]{64}")
_MEDIA = frozenset({"image", "audio", "video", "file"})


def names_in(entry: Mapping[str, Any]) -> Iterator[str]:
    """The SHA-256 of each content that a parsed line names."""
    message = entry.get("message") if entry["type"] == "message" else None
    if isinstance(message, dict):
        yield from _moved(message.values())
        yield from _of_message(message)
        return
    yield from _moved(entry.values())
    yield from _sums([entry.get("media")])
    if entry["type"] == "binding":
        yield from _sums(item.get("stored") for key in ("system", "tools") for item in _objects(entry.get(key)))
    elif entry["type"] == "event" and entry.get("kind") == "eviction" and isinstance(data := entry.get("data"), dict):
        yield from _sums([data.get("media")])


def media_in(blocks: Any) -> Iterator[str]:
    """The SHA-256 of each medium in the blocks of a message, those in tool results included."""
    left = _objects(blocks)
    while left:
        block = left.pop()
        kind = block.get("type")
        if kind == "toolResult":
            left += _objects(block.get("content"))
        elif kind in _MEDIA:
            yield from _sums([block.get("media")])


def stored_in(block: Any) -> str | None:
    """What names the file of the blocks that belong in the place of this one; None where it is no preview."""
    stored = block.get("stored") if isinstance(block, dict) else None
    return str(stored.get("sha256")) if isinstance(stored, dict) else None


def stored_field(value: Any) -> str | None:
    """What names the file that holds a field; None where the field holds its value itself."""
    return stored_in(value) if isinstance(value, dict) and len(value) == 1 else None


def _of_message(message: Mapping[str, Any]) -> Iterator[str]:
    blocks = _objects(message.get("content"))
    for stored in [block["stored"] for block in blocks if isinstance(block.get("stored"), dict)]:
        yield from _sums([stored, *_objects(stored.get("media"))])
    yield from media_in(block for block in blocks if "stored" not in block)


def _moved(fields: Iterable[Any]) -> Iterator[str]:
    return (name for value in fields if (name := stored_field(value)) and _is_sum(name))


def _sums(references: Iterable[Any]) -> Iterator[str]:
    for reference in references:
        if isinstance(reference, dict) and _is_sum(name := reference.get("sha256")):
            yield name


def _is_sum(name: Any) -> TypeGuard[str]:
    return isinstance(name, str) and _SHA256.fullmatch(name) is not None


def _objects(values: Any) -> list[dict[str, Any]]:
    """The objects in a list, or in whatever stands in its place."""
    return [value for value in values if isinstance(value, dict)] if isinstance(values, Iterable) else []
