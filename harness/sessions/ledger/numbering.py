"""The number of a turn: its place among the turns of the active path, from 1, since the session began.

A boundary says in `turns` how many turns lie before the first one it keeps, so that nobody need
read those to number the others. Boundaries of older versions do not; `count_turns` counts once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from harness.sessions.ledger.reading import active_path
from harness.sessions.lines.entries import Entry
from harness.sessions.lines.layout import SessionFiles
from harness.sessions.lines.skimming import skim
from harness.sessions.view.projection import Turn, project_turns
from harness.sessions.view.turns import is_directive, newest_boundary

__all__ = ["count_turns", "number_turns", "openers", "turns_before", "whole_turns"]

_SAID = frozenset({"message", "request_end"})


def turns_before(boundary: Entry | None) -> int | None:
    """How many turns lie before the first one that this boundary keeps; None where it does not say."""
    if boundary is None:
        return 0
    turns = boundary.data.get("turns")
    return turns if type(turns) is int and turns >= 0 else None


def openers(path: Iterable[Entry]) -> set[str]:
    """The ids of the directives in a path, for `number_turns`."""
    return {entry.id for entry in path if is_directive(entry)}


def number_turns(turns: Sequence[Turn], before: int, opened: Collection[str]) -> dict[str, int]:
    """The number of each of these consecutive turns, by its id; `before` lie before the first one.

    What stands before the first directive of a session is a turn of its own; where it stands
    behind a boundary that kept no turn, it belongs to the turn before that.
    """
    numbers: dict[str, int] = {}
    number = before
    for turn in turns:
        if number == 0 or turn.id in opened:
            number += 1
        numbers[turn.id] = number
    return numbers


def whole_turns(path: Sequence[Entry], *, closed: bool = False) -> tuple[Turn, ...]:
    """The turns of a path with everything that was said in them, whatever boundaries hide or shorten.

    The last turn is open where nothing closed it, unless `closed` says that a directive follows; of the
    others, what hooks and steering put in is left out.
    """
    said = [entry for entry in path if entry.kind in _SAID or _is_abort(entry)]
    return project_turns(said, None, closed=closed)


def count_turns(files: SessionFiles, boundary_id: str) -> int:
    """How many turns lie before the first one that the boundary in this line keeps, in a worker.

    Reads the whole ledger, for boundaries without `turns`. 0 where the line is not found.
    """
    entries, _, _ = skim(files.ledger)
    index = next((index for index, entry in enumerate(entries) if entry.id == boundary_id), None)
    return 0 if index is None else _count(active_path(entries[: index + 1], damaged=True) or [])


def _count(path: Sequence[Entry]) -> int:
    """The turns up to the last one that the boundary at the end of this path has summarised."""
    turns = whole_turns(path)
    numbers = number_turns(turns, 0, openers(path))
    for entry in reversed(path):
        boundary = newest_boundary([entry])
        if boundary and (number := numbers.get(str(boundary.data.get("lastTurn")))) is not None:
            return number
    return 0


def _is_abort(entry: Entry) -> bool:
    return entry.kind == "event" and entry.data.get("kind") == "abort"
