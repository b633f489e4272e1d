"""Where the view begins, from the little that a `LineTable` keeps of each line: what `boundary_of` says of a path."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from harness.sessions.checking.line_table import LineTable

__all__ = ["view_start"]


def view_start(table: LineTable, end: int) -> int:
    """The line, from 0, with which the view of a writer begins whose newest line is `end`; of a ledger without errors.

    The first turn that the newest boundary before it keeps; the boundary's line where it keeps none; else the first.
    """
    path = [*_spans(table, end)]
    boundary = next(_among(path, [*table.boundaries]), None)
    if boundary is None:
        return 0
    start, last_turn = boundary, table.boundaries[boundary]
    before = [(first, min(last, boundary - 1)) for first, last in path]
    for line in _among(before, table.directives):
        if table.ids[line] == last_turn:
            break
        start = line
    return start


def _spans(table: LineTable, end: int) -> Iterator[tuple[int, int]]:
    """The lines that lead to `end`, as the first and the last of those that follow each other; from the newest on."""
    places, turns_off = table.places_of_parents(), [*table.parents]
    while end >= 0:
        at = bisect_right(turns_off, end) - 1
        first = turns_off[at] if at >= 0 else 0
        yield first, end
        parent = places.get(table.parents[first], -1) if first else -1
        # A parent that is not before it, or not there, was lost; the line before stands in for it.
        end = parent if 0 <= parent < first else first - 1


def _among(spans: list[tuple[int, int]], lines: list[int]) -> Iterator[int]:
    """Those of the lines that lie in the spans, from the newest on."""
    for first, last in spans:
        yield from reversed(lines[bisect_left(lines, first) : bisect_right(lines, last)])
