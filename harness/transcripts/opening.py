"""From what a person names to one session: a file, one of a database, one of a folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

from harness.errors import TranscriptRefused
from harness.transcripts.discovery import discover
from harness.transcripts.formats.base import Format, Opened
from harness.transcripts.lines import TranscriptWarning
from harness.transcripts.listing import Candidate, candidates, candidates_of
from harness.transcripts.memo import Memo
from harness.transcripts.pieces import Reader
from harness.transcripts.refusing import path_text, refusing
from harness.transcripts.sniff import identify
from harness.transcripts.source import Source, is_folder

__all__ = ["Session", "mixture", "open_session", "reader_for", "settled"]

_SHOWN = 20
_REWRITTEN = "rewritten"
_memo = Memo(16)


class _Reading(Protocol):
    @property
    def warnings(self) -> Sequence[TranscriptWarning]: ...


T = TypeVar("T", bound=_Reading)


@dataclass(frozen=True, slots=True)
class Session:
    """One session, found and ready to be read. `state` changes whenever the session does."""

    path: Path
    format: Format
    opened: Opened
    state: tuple[object, ...]


def open_session(source: Path, session_id: str | None = None) -> Session:
    """The one session that is meant. Raises `TranscriptRefused` where there are several, or none.

    A folder without sessions stands for those in the usual places that ran in it.
    """
    with refusing(source):
        return _found(source, session_id)


def _found(source: Path, session_id: str | None) -> Session:
    if is_folder(source):
        found = candidates(source) or discover(cwd=source)
        chosen = _chosen(source, session_id, found)
        return _opened(chosen.path, identify(chosen.path), chosen.session_id)
    known = identify(source)
    if session_id is not None and known.is_indexed(source):
        try:
            return _opened(source, known, session_id)
        except TranscriptRefused as error:
            if error.code != "no_such_session":
                raise  # else it is refused below, with the list of those that there are
    listed = known.listed(source)
    if listed is not None and len(listed) == 1 and session_id is None:
        return _opened(source, known, listed[0].session_id)
    chosen = _chosen(source, session_id, candidates_of(source, known))
    return _opened(chosen.path, known, chosen.session_id)


def reader_for(known: Format, opened: Opened, cap: int | None) -> Reader:
    """A new reader that knows what is known of the session beside its lines."""
    reader = known.reader(cap)
    if opened.about is not None:
        reader.about = replace(opened.about, subagents=list(opened.about.subagents))
    return reader


def mixture(source: Source) -> tuple[TranscriptWarning, ...]:
    """What a reader is told of lines that were read while their file was written anew; nothing otherwise."""
    text = "the file was written anew while it was read, and parts of two states may stand here; read it again"
    return (TranscriptWarning(_REWRITTEN, 0, text),) if source.rewritten else ()


def settled(read: Callable[[], T]) -> T:
    """What `read` gives, which opens the session; once more where that was a mixture."""
    found = read()
    return read() if any(warning.kind == _REWRITTEN for warning in found.warnings) else found


def _opened(path: Path, known: Format, session_id: str) -> Session:
    state = known.marks(path)
    return Session(path, known, _memo.get((str(path), session_id), state, lambda: known.open(path, session_id)), state)


def _chosen(source: Path, session_id: str | None, found: Sequence[Candidate]) -> Candidate:
    if not found:
        raise TranscriptRefused("no_transcript", f"no session in {source}; name a session's file")
    if session_id is not None:
        fitting = [one for one in found if one.session_id == session_id]
        if not fitting:
            text = f"{source} holds no session {session_id!r}; name one of those it holds:\n{_lines(found)}"
            raise TranscriptRefused("no_such_session", text, tuple(found))
        if len(fitting) > 1:
            text = f"{source} holds {len(fitting)} sessions {session_id!r}; name the file of one:\n{_lines(fitting)}"
            raise TranscriptRefused("several_sessions", text, tuple(fitting))
        return fitting[0]
    own = [one for one in found if one.subagent_of is None] or found
    if len(own) == 1:
        return own[0]
    text = f"{source} holds {len(own)} sessions; name one of them:\n{_lines(own)}"
    raise TranscriptRefused("several_sessions", text, tuple(own))


def _lines(found: Sequence[Candidate]) -> str:
    """The sessions to choose from, one a line; with their files where ids alone do not tell them apart."""
    ids = Counter(one.session_id for one in found)
    shown = [
        (
            one.session_id,
            one.modified[:16],
            one.title or one.prompt,
            path_text(one.path) if ids[one.session_id] > 1 else "",
        )
        for one in found[:_SHOWN]
    ]
    lines = ["  " + "  ".join(" ".join(part.split()) for part in parts if part) for parts in shown]
    return "\n".join([*lines, *([f"  and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else [])])
