"""Bindings: what stands around the messages of a request, each text logged once between two boundaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from harness.sessions.lines.blobs import LARGE, Blobs
from harness.sessions.lines.digest import binding_digest
from harness.sessions.lines.entries import digest
from harness.text import clean_text, dumps

__all__ = ["Binding", "make_binding"]

_INLINE = 512 * 1024
"""Bytes of texts and schemas that stand in the line of a binding."""


@dataclass(frozen=True, slots=True)
class Binding:
    """The fields of the entry, its digest, the texts it names, and contents too large for a line."""

    fields: dict[str, Any]
    digest: str
    written: frozenset[str]
    blobs: Blobs


def make_binding(
    system: Sequence[Mapping[str, str]],
    tools: Sequence[Mapping[str, Any]],
    model: str,
    provider: str,
    options: Mapping[str, Any],
    written: AbstractSet[str],
) -> Binding:
    """A binding whose texts and schemas are left out where `written` has them.

    A text is named by the SHA-256 of its UTF-8 bytes, a tool by that of its JSON. What is larger
    than `LARGE`, and what makes the line longer than `_INLINE`, goes to the file of that name.
    """
    parts = _Parts(written)
    fields = {
        "system": [parts.text(part["name"], clean_text(part["text"])) for part in system],
        "tools": [parts.item(tool["name"], "schema", tool["schema"], dumps(tool["schema"])) for tool in tools],
        "model": model,
        "provider": provider,
        "options": dict(options),
    }
    return Binding(fields, binding_digest(fields), frozenset(parts.seen - written), parts.blobs)


class _Parts:
    """The texts of one binding; it exists to carry which were met and how many bytes stand in the line."""

    def __init__(self, written: AbstractSet[str]) -> None:
        self.seen = set(written)
        self.blobs: Blobs = {}
        self._inline = 0

    def text(self, name: str, text: str) -> dict[str, Any]:
        return self.item(name, "text", text, text.encode())

    def item(self, name: str, key: str, value: Any, raw: bytes) -> dict[str, Any]:
        sha256 = digest(raw)
        item = {"name": name, "sha256": sha256}
        if sha256 in self.seen:
            return item
        self.seen.add(sha256)
        # In the line quotes and control characters take more bytes than here.
        size = len(raw) if key == "schema" else len(dumps(value))
        if len(raw) > LARGE or self._inline + size > _INLINE:
            self.blobs[sha256] = raw
            return {**item, "stored": {"sha256": sha256, "bytes": len(raw)}}
        self._inline += size
        return {**item, key: value}
