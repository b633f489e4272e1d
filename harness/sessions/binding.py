"""Bindings: what stands around the messages of a request, each text logged once between two boundaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from harness.sessions.blobs import LARGE, Blobs
from harness.sessions.digest import binding_digest
from harness.sessions.entries import digest
from harness.text import clean_text, dumps

__all__ = ["Binding", "make_binding"]


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
    than `LARGE` goes to the file of that name.
    """
    seen = set(written)
    blobs: Blobs = {}
    fields = {
        "system": [_text(part["name"], clean_text(part["text"]), seen, blobs) for part in system],
        "tools": [_item(tool["name"], "schema", tool["schema"], dumps(tool["schema"]), seen, blobs) for tool in tools],
        "model": model,
        "provider": provider,
        "options": dict(options),
    }
    return Binding(fields, binding_digest(fields), frozenset(seen - written), blobs)


def _text(name: str, text: str, seen: set[str], blobs: Blobs) -> dict[str, Any]:
    return _item(name, "text", text, text.encode(), seen, blobs)


def _item(name: str, key: str, value: Any, raw: bytes, seen: set[str], blobs: Blobs) -> dict[str, Any]:
    sha256 = digest(raw)
    item = {"name": name, "sha256": sha256}
    if sha256 in seen:
        return item
    seen.add(sha256)
    if len(raw) > LARGE:
        blobs[sha256] = raw
        return item
    return {**item, key: value}
