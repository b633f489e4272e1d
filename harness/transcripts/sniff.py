"""Which format a file has, judged by its lines until one tells.

Never by the first few only: real sessions begin with many lines that every format could have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from harness.errors import SessionDamaged, TranscriptRefused
from harness.filesystem import disk
from harness.filesystem.archives import open_archive
from harness.sessions.moving.bundle import LEDGER, MANIFEST
from harness.transcripts.database import MAGIC, columns, read_database
from harness.transcripts.document import read_document
from harness.transcripts.formats import all_formats
from harness.transcripts.formats.base import Format, Verdict
from harness.transcripts.lines import MAX_LINE, Line
from harness.transcripts.memo import MANY, Memo
from harness.transcripts.source import FileSource, file_mark
from harness.transcripts.standing import database_marks

__all__ = ["identify", "judge_lines"]

_ARCHIVE = b"PK\x03\x04"
_HEAD = 4 * 1024 * 1024
_TAIL = 256 * 1024
_ENOUGH = 64
_WIDE = 64
_memo = Memo(MANY)


def identify(path: Path) -> Format:
    """The format of a file. Raises `TranscriptRefused` where it is none that can be read."""
    known = _memo.get(str(path), file_mark(path), lambda: _identify(path))
    # What is in a database may stand in its log alone.
    return known or _memo.get((str(path), "tables"), database_marks(path), lambda: _database(path))


def judge_lines(lines: Iterable[Line], path: Path) -> Format | None:
    """The format most of the lines speak for; None where none does."""
    best: dict[str, Verdict] = {}
    votes: Counter[str] = Counter()
    for line in lines:
        if line.record is None:
            continue
        for known in all_formats():
            verdict = known.judge(line.record)
            if verdict:
                best[known.name] = max(best.get(known.name, Verdict.NO), verdict)
                votes[known.name] += verdict >= Verdict.LIKELY
        if Verdict.CERTAIN in best.values() or votes.total() >= _ENOUGH:
            break
    named = [known for known in all_formats() if known.name in best]
    return max(named, key=lambda known: (best[known.name], known.suits(path), votes[known.name]), default=None)


def _identify(path: Path) -> Format | None:
    """The format of a file; None for a database, whose tables tell it."""
    head = disk.read(path, 0, 4096)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or _is_wide(head):
        raise TranscriptRefused("not_utf8", f"{path} is not UTF-8 but UTF-16; convert it first")
    if head.startswith(MAGIC):
        return None
    found = None if head.lstrip()[:2].split() in ([b"{"], [b"["]) else judge_lines(_sample(path), path)
    found = found or _document(path) or judge_lines(_sample(path), path)
    if found is None:
        raise _unknown(path)
    inner = found
    return next((other for known in all_formats() if (other := known.around(path, inner))), inner)


def _is_exported_session(path: Path) -> bool:
    """Whether this is the bundle of a session, which is taken in whole and checked; here only its names are read."""
    if disk.read(path, 0, len(_ARCHIVE)) != _ARCHIVE:
        return False
    try:
        with open_archive(path) as archive:
            return archive.sizes.keys() >= {MANIFEST, LEDGER}
    except SessionDamaged:
        return False


def _is_wide(head: bytes) -> bool:
    """Whether text begins in two bytes a sign, without a mark that says so: every other byte of it is NUL."""
    first, second = head[:_WIDE:2], head[1:_WIDE:2]
    return any(one and other and not any(one) and all(other) for one, other in ((first, second), (second, first)))


def _sample(path: Path) -> Iterator[Line]:
    """The lines of the head and of the tail; then, as neither has told, the large one at which the head ends."""
    source = FileSource(path)
    total = source.total
    if total <= _HEAD:
        yield from source.lines()
        return
    cut = source.preceding(_HEAD)
    yield from source.lines(0, cut)
    tail = source.following(total - _TAIL, total)
    if tail is not None and tail > cut:
        yield from source.lines(tail)
    yield from islice(source.lines(cut, min(total, cut + 2 * MAX_LINE)), _ENOUGH)


def _document(path: Path) -> Format | None:
    document = read_document(path)
    if document is None:
        return None
    return next((known for known in all_formats() if known.judge_document(document.value)), None)


def _database(path: Path) -> Format:
    tables = {name: wanted for known in all_formats() for name, wanted in known.tables.items()}
    try:
        there = read_database(path, lambda connection: {name: columns(connection, name) for name in tables})
    except TranscriptRefused as error:
        if error.code == "unreadable":
            raise
        raise _unknown(path) from error
    for known in all_formats():
        if known.tables and all(wanted <= there[name] for name, wanted in known.tables.items()):
            return known
    raise _unknown(path)


def _unknown(path: Path) -> TranscriptRefused:
    if _is_exported_session(path):
        text = f"{path} is an exported session of this library and no transcript"
        return TranscriptRefused("unknown_format", f"{text}; `harness sessions import` or `import_session` takes it in")
    names = ", ".join(known.name for known in all_formats())
    return TranscriptRefused("unknown_format", f"{path} is no transcript of a format that is read here: {names}")
