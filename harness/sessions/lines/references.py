"""What names a content beside the ledger, and where this library writes such a reference.

What looks like one in any other place (in a tool's input, a state, an application's data) is what somebody said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeGuard

__all__ = ["LOOK", "is_sum", "media_beside", "media_in", "objects_in", "stored_field", "stored_in", "sums_of"]

LOOK = b'"sha256":"'
"""Bytes without which a line names no content."""

_SHA256 = re.compile("[0-9a-f]{64}")
_MEDIA = frozenset({"image", "audio", "video", "file"})


def media_in(blocks: Any) -> Iterator[str]:
    """The SHA-256 of each medium in the blocks of a message, those in tool results included."""
    left = objects_in(blocks)
    while left:
        block = left.pop()
        kind = block.get("type")
        if kind == "toolResult":
            left += objects_in(block.get("content"))
        elif kind in _MEDIA:
            yield from sums_of([block.get("media")])


def media_beside(kind: str, fields: Mapping[str, Any]) -> Iterator[str]:
    """The SHA-256 of what was kept for an entry of this type, which is no message; see `SessionTree.keep`."""
    yield from sums_of([fields.get("media")])
    if kind == "event" and fields.get("kind") == "eviction" and isinstance(data := fields.get("data"), dict):
        yield from sums_of([data.get("media")])


def stored_in(block: Any) -> str | None:
    """What names the file of the blocks that belong in the place of this one; None where it is no preview."""
    stored = block.get("stored") if isinstance(block, dict) else None
    return str(stored.get("sha256")) if isinstance(stored, dict) else None


def stored_field(value: Any) -> str | None:
    """What names the file that holds a field; None where the field holds its value itself."""
    return stored_in(value) if isinstance(value, dict) and len(value) == 1 else None


def sums_of(references: Iterable[Any]) -> Iterator[str]:
    """The SHA-256 in each of these that has one."""
    for reference in references:
        if isinstance(reference, dict) and is_sum(name := reference.get("sha256")):
            yield name


def is_sum(name: Any) -> TypeGuard[str]:
    """Whether this is a SHA-256 as it is written here."""
    return isinstance(name, str) and _SHA256.fullmatch(name) is not None


def objects_in(values: Any) -> list[dict[str, Any]]:
    """The objects in a list, or in whatever stands in its place."""
    return [value for value in values if isinstance(value, dict)] if isinstance(values, Iterable) else []
