"""Reading a session of another harness: one function, one result, whatever the format."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from harness.transcripts.assembly import Assembly
from harness.transcripts.formats.base import Format, Opened
from harness.transcripts.head import Head, head_of
from harness.transcripts.lines import Line, TranscriptWarning
from harness.transcripts.memo import Memo
from harness.transcripts.opening import mixture, open_session, reader_for, settled
from harness.transcripts.pieces import About, Reader
from harness.transcripts.refusing import path_text, refusing
from harness.transcripts.sniff import identify
from harness.transcripts.stats import Counts, Tokens, count_turns
from harness.transcripts.stitching import stitched
from harness.transcripts.telling import Tell, told
from harness.transcripts.turns import MAX_TURNS, Turn

__all__ = ["Summary", "Transcript", "read", "summary"]

_SUMMARY_CAP = 2000
_BATCH = 256
_memo = Memo(32)


@dataclass(frozen=True, slots=True)
class Summary:
    """What is known of a session as a whole, without its turns."""

    format: str
    session_id: str
    size: int
    head: Head
    stats: dict[str, Any]
    warnings: tuple[TranscriptWarning, ...]

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "format": self.format,
            "sessionId": self.session_id,
            "size": self.size,
            "head": self.head.to_dict(),
            "stats": self.stats,
            "warnings": [{"kind": found.kind, "line": found.line, "text": found.text} for found in self.warnings],
        }


@dataclass(frozen=True)
class Transcript:
    """One session of another harness, whole: its turns in file order, and what was wrong with it.

    `truncated` counts the older turns that were left out of one that was read with a `cap`; `whole` then has
    the head and the census of all of them.
    """

    format: str
    session_id: str
    source: Path
    size: int
    turns: tuple[Turn, ...]
    warnings: tuple[TranscriptWarning, ...]
    counts: Counts
    tokens: Tokens
    about: About
    truncated: int = 0
    whole: Summary | None = None
    named: str = ""

    @property
    def file_name(self) -> str:
        """What the file it was read from is called where that is told; a redacted session may have another name."""
        return self.named or self.source.name

    @cached_property
    def head(self) -> Head:
        """The session at a glance; sub-agents' files beside it are looked for when it is first asked for."""
        if self.whole is not None:
            return self.whole.head
        known = identify(self.source)
        agents = known.subagents(self.source)
        return head_of(self.about.harness or known.title, self.about, self.counts, self.turns, self.tokens, agents)

    def stats(self) -> dict[str, Any]:
        """The census of the file, sub-agents' lines in it and abandoned branches included.

        `prompts` are what a person typed; `assistant_msgs` distinct messages of the model; calls and
        results distinct ids; tokens each message once. `prompts_lt`, `tok_out_first` and
        `tok_out_naive` are what common mistakes would count, to explain other tools' figures.
        """
        if self.whole is not None:
            return dict(self.whole.stats)
        return {"format": self.format, "bytes": self.size, **count_turns(self.turns, self.counts, self.tokens)}

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, results inside their calls; only for a transcript that was read with a `cap`."""
        return {
            "format": self.format,
            "sessionId": self.session_id,
            "source": path_text(self.source),
            "size": self.size,
            "head": self.head.to_dict(),
            **({"truncated": self.truncated} if self.truncated else {}),
            "turns": stitched(self.turns),
            "warnings": [{"kind": found.kind, "line": found.line, "text": found.text} for found in self.warnings],
            "stats": self.stats(),
        }


def read(
    source: str | os.PathLike[str],
    session_id: str | None = None,
    *,
    cap: int | None = None,
    tell: Tell | None = None,
) -> Transcript:
    """Read a session: a file, a database, or a folder with sessions in it.

    Blocks while it reads: in a loop use `in_worker(read, ...)`. `cap` is the number of characters kept
    of each block, and then no more than the newest 20 000 turns are kept; without one everything is, the bytes
    of pictures too. `tell` is given how many bytes were read, and of how many, now and then.

    Damaged and unknown lines are counted and located in `warnings`, never raised. Raises
    `TranscriptRefused`, whose `code` says why: no format that can be read, several sessions and no id,
    or several of that id (`candidates` lists them), no session of that id; `FileMissing` where there is nothing.
    """

    def whole() -> Transcript:
        session = open_session(Path(source), session_id)
        return _read(session.path, session.format, session.opened, cap, tell)

    with refusing(Path(source)):
        found = settled(whole)
    return found if cap is None or len(found.turns) <= MAX_TURNS else _newest(found)


def summary(source: str | os.PathLike[str], session_id: str | None = None, *, tell: Tell | None = None) -> Summary:
    """Head, census and damage of a whole session; remembered until its file changes.

    Reads all of it, so for a long one use `in_worker(summary, ...)`, behind the first page. `tell` is given how many
    bytes were read, and of how many. Raises what `read` raises.
    """

    def known() -> Summary:
        session = open_session(Path(source), session_id)

        def make() -> Summary:
            return _summary(_read(session.path, session.format, session.opened, _SUMMARY_CAP, tell))

        found: Summary = _memo.get((str(session.path), session.opened.session_id), session.state, make)
        return found

    with refusing(Path(source)):
        return settled(known)


def _read(path: Path, known: Format, opened: Opened, cap: int | None, tell: Tell | None = None) -> Transcript:
    reader = reader_for(known, opened, cap)
    assembly = known.assembly()
    lines = opened.source.lines()
    _feed(reader, lines if tell is None else told(lines, opened.source.size, tell), assembly)
    reader.finish()
    assembly.add(reader.pieces)
    if opened.counted is not None:
        reader.counts.lines, reader.counts.bad_lines = opened.counted
    turns = assembly.turns()
    counts, tokens = reader.counts, assembly.tokens()
    counts.prompts_lt += assembly.added.prompts_lt
    counts.assistant_msgs += assembly.added.assistant_msgs
    counts.extra_texts += assembly.added.extra_texts
    if reader.about.usage is not None and not tokens.is_known:
        tokens = Tokens.total(reader.about.usage)
    beside = (*mixture(opened.source), *opened.warnings)
    found = [*beside, *reader.warnings, *assembly.warnings, *_empty(turns, counts)]
    warnings = tuple(sorted(found, key=lambda warning: warning.line))
    return Transcript(known.name, opened.session_id, path, opened.size, turns, warnings, counts, tokens, reader.about)


def _summary(found: Transcript) -> Summary:
    return Summary(found.format, found.session_id, found.size, found.head, found.stats(), found.warnings)


def _newest(found: Transcript) -> Transcript:
    """The same with its newest turns only; results stay behind their call."""
    cut = len(found.turns) - MAX_TURNS
    while found.turns[cut].kind == "results":
        cut += 1
    text = f"the {cut:,} oldest of {len(found.turns):,} turns were left out; they are in the pages of the session"
    warnings = (TranscriptWarning("truncated", 0, text), *found.warnings)
    return replace(found, turns=found.turns[cut:], warnings=warnings, truncated=cut, whole=_summary(found))


def _feed(reader: Reader, lines: Iterator[Line], assembly: Assembly) -> None:
    """Let a reader take all lines, and put together what it makes of a few of them at a time.

    Of a long session no more is in memory than its turns; and what is still warm is used at once.
    """
    before = -1
    while before != reader.counts.lines:
        before = reader.counts.lines
        reader.read(islice(lines, _BATCH))
        assembly.add(reader.pieces)
        reader.pieces.clear()


def _empty(turns: Iterable[Turn], counts: Counts) -> list[TranscriptWarning]:
    if any(turn.kind in ("prompt", "answer") for turn in turns):
        return []
    text = f"{counts.lines} lines and no message in them that this reader knows"
    return [TranscriptWarning("no_messages", 0, text)]
