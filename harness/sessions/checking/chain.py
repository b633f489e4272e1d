"""What is wrong with the lines of a ledger, told from their numbers and links.

Each line names its number and the digest of the bytes before it. Comparing goes on behind every
damage, so that one bad line hides nothing that follows it.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.sessions.checking.findings import Finding, Kind, missing_lines
from harness.sessions.checking.line_table import LineTable

__all__ = ["chain_findings"]

_RESTORE = "restore the ledger from a backup if you need it"


def chain_findings(table: LineTable) -> list[Finding]:
    """What the links show, in the order of the lines; none if every line stands where and as it was written.

    The end is not protected by a link: an edited or missing last line shows only against the anchor.
    """
    found: dict[tuple[str, int], Finding] = {}
    for finding in _Chain(table).findings() if table.breaks else ():
        found.setdefault((finding.kind, finding.line), finding)
    # Where lines are not where they were written, what they follow cannot be either.
    wrong = [] if any(finding.error for finding in found.values()) else _wrong_tree(table)
    return sorted([*found.values(), *wrong], key=lambda finding: finding.line)


def _wrong_tree(table: LineTable) -> Iterator[Finding]:
    """Lines that are linked as they must be and yet cannot have been written here: the tree they make is none."""
    if not table.grown:
        first: dict[int, int] = {}
        for line, number in enumerate(table.ids):
            if number and (known := first.setdefault(number, line)) != line:
                text = f"it has the id of line {known + 1}; {_RESTORE}"
                yield Finding("doubled", line + 1, table.starts[line], True, text)
    places = table.places_of_parents()
    for line, parent in table.parents.items():
        if (place := places.get(parent, -1)) >= line:
            text = f"it names line {place + 1}, which is not before it, as the one it goes on from; {_RESTORE}"
            yield Finding("reordered", line + 1, table.starts[line], True, text)


class _Chain:
    """One look at a ledger that is not whole; it exists to carry where each line can be found."""

    def __init__(self, table: LineTable) -> None:
        self._table = table
        self._where: dict[int, int] = {}
        self._doubled: list[int] = []
        for line, line_sum in enumerate(table.sums):
            if self._where.setdefault(line_sum, line) != line and table.readable(line):
                self._doubled.append(line)
        self._resumed = {at: line for line in table.breaks if (at := self._predecessor(line)) is not None}
        """For a line after which others were put in: where what belongs behind it goes on."""

    def findings(self) -> Iterator[Finding]:
        doubled = set(self._doubled)
        for line in self._doubled:
            yield self._finding("doubled", line, f"it is line {self._where[self._table.sums[line]] + 1} once more")
        for line in self._table.breaks:
            if not self._table.readable(line):
                yield from self._unreadable(line)
            elif line not in doubled:
                yield from self._break(line)

    def _finding(self, kind: Kind, line: int, text: str, *, error: bool = True) -> Finding:
        advice = f"; {_RESTORE}" if error else ""
        return Finding(kind, line + 1, self._table.starts[line], error, text + advice)

    def _predecessor(self, line: int) -> int | None:
        """Where the line is that this one was written behind; None if it is not in the file."""
        link = self._table.links[line]
        return self._where.get(link) if link else None

    def _unreadable(self, line: int) -> Iterator[Finding]:
        table = self._table
        follower = line + 1
        if follower == len(table):
            yield from self._unreadable_end(line)
        elif table.linked[follower]:
            if not table.blank[line]:
                yield self._finding("torn", line, "cut short by a crash; the line after it goes on", error=False)
        elif not table.readable(follower) and not table.links[follower]:
            yield self._finding("torn", line, "cut short, and so is the line after it", error=False)
        elif (start := self._resumed_over(line)) is not None:
            yield self._finding("foreign", line, f"inserted: what was written behind line {start + 1} comes after it")
        else:
            yield self._finding("edited", line, "unreadable, and not what the next line was written behind")

    def _unreadable_end(self, line: int) -> Iterator[Finding]:
        if not self._table.ended:
            yield self._finding(
                "torn", line, "an incomplete tail: a crash, or a writer at work; the next writer goes on", error=False
            )
        elif not self._table.blank[line]:
            yield self._finding("edited", line, "unreadable, and no crash leaves a whole line so")

    def _resumed_over(self, line: int) -> int | None:
        """The readable line before a run of unreadable ones, if what belongs behind it follows the run."""
        while line >= 0 and not self._table.readable(line):
            line -= 1
        return line if line in self._resumed else None

    def _break(self, line: int) -> Iterator[Finding]:
        table = self._table
        seq, before = table.seqs[line], self._predecessor(line)
        if table.linked[line] and (line > 0 or seq == 1):
            yield self._finding("edited", line, f"it says that it is line {seq}, and its place is another")
        elif before is not None and before > line:
            yield self._finding("reordered", line, f"it was written behind what is line {before + 1} here")
        elif before is not None:
            yield from self._behind_another(line, before)
        elif table.links[line] == 0:
            yield self._without_link(line)
        elif line > 0 and table.place_is_right(line):
            yield from self._before_edited(line)
        else:
            yield self._out_of_place(line)

    def _behind_another(self, line: int, before: int) -> Iterator[Finding]:
        """What lies between tells of itself, unless it is a second continuation."""
        if before + 1 < line and self._table.linked[before + 1]:
            text = f"it was written behind line {before + 1}, like line {before + 2}: two histories in one file"
            yield self._finding("foreign", line, text)

    def _without_link(self, line: int) -> Finding:
        if line > 0 and self._table.seqs[line] == 1:
            return self._finding("foreign", line, "the first line of another ledger")
        return self._finding("edited", line, "it does not say what it was written behind")

    def _before_edited(self, line: int) -> Iterator[Finding]:
        if self._table.readable(line - 1):
            yield self._finding("edited", line - 1, f"line {line + 1} was written behind other bytes")

    def _out_of_place(self, line: int) -> Finding:
        """Something else was behind it, which is not in the file: it is from elsewhere, or lines are missing."""
        goes_on = self._resumed.get(line - 1)
        if goes_on is not None and goes_on > line:
            lines = f"lines {line + 1} to {goes_on}" if goes_on > line + 1 else "it"
            return self._finding("foreign", line, f"{lines} inserted; what belongs behind line {line} comes after")
        seq, last = self._table.seqs[line], self._last_number(line)
        if seq > last + 1:
            return self._finding("gap", line, f"{missing_lines(last + 1, seq - 1)} before it")
        text = f"it says that it is line {seq}, and was written behind no line of this file"
        return self._finding("foreign", line, text)

    def _last_number(self, line: int) -> int:
        """The number that the line before has or, where it is unreadable, should have."""
        back = line - 1
        while back >= 0 and not self._table.readable(back):
            back -= 1
        return (self._table.seqs[back] if back >= 0 else 0) + line - 1 - back
