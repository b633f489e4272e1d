"""What sessions there are in a file, a database or a folder, by their heads and tails alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.errors import HarnessError
from harness.transcripts.folders import Look
from harness.transcripts.formats import format_named
from harness.transcripts.formats.base import Format, Listed
from harness.transcripts.head import first_words, title_of
from harness.transcripts.lines import Line
from harness.transcripts.memo import MANY, Memo
from harness.transcripts.pieces import Reader
from harness.transcripts.refusing import path_text, refusing
from harness.transcripts.sniff import identify
from harness.transcripts.source import FileSource, Source, file_mark, is_folder
from harness.transcripts.times import stamp

__all__ = ["Candidate", "Listing", "candidates", "candidates_of", "distinct", "listing"]

_HEAD = 64 * 1024
_LONG_HEAD = 512 * 1024
_TAIL = 32 * 1024
_SUFFIXES = (".jsonl", ".json", ".db", ".sqlite")
_MAX_FILES = 5000
_MAX_DEPTH = 8
_NO_SESSIONS = frozenset({".git", ".venv", "venv", "node_modules", "__pycache__"})
_CAP = 4000
_NAMED = 3
_memo = Memo(MANY)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A session that can be read. Times are RFC 3339 in UTC, empty where unknown; `size` is its file's.

    Known from the head and the tail of its file only: `prompt` is the first that was found there.
    `agent` and `tenant` are whose it is, for a ledger of this library.
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
    agent: str = ""
    tenant: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The JSON form: camelCase, absent for what is not known."""
        named = {
            "format": self.format,
            "sessionId": self.session_id,
            "path": path_text(self.path),
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
            "agent": self.agent,
            "tenant": self.tenant,
        }
        return {name: value for name, value in named.items() if value not in (None, "")}


@dataclass(frozen=True, slots=True)
class Listing:
    """The sessions that were found, the newest first.

    `left_out` files were not looked at: a folder has more than are, and these are the oldest. `closed` are the
    folders that may not be listed, or are none; what is in them is not known.
    """

    sessions: list[Candidate]
    left_out: int = 0
    closed: tuple[str, ...] = ()

    @property
    def note(self) -> str | None:
        """What was not looked at, in a sentence that tells names and no places; None where there is nothing."""
        said = []
        if self.left_out:
            others = "1 older file was" if self.left_out == 1 else f"{self.left_out:,} older files were"
            said.append(f"{others} not looked at, only the newest {_MAX_FILES:,}; name a folder with fewer")
        if self.closed:
            names = ", ".join(Path(folder).name for folder in self.closed[:_NAMED])
            more = f" and {len(self.closed) - _NAMED:,} more" if len(self.closed) > _NAMED else ""
            said.append(f"what may not be listed was passed over: {names}{more}")
        return "; ".join(said) or None


def candidates(source: Path) -> list[Candidate]:
    """Every session in a file, a database or a folder, the newest first; files that are none are passed over.

    Raises `TranscriptRefused` for a file of no known format, `FileMissing` where there is nothing.
    """
    return listing(source).sessions


def listing(source: Path) -> Listing:
    """The same, and what of a folder was not looked at. Raises what `candidates` raises."""
    look = Look()
    with refusing(source):
        if not is_folder(source):
            return Listing(candidates_of(source, identify(source)))
        files = sorted(_files(look, source, 0), key=lambda file: (-file[1], file[0]))
    found = distinct(one for path, _ in sorted(files[:_MAX_FILES]) for one in _tried(path))
    newest = sorted(found, key=lambda one: (one.last_ts or one.modified, one.session_id), reverse=True)
    return Listing(newest, max(0, len(files) - _MAX_FILES), tuple(look.closed))


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
    source = known.open(path, "").source if known.is_document(path) else FileSource(path)
    reader = _glanced(source, known, _HEAD)
    if reader.about.session_id is None or not any(piece.kind == "prompt" for piece in reader.pieces):
        reader = _glanced(source, known, _LONG_HEAD)
    about, counts = reader.about, reader.counts
    prompts = [piece for piece in reader.pieces if piece.kind == "prompt" or piece.note == "mirror:user"]
    said = [" ".join(block["text"] for block in piece.blocks if block["type"] == "text") for piece in prompts]
    return Candidate(
        known.name,
        path_text(known.session_id(path, about.session_id)),
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
        about.agent,
        about.tenant,
    )


def candidates_of(path: Path, known: Format) -> list[Candidate]:
    """The sessions in a file of a known format."""
    listed = known.listed(path)
    if listed is not None:
        return _listed(path, known, listed)
    found = _memo.get(str(path), file_mark(path), lambda: _glance(path, known))
    return [_titled(found, known) if found.size > _HEAD else found]


def _titled(found: Candidate, known: Format) -> Candidate:
    """With the title that somebody gave in the middle of a long file, where no glance falls."""
    title = known.listed_title(found.path, found.session_id)
    return found if not title or found.prompt.startswith(title) else replace(found, title=title)


def _tried(path: Path) -> list[Candidate]:
    try:
        with refusing(path):
            known = identify(path)
            return candidates_of(path, known) if known.holds(path) else []
    except HarnessError:
        return []  # a folder may hold anything beside sessions


def _files(look: Look, folder: Path, depth: int) -> Iterator[tuple[Path, int]]:
    """The files below a folder that could be sessions, with their times; links are not followed."""
    for item in look.items(folder):
        path = folder / item.name
        if item.is_dir:
            if depth < _MAX_DEPTH and item.name not in _NO_SESSIONS:
                yield from _files(look, path, depth + 1)
        elif item.is_file and item.name.endswith(_SUFFIXES) and item.size:
            yield path, item.mtime_ns


def _glanced(source: Source, known: Format, head: int) -> Reader:
    reader = known.reader(_CAP)
    reader.read(_ends(source, head))
    return reader


def _ends(source: Source, head: int) -> Iterator[Line]:
    """The whole lines of the head, and those of the tail."""
    total = source.total
    limit = min(head, total)
    cut = total if limit == total else max(source.preceding(limit), 1)
    yield from source.lines(0, cut if cut > 1 else limit)
    tail = source.following(max(cut, total - _TAIL), total)
    if tail is not None and limit < total:
        yield from source.lines(tail)
