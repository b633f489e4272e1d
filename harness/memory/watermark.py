"""How far the daily files have been taken into MEMORY.md: for each, the bytes that were, and their digest."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from harness.errors import FileMissing
from harness.filesystem.base import AbstractFilesystem
from harness.text import dumps, read_json

__all__ = ["WATERMARK_FILE", "Mark", "load_marks", "mark_of", "save_marks", "unread"]

WATERMARK_FILE = "memory/.consolidated.json"


@dataclass(frozen=True, slots=True)
class Mark:
    """The beginning of a daily file that was taken over: how many bytes, and their SHA-256."""

    bytes: int
    sha256: str


async def load_marks(files: AbstractFilesystem) -> dict[str, Mark]:
    """The marks by path; none where there is no watermark, or one that nobody can read: then all is read again."""
    try:
        value = read_json(await files.read_bytes(WATERMARK_FILE))
    except (FileMissing, ValueError):
        return {}
    found = value.get("files") if isinstance(value, dict) else None
    return {path: mark for path, data in found.items() if (mark := _mark(data))} if isinstance(found, dict) else {}


async def save_marks(files: AbstractFilesystem, marks: Mapping[str, Mark]) -> None:
    """Replace the watermark. Raises `FilesystemError`."""
    stored = {path: {"bytes": mark.bytes, "sha256": mark.sha256} for path, mark in sorted(marks.items())}
    await files.write_bytes(WATERMARK_FILE, dumps({"version": 1, "files": stored}) + b"\n")


def mark_of(data: bytes) -> Mark:
    """The mark that says that all of this was taken over."""
    return Mark(len(data), hashlib.sha256(data).hexdigest())


def unread(data: bytes, mark: Mark | None) -> int:
    """Where in a file the part begins that was not taken over: its beginning, if what was taken over has changed."""
    if mark is None or mark.bytes > len(data) or mark_of(data[: mark.bytes]) != mark:
        return 0
    return mark.bytes


def _mark(data: object) -> Mark | None:
    if not isinstance(data, dict):
        return None
    size, sha256 = data.get("bytes"), data.get("sha256")
    return Mark(size, sha256) if isinstance(size, int) and isinstance(sha256, str) else None
