"""What sessions there are in a file, a database or a folder, by their heads and tails alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from harness.errors import HarnessError
from harness.filesystem import disk
from harness.transcripts.formats import format_named
from harness.transcripts.formats.base import Format, Listed
from harness.transcripts.head import first_words, title_of
from harness.transcripts.lines import Line
from harness.transcripts.memo import Memo
from harness.transcripts.pieces import Reader
from harness.transcripts.sniff import identify
from harness.transcripts.source import FileSource, file_mark, is_folder
from harness.transcripts.times import stamp

__all__ = ["Candidate", "candidates", "candidates_of", "distinct"]

_HEAD = 64 * 1024
_LONG_HEAD = 512 * 1024
_TAIL = 32 * 1024
_SUFFIXES = (".jsonl", ".json", ".db", ".sqlite")
_MAX_FILES = 5000
_MAX_DEPTH = 8
_NO_SESSIONS = frozenset({".git", ".venv", "venv", "node_modules", "__pycache__"})
_CAP = 4000
_memo = Memo(4096)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A session that can be read. Times are RFC 3339 in UTC, empty where unknown; `size` is its file's.

    Known from the head and the tail of its file only: `prompt` is the first that was found there.
    """

    format: str
    session_id: str
    path: Path
    size: int
    modified: str
    title: str = ""
    prompt: str = ""
    cwd: str = ""
    branch: str = ""
    model: str = ""
    first_ts: str = ""
    last_ts: str = ""
    subagent_of: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The JSON form: camelCase, absent for what is not known."""
        named = {
            "format": self.format,
            "sessionId": self.session_id,
            "path": str(self.path),
            "size": self.size,
            "modified": self.modified,
            "title": self.title,
            "prompt": self.prompt,
            "cwd": self.cwd,
            "branch": self.branch,
            "model": self.model,
            "firstTs": self.first_ts,
            "lastTs": self.last_ts,
            "subagentOf": self.subagent_of,
        }
        return {name: value for name, value in named.items() if value not in (None, "")}


def candidates(source: Path) -> list[Candidate]:
    """Every session in a file, a database or a folder, the newest first; files that are none are passed over.

    Raises `TranscriptRefused` for a file of no known format, `FileMissing` where there is nothing.
    """
    if not is_folder(source):
        return candidates_of(source, identify(source))
    found = distinct(one for path in islice(_files(source, 0), _MAX_FILES) for one in _tried(path))
    return sorted(found, key=lambda one: (one.last_ts or one.modified, one.session_id), reverse=True)


def distinct(found: Iterable[Candidate]) -> list[Candidate]:
    """Each session once, by its first file. Two users, agents or folders may have sessions of the same id."""
    kept: dict[tuple[str, str, Path], Candidate] = {}
    for one in found:
        kept.setdefault((one.format, one.session_id, format_named(one.format).home(one.path)), one)
    return list(kept.values())


def _listed(path: Path, known: Format, listed: Iterable[Listed]) -> list[Candidate]:
    """The sessions of a container, as its own index has them."""
    mark = file_mark(path)
    changed = stamp(mark.mtime_ns / 1e9) or ""
    return [
        Candidate(
            known.name,
            one.session_id,
            path,
            mark.size,
            one.updated or changed,
            one.title,
            cwd=one.cwd,
            model=one.model,
            first_ts=one.created,
            last_ts=one.updated,
            subagent_of=one.parent,
        )
        for one in listed
    ]


def _glance(path: Path, known: Format) -> Candidate:
    """What the head and the tail of a session's file say about it."""
    mark = file_mark(path)
    reader = _glanced(path, known, _HEAD)
    if reader.about.session_id is None or not any(piece.kind == "prompt" for piece in reader.pieces):
        reader = _glanced(path, known, _LONG_HEAD)
    about, counts = reader.about, reader.counts
    prompts = [piece for piece in reader.pieces if piece.kind == "prompt" or piece.note == "mirror:user"]
    said = [" ".join(block["text"] for block in piece.blocks if block["type"] == "text") for piece in prompts]
    return Candidate(
        known.name,
        known.session_id(path, about.session_id),
        path,
        mark.size,
        stamp(mark.mtime_ns / 1e9) or "",
        title_of(about, said),
        next((words for text in said if (words := first_words(text))), ""),
        about.cwd or "",
        about.branch or "",
        about.model or counts.model or "",
        counts.first,
        counts.last,
        known.parent(path, about.session_id) or about.parent,
    )


def candidates_of(path: Path, known: Format) -> list[Candidate]:
    """The sessions in a file of a known format."""
    listed = known.listed(path)
    if listed is not None:
        return _listed(path, known, listed)
    return [_memo.get(str(path), file_mark(path), lambda: _glance(path, known))]


def _tried(path: Path) -> list[Candidate]:
    try:
        known = identify(path)
        return candidates_of(path, known) if known.holds(path) else []
    except HarnessError:
        return []  # a folder may hold anything beside sessions


def _files(folder: Path, depth: int) -> Iterator[Path]:
    """The files below a folder that could be sessions; links are not followed."""
    for item in disk.list_folder(folder):
        path = folder / item.name
        if item.is_dir:
            if depth < _MAX_DEPTH and item.name not in _NO_SESSIONS:
                yield from _files(path, depth + 1)
        elif item.name.endswith(_SUFFIXES) and item.size:
            yield path


def _glanced(path: Path, known: Format, head: int) -> Reader:
    reader = known.reader(_CAP)
    reader.read(_ends(path, known, head))
    return reader


def _ends(path: Path, known: Format, head: int) -> Iterator[Line]:
    """The whole lines of the head, and those of the tail."""
    if known.is_document(path):
        yield from known.open(path, "").source.lines()
        return
    source = FileSource(path)
    limit = min(head, source.total)
    cut = source.total if limit == source.total else max(source.preceding(limit), 1)
    yield from source.lines(0, cut if cut > 1 else limit)
    tail = source.following(max(cut, source.total - _TAIL), source.total)
    if tail is not None and limit < source.total:
        yield from source.lines(tail)
