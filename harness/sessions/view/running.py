"""The view of a conversation that grows: turns that have closed are not projected again.

It is exactly what `project` gives for the whole path. A line that speaks of an older turn (a late
result, an abort, the end of an older request) makes it start over; such lines are rare.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.messages import MessageDict
from harness.sessions.lines.entries import Entry
from harness.sessions.view.projection import Turn, View, make_view, project_turns
from harness.sessions.view.turns import is_directive

__all__ = ["RunningView"]

_SEEN = frozenset({"message", "request_end", "event", "compaction"})
"""The types of lines that can change what is seen."""


class RunningView:
    """Keeps the turns before the newest directive, and projects what follows it.

    The path must begin where its newest boundary says, so that it holds no turn that is cut off. `committed` are the
    requests in it that completed; whoever takes in lines keeps it up to date.
    """

    def __init__(self, path: Sequence[Entry], boundary: Entry | None, committed: set[str]) -> None:
        self._boundary = boundary
        self._empty = make_view((), boundary)
        self._committed = committed
        self._start = next((i for i in range(len(path) - 1, -1, -1) if is_directive(path[i])), 0)
        kept = project_turns(path[: self._start], boundary, closed=True, committed=committed)
        self._kept: list[Turn] = list(kept)
        self._own: set[str] = set()
        self._whole = False
        self._view: View | None = None
        for entry in path[self._start :]:
            self._note(entry, path[self._start])

    def take(self, path: Sequence[Entry]) -> None:
        """Take in the last line of the path; all before it were taken in earlier."""
        entry = path[-1]
        kind = entry.kind
        if kind == "message" and is_directive(entry):
            self._close(path)
        self._note(entry, path[self._start])
        if kind in _SEEN:
            self._view = None

    def view(self, path: Sequence[Entry]) -> View:
        """The view of the path, all of whose lines were taken in."""
        if self._view is None:
            kept, start = ([], 0) if self._whole else (self._kept, self._start)
            turns = (*kept, *project_turns(path[start:], self._boundary, committed=self._committed))
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
        if entry.kind == "request_begin":
            self._own.add(entry.id)
        turn, request = entry.data.get("turnId"), entry.data.get("requestId")
        is_late = (turn is not None and turn != opener.id) or (request is not None and str(request) not in self._own)
        if is_late or (entry.kind == "message" and not self._answers_own_calls(entry.data["message"])):
            self._whole = True

    def _answers_own_calls(self, message: MessageDict) -> bool:
        """Whether the results in a message are of calls of this turn; those it makes itself are taken in first."""
        content = message.get("content")
        answered = []
        for block in content if isinstance(content, list) else ():
            # Calls and their results find each other by these ids.
            kind = block.get("type") if isinstance(block, dict) else None
            if kind == "toolUse":
                self._own.add(str(block.get("id")))
            elif kind == "toolResult":
                answered.append(str(block.get("id")))
        return self._own.issuperset(answered)
