"""The view of a conversation that grows: turns that have closed are not projected again.

It is exactly what `project` gives for the whole path. A line that speaks of an older turn (a late
result, an abort, the end of an older request) makes it start over; such lines are rare.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.sessions.entries import Entry
from harness.sessions.projection import Turn, View, make_view, project_turns
from harness.sessions.turns import blocks_of, is_directive, message_of

__all__ = ["RunningView"]

_SEEN = frozenset({"message", "request_end", "event", "compaction"})
"""The types of lines that can change what is seen."""


class RunningView:
    """Keeps the turns before the newest directive, and projects what follows it.

    The path must begin where its newest boundary says, so that it holds no turn that is cut off.
    """

    def __init__(self, path: Sequence[Entry], boundary: Entry | None) -> None:
        self._boundary = boundary
        self._start = next((i for i in range(len(path) - 1, -1, -1) if is_directive(path[i])), 0)
        self._kept: list[Turn] = list(project_turns(path[: self._start], boundary, closed=True))
        self._own: set[str] = set()
        self._whole = False
        self._view: View | None = None
        for entry in path[self._start :]:
            self._note(entry, path[self._start])

    def take(self, path: Sequence[Entry]) -> None:
        """Take in the last line of the path; all before it were taken in earlier."""
        if is_directive(path[-1]):
            self._close(path)
        self._note(path[-1], path[self._start])
        if path[-1].kind in _SEEN:
            self._view = None

    def view(self, path: Sequence[Entry]) -> View:
        """The view of the path, all of whose lines were taken in."""
        if self._view is None:
            kept, start = ([], 0) if self._whole else (self._kept, self._start)
            self._view = make_view([*kept, *project_turns(path[start:], self._boundary)], self._boundary)
        return self._view

    def _close(self, path: Sequence[Entry]) -> None:
        """A directive at the end of the path closes every turn before it."""
        end = len(path) - 1
        if self._whole:
            self._kept = list(project_turns(path[:end], self._boundary, closed=True))
        else:
            self._kept.extend(project_turns(path[self._start : end], self._boundary, closed=True))
        self._start, self._own, self._whole = end, set(), False

    def _note(self, entry: Entry, opener: Entry) -> None:
        self._own.update(_names(entry))
        older_turn = entry.data.get("turnId") not in (None, opener.id)
        self._whole = self._whole or older_turn or not self._own.issuperset(_referred(entry))


def _names(entry: Entry) -> Iterable[str]:
    """The ids that later lines may refer to: of a request, of tool calls."""
    if entry.kind == "request_begin":
        return [entry.id]
    message = message_of(entry.data)
    return [str(call.get("id")) for call in blocks_of(message, "toolUse")] if message else []


def _referred(entry: Entry) -> Iterable[str]:
    """The ids that a line refers to."""
    message = message_of(entry.data)
    results = [str(result.get("id")) for result in blocks_of(message, "toolResult")] if message else []
    request = entry.data.get("requestId")
    return results if request is None else [*results, str(request)]
