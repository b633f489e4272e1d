"""What a format has to say about itself.

A module of this package that defines `FORMATS` is found by itself: adding a format is adding a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from harness.transcripts.assembly import Assembly
from harness.transcripts.lines import Record, TranscriptWarning
from harness.transcripts.pieces import About, Reader, Subagent
from harness.transcripts.source import FileSource, Source
from harness.transcripts.standing import database_marks, file_marks

__all__ = ["Format", "Listed", "Opened", "Place", "Verdict", "Where"]


class Verdict(IntEnum):
    """How sure a format is that a record is one of its own."""

    NO = 0
    MAYBE = 1
    LIKELY = 2
    CERTAIN = 3


@dataclass(frozen=True, slots=True)
class Where:
    """Where to look for sessions: a person's home folder and environment, and the working directory."""

    home: Path
    env: Mapping[str, str]
    cwd: Path

    def folder(self, variable: str, *default: str) -> Path:
        """The folder a variable names, else one under the home folder."""
        named = self.env.get(variable)
        if not named:
            return self.home.joinpath(*default)
        try:
            return Path(named).expanduser()
        except RuntimeError:  # of a person whom this machine does not know
            return Path(named)


@dataclass(frozen=True, slots=True)
class Place:
    """A folder where a format keeps sessions, and the pattern of their names below it."""

    root: Path
    pattern: str


@dataclass(frozen=True, slots=True)
class Listed:
    """One of several sessions in one container, as its index has it. Times as `times.stamp` gives them."""

    session_id: str
    title: str = ""
    cwd: str = ""
    model: str = ""
    created: str = ""
    updated: str = ""
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A session ready to be read.

    size      bytes of its file; 0 where another session of the same file has them
    warnings  what was found out while opening it
    about     what is known of it beside its lines
    counted   its lines and the bad ones among them, where `source` does not have them as they are written
    """

    source: Source
    session_id: str
    size: int
    warnings: tuple[TranscriptWarning, ...] = ()
    about: About | None = None
    counted: tuple[int, int] | None = None


class Format:
    """Base of the formats: one session a file, one record a line, unless a format says otherwise."""

    name = ""
    title = ""
    assembly: type[Assembly] = Assembly
    tables: Mapping[str, frozenset[str]] = {}
    """Tables and columns that a database of this format has; empty where it is no database."""

    def judge(self, record: Record) -> Verdict:
        """Whether a line is of this format; a format without lines has none."""
        return Verdict.NO

    def judge_document(self, value: object) -> bool:
        """Whether a whole JSON document is of this format."""
        return False

    def around(self, path: Path, inner: Format) -> Format | None:
        """Another format to read a file as, for one that was found to be `inner`; None for no other."""
        return None

    def suits(self, path: Path) -> bool:
        """Whether the name or place of a file speaks for this format; decides between equals."""
        return False

    def reader(self, cap: int | None) -> Reader:
        """A new reader."""
        raise TypeError(f"{self.name} has no reader")

    def places(self, where: Where) -> Sequence[Place]:
        """Where sessions of this format usually are."""
        return ()

    def holds(self, path: Path) -> bool:
        """Whether a file that matched a place's pattern is a session, judged by its name alone."""
        return True

    def files(self, path: Path) -> Sequence[Path]:
        """All files of the session that one of them was named of."""
        return [path]

    def home(self, path: Path) -> Path:
        """What tells sessions of one id apart: the file, or the folder whose files are read as one session."""
        return path

    def session_id(self, path: Path, found: str | None) -> str:
        """The id of a file's session, given the one its lines name."""
        return found or path.stem

    def parent(self, path: Path, found: str | None) -> str | None:
        """The session that started this one, for a sub-agent that is known by its file's name."""
        return None

    def listed_title(self, path: Path, session_id: str) -> str:
        """The title that a list beside a file has for its session; empty where there is no such list."""
        return ""

    def is_document(self, path: Path) -> bool:
        """Whether a file has to be read whole, because its lines are no records."""
        return False

    def listed(self, path: Path) -> list[Listed] | None:
        """The sessions in a container; None where a file is one session."""
        return None

    def is_indexed(self, path: Path) -> bool:
        """Whether a file is a container of which one session can be opened without the list of all."""
        return False

    def marks(self, path: Path) -> tuple[object, ...]:
        """What changes whenever the session of a file does; see `database_marks` for one in a database."""
        return database_marks(path) if self.tables else file_marks(path)

    def open(self, path: Path, session_id: str) -> Opened:
        """A session of a file of this format.

        Raises `TranscriptRefused` with the code `no_such_session` for one that an indexed container does not hold.
        """
        source = FileSource(path)
        return Opened(source, session_id, source.total)

    def subagents(self, path: Path) -> list[Subagent]:
        """Sessions beside this one that were started from it, as far as names and heads tell."""
        return []
