"""The view of a conversation that grows: turns that have closed are not projected again.

It is exactly what `project` gives for the whole path. A line that speaks of an older turn (a late
result, an abort, the end of an older request) makes it start over; such lines are rare.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.messages import MessageDict
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
        self._empty = make_view((), boundary)
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
            turns = (*kept, *project_turns(path[start:], self._boundary))
            # The summary's message stays the same object too, so that nobody goes over it again.
            self._view = View(turns, self._empty.summary, self._empty.summary_message)
        return self._view

    def _close(self, path: Sequence[Entry]) -> None:
        """A directive at the end of the path closes every turn before it."""
        end = len(path) - 1
        seen = self._view.turns[len(self._kept) :] if self._view else ()
        if self._whole:
            self._kept = list(project_turns(path[:end], self._boundary, closed=True))
        elif seen and all(turn.closed for turn in seen):
            self._kept.extend(seen)  # closed as they were, they are what they would be now
        else:
            self._kept.extend(project_turns(path[self._start : end], self._boundary, closed=True))
        self._start, self._own, self._whole = end, set(), False

    def _note(self, entry: Entry, opener: Entry) -> None:
        data = entry.data
        message = message_of(data) if entry.kind == "message" else None
        if entry.kind == "request_begin":
            self._own.add(entry.id)
        elif message:
            self._own.update(_ids(message, "toolUse"))
        older_turn = data.get("turnId") not in (None, opener.id)
        request = data.get("requestId")
        elsewhere = request is not None and str(request) not in self._own
        elsewhere = elsewhere or bool(message and not self._own.issuperset(_ids(message, "toolResult")))
        self._whole = self._whole or older_turn or elsewhere


def _ids(message: MessageDict, kind: str) -> Iterable[str]:
    """The ids by which calls and their results find each other."""
    return [str(block.get("id")) for block in blocks_of(message, kind)]
