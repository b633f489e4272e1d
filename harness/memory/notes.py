"""What of the daily files is not in MEMORY.md yet, in portions that a model can read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from harness.errors import FileMissing
from harness.filesystem.base import AbstractFilesystem
from harness.memory.files import DAILY_FOLDER
from harness.memory.watermark import Mark, mark_of, unread
from harness.models.tokens import estimate_tokens

__all__ = ["Notes", "is_archived", "next_notes", "too_old"]

_ARCHIVE = f"{DAILY_FOLDER}/archive/"
_DAILY = re.compile(rf"{DAILY_FOLDER}/(?:archive/)?\d{{4}}-\d\d-\d\d\.md")


@dataclass(frozen=True, slots=True)
class Notes:
    """One portion, oldest first. `marks` is the watermark once it is taken over, `left` how many files follow."""

    text: str
    paths: tuple[str, ...]
    marks: Mapping[str, Mark]
    left: int


@dataclass(frozen=True, slots=True)
class _Waiting:
    path: str
    data: bytes
    start: int

    @property
    def tokens(self) -> int:
        return estimate_tokens(self.data[self.start :].decode(errors="replace"))


async def next_notes(
    files: AbstractFilesystem, marks: Mapping[str, Mark], tokens: int, *, archived: bool
) -> Notes | None:
    """The next portion of at most about so many tokens; None if everything was taken over."""
    waiting = await _waiting(files, marks, archived=archived)
    known, texts, taken = dict(marks), list[str](), list[str]()
    for file in waiting:
        piece = _piece(file, tokens - sum(map(estimate_tokens, texts)), first=not texts)
        if not piece:
            break
        known[file.path] = mark_of(file.data[: file.start + len(piece)])
        texts.append(f"### {file.path}\n{piece.decode(errors='replace').strip()}\n")
        taken.append(file.path)
        if file.start + len(piece) < len(file.data):
            break
    done = sum(file.path in known and known[file.path].bytes == len(file.data) for file in waiting)
    return Notes("\n".join(texts), tuple(taken), known, len(waiting) - done) if waiting else None


async def too_old(files: AbstractFilesystem, tokens: int) -> dict[str, Mark]:
    """The marks of all daily files but the newest ones with so many tokens; archived files count."""
    marks: dict[str, Mark] = {}
    waiting = await _waiting(files, {}, archived=True)
    for number, file in enumerate(reversed(waiting)):
        tokens -= file.tokens
        if number and tokens < 0:
            marks[file.path] = mark_of(file.data)
    return marks


def is_archived(path: str) -> bool:
    """Whether a daily file lies in the archive."""
    return path.startswith(_ARCHIVE)


async def _waiting(files: AbstractFilesystem, marks: Mapping[str, Mark], *, archived: bool) -> list[_Waiting]:
    found: list[_Waiting] = []
    for path in await _paths(files, archived=archived):
        data = await files.read_bytes(path)
        start = unread(data, marks.get(path))
        if data[start:].strip():
            found.append(_Waiting(path, data, start))
    return found


async def _paths(files: AbstractFilesystem, *, archived: bool) -> list[str]:
    """The daily files by their day."""
    paths: list[str] = []
    for folder in (DAILY_FOLDER, *([_ARCHIVE.rstrip("/")] if archived else [])):
        try:
            paths.extend(item.path for item in (await files.ls(folder)).items if not item.is_dir)
        except FileMissing:
            continue
    return sorted((path for path in paths if _DAILY.fullmatch(path)), key=lambda path: path.rsplit("/", 1)[-1])


def _piece(file: _Waiting, tokens: int, *, first: bool) -> bytes:
    """As many whole lines of what is new as fit; at least something of the first file."""
    rest = file.data[file.start :]
    if file.tokens <= tokens:
        return rest
    size, room = 0, tokens
    for line in rest.splitlines(keepends=True):
        tokens -= estimate_tokens(line.decode(errors="replace"))
        if tokens < 0:
            break
        size += len(line)
    return rest[: size or (_cut_at(rest, 2 * room) if first else 0)]


def _cut_at(data: bytes, size: int) -> int:
    """At most `size` bytes, but no part of a character."""
    end = min(max(size, 4), len(data))
    while end < len(data) and data[end] & 0xC0 == 0x80:
        end -= 1
    return end
