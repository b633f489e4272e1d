"""Large contents beside the ledger: `files/<2 hex>/<sha256>`, named by the SHA-256 of their bytes.

A line of the ledger has at most 1 MB. A block of a message whose JSON is larger than `LARGE` is
replaced in the line by a preview with `stored{sha256,bytes}`: the file holds a JSON array of
the blocks that stand in the preview's place. Other entries move whole fields the same way: the field is then
`{"stored":{sha256,bytes}}` and the file holds its JSON. What looks so by itself moves to a file too,
whoever gave it, so putting the files back in gives exactly what was logged. The line lists the files that it needs,
the media in those blocks among them; see `listed`.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from harness.errors import ConfigError, FileMissing, PersistenceError, SessionDamaged
from harness.filesystem import disk
from harness.messages import MessageDict
from harness.sessions.lines.entries import MAX_LINE, REFERENCE, digest
from harness.sessions.lines.listed import LISTED_BYTES, listing
from harness.sessions.lines.references import LOOK, media_beside, media_in, stored_field, stored_in
from harness.sessions.lines.shapes import is_message
from harness.text import dumps, loads

__all__ = [
    "LARGE",
    "BlobReader",
    "Blobs",
    "blob_path",
    "block_text",
    "expand_fields",
    "expand_message",
    "fit_fields",
    "read_blob",
    "shrink_fields",
    "shrink_message",
    "try_expand",
    "write_blobs",
]

LARGE = 256 * 1024
"""Bytes of JSON above which a block moves to a file."""

Blobs: TypeAlias = dict[str, bytes]
"""Contents by their SHA-256."""
BlobReader: TypeAlias = Callable[[str], bytes]

_log = logging.getLogger("harness.sessions")
_ROOM = MAX_LINE - 16 * 1024  # what the envelope and small fields leave of a line
_LEAST = 8 * 1024
"""Bytes that the fields of a message always have beside its blocks."""
_PREVIEW = 2000
_PREVIEW_KEYS = ("type", "id", "name", "isError", "synthetic")


def blob_path(folder: Path, sha256: str) -> Path:
    """Where a content is. Raises `SessionDamaged` for what is no SHA-256: it may come from a damaged line."""
    if len(sha256) != 64 or not set(sha256) <= set("0123456789abcdef"):
        raise SessionDamaged(f"{sha256[:80]!r} is no SHA-256 in hex, so it names no file in {folder}")
    return folder / sha256[:2] / sha256


def read_blob(folder: Path, sha256: str) -> bytes:
    """The content. Raises `FileMissing`, and `SessionDamaged` if the bytes are not those it is named by."""
    path = blob_path(folder, sha256)
    data = disk.read(path)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise SessionDamaged(f"{path} has been changed: its bytes are not those of its name; restore it from a backup")
    return data


def write_blobs(folder: Path, blobs: Mapping[str, bytes], *, sync: bool) -> None:
    """Write contents that are not there yet; with `sync` they and their folders are durable on return.

    A file that has the name and not the bytes, from a rotten disk or a forger, gets the right ones: a line is about to
    rely on it. What is no file is set aside. Raises `ConfigError` rather than put wrong bytes in the place of others.
    """
    for sha256, data in blobs.items():
        path = blob_path(folder, sha256)
        _make_way(path)
        disk.make_folder(path.parent, sync=sync)
        if not disk.create(path, data, sync=sync) and not _holds(path, data):
            if digest(data) != sha256:
                raise ConfigError(f"what is to be stored as {path} has not the bytes of that name; nothing was stored")
            _log.warning("%s had other bytes than its name says; the right ones were put there", path)
            disk.replace(path, data, sync=sync)


def block_text(block: Mapping[str, Any]) -> str:
    """The readable text of a block, that of the blocks in a tool result included."""
    parts = [block["text"]] if isinstance(block.get("text"), str) else []
    content = block.get("content")
    if isinstance(content, list):
        parts.extend(block_text(item) for item in content if isinstance(item, dict))
    return "\n".join(parts)


def shrink_message(message: MessageDict, raw: bytes) -> tuple[MessageDict, Blobs, dict[str, Any]]:
    """The message as it fits into a line, the contents that moved, and the `listing` of its line; itself if it fits."""
    if len(raw) <= LARGE and raw.rfind(REFERENCE) < 0:  # from the end: the other way takes twice as long
        return message, {}, listing(media_in(message.get("content"))) if raw.rfind(LOOK) >= 0 else {}
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    media = {*media_in(blocks)}
    blobs: Blobs = {}
    small = {**message, "content": [_shrink_block(block, blobs) for block in blocks]}
    if _size_of(small["content"], len(media) + len(blobs)) > _ROOM:
        blobs = {}
        small["content"] = [_store(blocks, {"type": "blocks"}, blobs)]
    others = {key: value for key, value in small.items() if key not in ("id", "role", "content")}
    left = _ROOM - _size_of(small["content"], len(media) + len(blobs))
    rest, more = shrink_fields(others, dumps(others), max(left, _LEAST))
    moved = blobs | more
    return {key: rest.get(key, value) for key, value in small.items()}, moved, listing([*media, *moved])


def expand_message(message: MessageDict, read: BlobReader) -> MessageDict:
    """The message as it was before `shrink_message`. Raises what `read` raises."""
    content = message.get("content")
    whole = expand_fields(message, read)
    if not isinstance(content, list) or not any(stored_in(block) for block in content):
        return whole
    blocks: list[Any] = []
    for block in content:
        sha256 = stored_in(block)
        blocks.extend(loads(read(sha256)) if sha256 else [block])
    return {**whole, "content": blocks}


def fit_fields(
    kind: str, fields: Mapping[str, Any], raw: bytes, held: Blobs | None = None
) -> tuple[dict[str, Any], Blobs]:
    """The fields of an entry as they fit into a line that lists what it names, and the contents that were moved.

    `held` are contents that the fields name already.
    """
    small, moved = shrink_fields(fields, raw)
    if moved or held or raw.rfind(LOOK) >= 0:
        small |= listing([*moved, *(held or ()), *media_beside(kind, small)])
    return small, moved


def shrink_fields(fields: Mapping[str, Any], raw: bytes, room: int = _ROOM) -> tuple[dict[str, Any], Blobs]:
    """Fields of an entry, and their JSON, as they fit into a line: the largest move to files until the rest fits."""
    blobs: Blobs = {}
    if len(raw) <= room and raw.rfind(REFERENCE) < 0:
        return {**fields}, blobs
    small = {key: _store(value, {}, blobs) if stored_field(value) else value for key, value in fields.items()}
    if len(raw) <= room:
        return small, blobs
    sizes = {key: len(dumps(value)) for key, value in small.items()}
    while sum(sizes.values()) > room:
        key = max(sizes, key=lambda name: sizes[name])
        if sizes[key] < 200:
            raise ConfigError(f"an entry has {len(sizes)} fields, too many for one line; nest them in one field")
        small[key] = _store(fields[key], {}, blobs)
        sizes[key] = len(dumps(small[key]))
    return small, blobs


def expand_fields(fields: Mapping[str, Any], read: BlobReader) -> dict[str, Any]:
    """The fields as they were before `shrink_fields`. Raises what `read` raises."""
    return {key: loads(read(sha256)) if (sha256 := stored_field(value)) else value for key, value in fields.items()}


def try_expand(data: dict[str, Any], read: BlobReader) -> bool:
    """Put files back into a parsed entry in place; False if one is missing, changed or cannot be read.

    Then the previews of blocks stay, and a message is without the fields that are elsewhere.
    """
    found = data.get("message")
    message: MessageDict | None = found if isinstance(found, dict) else None
    whole = _read_back(data, message, read)
    if message is not None and not is_message(whole.get("message")):
        data["message"] = {key: value for key, value in message.items() if not stored_field(value)}
        return False
    data.update(whole)
    return bool(whole)


def _read_back(data: dict[str, Any], message: MessageDict | None, read: BlobReader) -> dict[str, Any]:
    """The fields with their files put back in; none where one of them cannot be."""
    try:
        return expand_fields(data, read) if message is None else {"message": expand_message(message, read)}
    except (FileMissing, PersistenceError, SessionDamaged, TypeError, ValueError):
        return {}


def _make_way(path: Path) -> None:
    for place, of_folder in ((path.parent, True), (path, False)):
        if disk.stands_in_the_way(place, of_folder=of_folder):
            aside = disk.set_aside(place)
            _log.warning("what stood in the place of the content %s was set aside as %s", path, aside)


def _holds(path: Path, data: bytes) -> bool:
    mark = disk.mark(path)
    return mark is not None and mark.size == len(data) and disk.read(path) == data


def _shrink_block(block: Any, blobs: Blobs) -> Any:
    if not isinstance(block, dict):
        return block
    # A foreign block with a field of that name would be taken for a preview of ours.
    if "stored" not in block and len(dumps(block)) <= LARGE:
        return block
    preview = {key: block[key] for key in _PREVIEW_KEYS if isinstance(block.get(key), str | bool)}
    head = block_text(block)[:_PREVIEW]
    if block.get("type") == "toolResult":
        preview["content"] = [{"type": "text", "text": head}]
    elif block.get("type") == "toolUse":
        preview["input"] = {}
    elif head:
        preview["text"] = head
    return _store([block], preview, blobs)


def _size_of(content: Any, files: int) -> int:
    """Bytes of a line that these blocks take, with the list of so many files."""
    return len(dumps(content)) + files * LISTED_BYTES


def _store(value: Any, preview: dict[str, Any], blobs: Blobs) -> dict[str, Any]:
    data = dumps(value)
    sha256 = digest(data)
    blobs[sha256] = data
    return {**preview, "stored": {"sha256": sha256, "bytes": len(data)}}
