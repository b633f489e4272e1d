"""Proving a session: whether every line stands where and as it was written, up to the end that the anchor names.

The anchor is read before the ledger, so that a writer at work is not taken for damage; where it was written or went
away meanwhile, an error may be none, and all is read again. The ledger is read in blocks. Reading needs no lock and
changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from harness.errors import FileMissing, PersistenceError, SessionDamaged
from harness.filesystem import disk
from harness.sessions.checking.chain import chain_findings
from harness.sessions.checking.findings import Finding, Kind, VerifyReport, missing_lines
from harness.sessions.checking.line_table import LineTable, short_sum
from harness.sessions.checking.view_start import view_start
from harness.sessions.ledger.reading import left_damaged
from harness.sessions.lines.anchor import Anchor, read_anchor
from harness.sessions.lines.blobs import blob_path
from harness.sessions.lines.entries import Position, digest
from harness.sessions.lines.formats import check_format
from harness.sessions.lines.layout import Owner, SessionFiles
from harness.sessions.lines.traces import Trace, find_traces, furthest
from harness.text import loads

__all__ = ["Finding", "VerifyReport", "verify_bytes", "verify_chain", "verify_session"]

_NO_SUM = -1
_TRIES = 3
"""Of a session that is written to all the while; what is wrong with it by then is wrong."""
_REANCHOR = "the next call, or repair, makes a new one and notes it in the ledger"
_END = "; restore the ledger from a backup, or go on without them: the next call notes it in the ledger"


def verify_chain(data: bytes) -> list[Finding]:
    """What is wrong with the bytes of a ledger, as far as its lines tell without an anchor."""
    return chain_findings(LineTable().read([data]))


def verify_bytes(data: Iterable[bytes], anchor: Anchor | None) -> list[Finding]:
    """What is wrong with the bytes of a ledger, in any blocks, and with its end; no other file is looked at."""
    return _ledger_findings(LineTable(anchor.hash if anchor else "").read(data), anchor)


def verify_session(files: SessionFiles, owner: Owner) -> VerifyReport:
    """Check a session's ledger, anchor, context file and contents; blocking, so in a worker.

    Raises `FileMissing` if there is neither a ledger nor anything that knows of one, and `NewerFormat`.
    """
    anchor = read_anchor(files.anchor)
    for _ in range(_TRIES):
        report, before = _report(files, owner, anchor), anchor
        if report.ok or (anchor := read_anchor(files.anchor)) == before:
            break
    return report


def _report(files: SessionFiles, owner: Owner, anchor: Anchor | None) -> VerifyReport:
    context = _context_lines(files.context)
    table = LineTable(anchor.hash if anchor else "", context)
    traces = [] if anchor and anchor.count else find_traces(files)
    try:
        table.read(disk.read_blocks(files.ledger))
    except FileMissing:
        if disk.mark(files.removed) or not ((anchor and anchor.count) or traces):
            raise
    missing = [*_known_elsewhere(table, traces)]
    due = bool(missing) or owner.anchor_key is not None or left_damaged(files, anchor)
    found = _ledger_findings(table, anchor, due=due)
    if anchor and not any(finding.error for finding in found):
        found += _view(table, anchor)
    found += [*missing, *_unsigned(table, anchor, owner.anchor_key)]
    if not any(finding.kind == "edited" and finding.line == 1 for finding in found):  # what it says counts for nothing
        found = [*_owner_findings(table, owner, files.ledger), *found]
    if anchor and anchor.count and not anchor.names(owner.session):
        text = f"the anchor is that of session {anchor.session!r}; put the right one back, or repair"
        found.append(_at(table, 0, "foreign", text))
    found += [*_origin(table), *_file_findings(table, files.blobs)]
    found += [_context_finding(number) for number in sorted(context[missed] for missed in table.wanted)]
    return VerifyReport(
        session=owner.session,
        ledger_id=str(table.header.get("ledgerId")) if table.header else None,
        lines=len(table),
        bytes=table.size,
        anchored=table.anchored_at + 1,
        files=len(table.named),
        findings=tuple(sorted(found, key=_order)),
    )


def _order(finding: Finding) -> tuple[bool, int, bool]:
    """By lines, of one line the errors first; what is about the copy for the model stands last."""
    return finding.kind == "context", finding.line, not finding.error


def _ledger_findings(table: LineTable, anchor: Anchor | None, *, due: bool = False) -> list[Finding]:
    found = chain_findings(table)
    known = any(finding.error for finding in found)
    return [*found, *_wrong_parts(table), *_earlier_damage(table), *_against(table, anchor, known, due)]


def _wrong_parts(table: LineTable) -> Iterator[Finding]:
    for line, part in table.wrong:
        text = f"its {part} is what no writer ever wrote, so it is stepped over; restore the ledger from a backup"
        yield _at(table, line, "edited", text)
    for line, what in table.misplaced:
        yield _at(table, line, "foreign", f"it {what}; restore the ledger from a backup")


def _at(table: LineTable, line: int, kind: Kind, text: str, *, error: bool = True) -> Finding:
    """A finding about a line, counted from 0; behind the last one it is about the end."""
    inside = line < len(table)
    return Finding(kind, max(line, 0) + 1, table.starts[line] if inside else table.size, error, text)


def _against(table: LineTable, anchor: Anchor | None, known: bool, due: bool) -> Iterator[Finding]:
    """The end of a ledger is held by its anchor alone. `known` says that an error has been found already.

    A session that was stopped in its very first commit never had an anchor, unless one was `due` for another reason.
    Who could cut a ledger so short, and remove its anchor and all that was made from it, could remove the ledger too:
    to call it an error would prove nothing.
    """
    end = len(table)
    if anchor is None or not anchor.count:
        if end and table.unanswered and not due:
            text = "nothing was said behind its first commit, so there may be no anchor yet; the next call makes one"
            yield _at(table, end, "unanchored", text, error=False)
        elif end:
            yield _at(table, end, "unanchored", f"there is no usable anchor, so the end is not proved; {_REANCHOR}")
        return
    if table.header and str(table.header.get("ledgerId")) != anchor.ledger_id:
        yield _at(table, 0, "foreign", "the anchor belongs to another ledger; put the right ledger back, or repair")
    elif table.anchored_at < 0:
        yield from _end_is_missing(table, anchor, known)
    else:
        yield from _end_is_there(table, anchor, known)


def _known_elsewhere(table: LineTable, traces: Iterable[Trace]) -> Iterator[Finding]:
    """With the anchor gone too, what was made from the ledger may still tell that there was more of it."""
    end = max(len(table), *table.seqs) if len(table) else 0
    trace = furthest(traces, str(table.header.get("ledgerId")) if table.header else None)
    if trace and trace.lines > end and (table.header or not end):
        missing = f"{missing_lines(end + 1, trace.lines)} at least, by {trace.source}, and there is no anchor"
        yield _at(table, len(table), "truncated", f"{missing}; restore the ledger from a backup")


def _end_is_missing(table: LineTable, anchor: Anchor, known: bool) -> Iterator[Finding]:
    last = next((line for line in reversed(range(len(table))) if table.seqs[line] == anchor.count), None)
    newest = max(table.seqs, default=0)
    if last is not None:
        yield _at(table, last, "edited", "it is not the line that the anchor names; restore the ledger from a backup")
    elif newest < anchor.count:
        missing = f"{missing_lines(newest + 1, anchor.count)} at the end"
        yield _at(table, len(table), "truncated", f"{missing}: {anchor.bytes} bytes were there, {table.size} are{_END}")
    elif not known:
        yield _at(table, len(table), "truncated", f"the line that the anchor names is missing{_END}")


def _end_is_there(table: LineTable, anchor: Anchor, known: bool) -> Iterator[Finding]:
    line = table.anchored_at
    last = line + 1 == len(table)
    end = table.size + (not table.ended) if last else table.starts[line + 1]
    if last and not table.ended:
        yield _at(table, line, "truncated", "its line feed is missing at the end of the file; the next call adds it")
    if (line + 1, end) != (anchor.count, anchor.bytes) and not known:
        text = f"line {anchor.count} has become line {line + 1}; something before it was added or taken away"
        yield _at(table, line, "edited", f"{text}; restore the ledger from a backup")
    if not last:
        yield _at(table, line + 1, "unanchored", "written after the last sync, as yet without an anchor", error=False)


def _view(table: LineTable, anchor: Anchor) -> Iterator[Finding]:
    """The view begins where the lines up to the anchored one say, else the model would see too little.

    Only an anchor that fits its ledger is asked: an anchor is always as old as the line that it names.
    """
    if table.anchored_at < 0:
        return
    start = view_start(table, table.anchored_at)
    due = Position(start + 1, table.starts[start])
    if (there := anchor.boundary) != due:
        text = f"the anchor says that the view begins at line {there.seq}, byte {there.offset}"
        text = f"{text}; by the ledger it is line {due.seq}, byte {due.offset}: repair makes the anchor anew"
        yield _at(table, there.seq - 1, "edited", text)


def _unsigned(table: LineTable, anchor: Anchor | None, key: bytes | None) -> Iterator[Finding]:
    """A ledger that was written anew fits an anchor that was written anew with it, but for the key."""
    if anchor and anchor.count and key and not anchor.signed_with(key):
        how = "is signed with another key" if anchor.mac else "is not signed"
        text = f"the anchor {how}: all of it may have been written anew, or its writer had no key yet; {_REANCHOR}"
        yield _at(table, len(table), "edited", text)


def _earlier_damage(table: LineTable) -> Iterator[Finding]:
    """What a writer found and noted when it went on; the lines it missed stay missing."""
    for line, entry in table.damages:
        data = entry.get("data")
        found = data.get("found") if isinstance(data, dict) else None
        for item in found if isinstance(found, list) else ():
            if isinstance(item, dict) and item.get("kind") in ("truncated", "unanchored"):
                text = f"{item.get('text', 'damage')} (found and noted by the writer of this line)"
                yield replace(_at(table, line, item["kind"], text, error=False), noted=True)


def _owner_findings(table: LineTable, owner: Owner, ledger: Path) -> Iterator[Finding]:
    if table.header:
        try:
            check_format(table.header, Path(ledger.name))
            owner.check(table.header, Path("the ledger"))
        except SessionDamaged as error:
            yield _at(table, 0, "foreign", str(error))


def _origin(table: LineTable) -> Iterator[Finding]:
    """A session that was taken in although nobody vouched for it."""
    origin = table.header.get("importedFrom") if table.header else None
    if isinstance(origin, dict) and origin.get("unsigned") is True:
        text = "taken over from a bundle that the anchor key did not vouch for: what it held then is not proved"
        yield _at(table, 0, "unanchored", text, error=False)


def _file_findings(table: LineTable, blobs: Path) -> Iterator[Finding]:
    for name, line in table.named.items():
        path = blob_path(blobs, name)
        seen = hashlib.sha256()
        try:
            for block in disk.read_blocks(path):
                seen.update(block)
        except (FileMissing, PersistenceError) as error:
            yield _at(table, line, "missing_file", f"{error}; restore it from a backup")
        else:
            if seen.hexdigest() != name:
                yield _at(table, line, "edited", f"{path} has other bytes than its name says; restore it from a backup")


def _context_lines(path: Path) -> dict[int, int]:
    """The sums of the lines in a context file, by which they are found in the ledger; for each its number."""
    try:
        first, *lines = disk.read(path).split(b"\n")
        loads(first)
    except (FileMissing, PersistenceError):
        return {}
    except ValueError:
        return {_NO_SUM: 1}
    # The last one is empty, or torn by a crash.
    return {short_sum(digest(raw)): number for number, raw in enumerate(lines[:-1], 2)}


def _context_finding(number: int) -> Finding:
    wrong = "is no line of the ledger" if number > 1 else "cannot be read"
    text = f"line {number} of the context file {wrong}; the next call, or repair, makes it anew"
    return Finding("context", 1, 0, False, text)
