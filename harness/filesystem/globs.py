"""Glob patterns, matched in time that no pattern can blow up.

`*`, `?` and `[...]` match inside one name, `**` any number of folders, `{a,b}` either.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from harness.errors import FilesystemError, PathRefused
from harness.filesystem.paths import Parts

__all__ = ["Glob"]

_MAX_LENGTH = 512  # characters
_MAX_ALTERNATIVES = 64
_BRACES = re.compile(r"\{([^{}]*)\}")

# One name of a pattern; None stands for `**`.
_Segment: TypeAlias = Callable[[str], object] | None


class Glob:
    """A pattern ready to match paths, at any depth: `*.md` finds `a/b.md` too.

    Raises `FilesystemError` for a blank or overlong pattern or one with too many alternatives,
    `PathRefused` for one that contains `..`.
    """

    def __init__(self, pattern: str) -> None:
        text = pattern.strip().lstrip("/")
        if not text or len(text) > _MAX_LENGTH:
            raise FilesystemError(f"the pattern {pattern[:60]!r} is blank or very long; give one as *.md or docs/**")
        if ".." in text.split("/"):
            raise PathRefused(f"the pattern {pattern!r} contains '..'; name the folder in which to search instead")
        self._alternatives = [_segments(one) for one in _expand(text)]

    def matches(self, parts: Parts) -> bool:
        """Whether the path, relative to the folder that is searched, matches."""
        return any(_match(segments, parts) for segments in self._alternatives)


def _expand(pattern: str) -> list[str]:
    done: list[str] = []
    pending = [pattern]
    while pending:
        text = pending.pop()
        group = next((found for found in _BRACES.finditer(text) if "," in found[1]), None)
        if group is None:
            done.append(text)
        else:
            pending.extend(text[: group.start()] + one + text[group.end() :] for one in group[1].split(","))
        if len(done) + len(pending) > _MAX_ALTERNATIVES:
            raise FilesystemError(
                f"the pattern {pattern[:60]!r} has over {_MAX_ALTERNATIVES} alternatives; use a plainer one"
            )
    return done


def _segments(pattern: str) -> list[_Segment]:
    segments: list[_Segment] = [None]
    for name in pattern.split("/"):
        if name == "**":
            segment = None
        elif name in ("", "."):
            continue
        else:
            # The translation has no backtracking between its stars (atomic groups).
            segment = re.compile(fnmatch.translate(name)).match
        if segment is not None or segments[-1] is not None:
            segments.append(segment)
    return segments


def _match(segments: Sequence[_Segment], parts: Parts) -> bool:
    """Greedy: only the newest `**` is ever tried again, which suffices, so the cost is a product."""
    at, seen, star, resume = 0, 0, 0, 0
    while seen < len(parts):
        segment = segments[at] if at < len(segments) else _nothing
        if segment is None:
            star, resume, at = at, seen, at + 1
        elif segment(parts[seen]):
            at, seen = at + 1, seen + 1
        else:  # there always is an earlier `**`: every pattern begins with one
            resume += 1
            at, seen = star + 1, resume
    return all(segment is None for segment in segments[at:])


def _nothing(_: str) -> bool:
    return False
