"""Which paths a model or a tool may name, before any file is touched.

Paths are relative to the root of a tenant, in the notation of POSIX. What this module lets through
holds no `..`, no empty part and nothing that a screen or a shell would misread; whether a *link*
leads out is for the backend to find out, at the moment it opens the file.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import TypeAlias

from harness.errors import PathRefused
from harness.filesystem.disk import is_leftover
from harness.filesystem.namespaces import AGENTS, TENANT_FILE

__all__ = ["MAX_DEPTH", "Parts", "PathRules", "join"]

MAX_DEPTH = 64
_MAX_PART = 255  # bytes, the limit of common file systems
_MAX_SHOWN = 200
_OFF_LIMITS = (AGENTS, TENANT_FILE)
_DAY = re.compile(r"\d{4}-\d\d-\d\d\.md")
# Control characters, halves of surrogate pairs, and what breaks a line.
_UNPRINTABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})

Parts: TypeAlias = tuple[str, ...]
"""A path below the root, taken apart; `()` is the root."""


def join(parts: Parts) -> str:
    """The path as text; `.` for the root."""
    return "/".join(parts) or "."


class PathRules:
    """The check every path passes. `off_limits` are more first names that nothing may reach."""

    def __init__(self, off_limits: Iterable[str] = ()) -> None:
        self._off_limits = frozenset(_folded(name) for name in (*_OFF_LIMITS, *off_limits))

    def folder(self, path: str) -> Parts:
        """The parts of a path that may be the root, which is written as nothing, `.` or `/`.

        Raises `PathRefused`.
        """
        if path.strip() in ("", ".", "/", "./"):
            return ()
        return self.file(path)

    def file(self, path: str) -> Parts:
        """The parts of a path that is not the root. Raises `PathRefused`."""
        text = path.strip()
        if text.startswith(("/", "~")) or "\\" in text:
            raise PathRefused(f"{_shown(path)} is no path here; use one relative to the root, as in notes/today.md")
        parts = tuple(part for part in text.removesuffix("/").split("/") if part != ".")
        if not parts or len(parts) > MAX_DEPTH:
            raise PathRefused(f"{_shown(path)} names no file or more than {MAX_DEPTH} folders; use another path")
        for part in parts:
            self._check_part(part, path)
        if _folded(parts[0]) in self._off_limits:
            raise PathRefused(f"{_shown(path)} is off limits: {parts[0]} belongs to the harness; use another path")
        return parts

    def for_file(self, path: str) -> Parts:
        """The same, for a file that is to be there. Raises `PathRefused`."""
        parts = self.file(path)
        self.check_kind(parts, is_dir=False)
        return parts

    @staticmethod
    def check_kind(parts: Parts, *, is_dir: bool) -> None:
        """Raise `PathRefused` where a file would stand in the way of a folder of the memory, or a folder of a file."""
        names = tuple(map(_folded, parts))
        for end in range(1, len(parts) + 1):
            folder = is_dir or end < len(parts)
            if (needed := _kind_in_memory(names[:end])) and (needed == "folder") != folder:
                raise PathRefused(
                    f"{join(parts[:end])} is kept for a {needed} of the memory and cannot be a "
                    f"{'folder' if folder else 'file'}; use another path, as in memory/notes.md"
                )

    def shows(self, parts: Parts) -> bool:
        """Whether a name that was found may be shown, that is, whether its path could be given back."""
        try:
            return self.file(join(parts)) == parts
        except PathRefused:
            return False

    def _check_part(self, part: str, path: str) -> None:
        if part in ("", ".."):
            raise PathRefused(f"{_shown(path)} has an empty part or '..' in it; use a path without")
        if any(unicodedata.category(character) in _UNPRINTABLE for character in part):
            raise PathRefused(f"{_shown(path)} holds a control character; use a name without")
        if len(part.encode()) > _MAX_PART:
            raise PathRefused(f"{part[:60]!r}… is longer than {_MAX_PART} bytes; use a shorter name")
        if is_leftover(part):
            raise PathRefused(f"{_shown(path)} is a temporary or damaged file of the harness; use another name")


def _kind_in_memory(names: Parts) -> str:
    """What the agent's memory needs at a path, given folded; empty where it needs nothing."""
    match names:
        case ("memory.md",) | ("memory", ".consolidated.json"):
            return "file"
        case ("memory",) | ("memory", "archive"):
            return "folder"
        case ("memory", day) | ("memory", "archive", day):
            return "file" if _DAY.fullmatch(day) else ""
        case _:
            return ""


def _shown(path: str) -> str:
    """A path for an error, with no more of it than tells which it was."""
    return repr(path) if len(path) <= _MAX_SHOWN else f"{path[:_MAX_SHOWN]!r}…"


def _folded(name: str) -> str:
    """One form for all names that some disk takes for the same: case, composition, invisible characters."""
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return "".join(c for c in text if unicodedata.category(c) != "Cf").rstrip(". ")
