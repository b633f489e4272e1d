"""One conversation in memory: its active lines since the boundary, and what is asked of them all the time.

Taking in a line costs what the line costs, however long the conversation is. Only a new boundary,
which makes it short, goes over all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.sessions.ledger.answers import Answered, AskedBefore, stopped_at
from harness.sessions.ledger.reading import Loaded
from harness.sessions.lines.digest import binding_digest
from harness.sessions.lines.entries import Entry, EntryDict, Position
from harness.sessions.view.projection import View
from harness.sessions.view.running import RunningView
from harness.sessions.view.turns import boundary_of, committed_requests, is_directive, is_settled, newest_boundary

__all__ = ["Conversation"]

_MessageKey = tuple[str, bool]
_REQUESTS = frozenset({"request_begin", "request_end"})


@dataclass(slots=True)
class _Bracket:
    """A compaction whose beginning was logged; `done` once its boundary was."""

    data: EntryDict
    done: bool = False


class Conversation:
    """Lines come in one by one with `append`; everything else is derived from them."""

    def __init__(self) -> None:
        self.reset(Loaded())

    def reset(self, loaded: Loaded) -> None:
        """Take over what a reader found."""
        self.path: list[Entry] = list(loaded.path)
        self.boundary: Position = loaded.boundary
        self.written: set[str] = loaded.written
        self.turn: str | None = next((entry.id for entry in reversed(loaded.path) if is_directive(entry)), None)
        self.bracket: _Bracket | None = None
        self.carded: set[str] = set()
        self._newest = newest_boundary(loaded.path)
        self._committed = committed_requests(loaded.path)
        self._ids: tuple[dict[str, Entry], dict[str, Entry]] = ({}, {})  # of whole messages, and of partial ones
        self._made: dict[str, list[_MessageKey]] = {}
        self._bindings: dict[str, str] = {}
        self._by_digest: dict[str, str] = {}
        self._states: dict[str, Any] = {}
        self._asked = AskedBefore(self._newest)
        self._running = RunningView(self.path, self._newest, self._committed)
        self._learn(loaded.path)

    def append(self, entry: Entry) -> None:
        """Take in a line of the active path."""
        if entry.kind == "compaction" and newest_boundary([entry]):
            self._absorb_boundary(entry)
        else:
            self.path.append(entry)
            self._running.take(self.path)
            self._note(entry)

    def view(self) -> View:
        """What the model sees now."""
        return self._running.view(self.path)

    def entry_of(self, message_id: str, partial: bool = False) -> Entry | None:
        """The line that holds a message, if one does since the boundary.

        What a request left that failed, or that never ended, does not stand in the way of the next one.
        """
        return self._ids[partial].get(message_id)

    def binding_digest(self, entry_id: str) -> str | None:
        """The digest of a binding logged since the boundary."""
        return self._bindings.get(entry_id)

    def binding_of(self, digest: str) -> str | None:
        """The newest binding since the boundary with this digest."""
        return self._by_digest.get(digest)

    def states(self) -> dict[str, Any]:
        """The newest value of each state module, by its name."""
        return dict(self._states)

    def answered(self, key: str) -> Answered | None:
        """The turn of the prompt with this idempotency key, if it was sent since the boundary."""
        asked = self._asked.since(key)
        if asked is None:
            return None
        turn = next((turn for turn in reversed(self.view().turns) if asked.id in turn.entry_ids), None)
        return Answered(asked.id, turn, stopped_at(self.path, turn)) if turn else None

    def asked_at(self, key: str) -> int | None:
        """Where the prompt with this idempotency key may stand that lies before the boundary: its first byte."""
        return self._asked.before(key)

    def keys(self) -> dict[str, int]:
        """What the next boundary says of idempotency keys, so that they are known behind it."""
        return self._asked.for_boundary()

    def settled(self, entries: Sequence[Entry]) -> list[Entry]:
        """Those that belong into the context file: the newest boundary and the messages that count."""
        return [entry for entry in entries if self.is_settled(entry)]

    def is_settled(self, entry: Entry) -> bool:
        """Whether a line belongs into the context file."""
        return entry is self._newest or is_settled(entry.data, self._committed)

    def _learn(self, path: Sequence[Entry]) -> None:
        """Take in lines all of which were read: what `_note` makes of one after the other, known at once."""
        # Whoever made the other requests is gone: what they left without an end is no answer.
        answered = {*self._committed, None}
        for entry in path:
            data = entry.data
            if entry.kind == "message":
                partial = "partial" in data and bool(data["partial"])
                if partial or data.get("requestId") in answered or data.get("via") != "model":
                    self._ids[partial].setdefault(data["message"]["id"], entry)
                if "idempotencyKey" in data:
                    self._asked.note(entry)
            elif entry.kind not in _REQUESTS:
                self._note(entry)

    def _note(self, entry: Entry) -> None:
        match entry.kind:
            case "request_begin":
                return
            case "message":
                self._note_message(entry)
            case "request_end":
                self._note_end(entry.data)
            case "binding" if self._newest is None or entry.seq > self._newest.seq:
                self._bindings[entry.id] = digest = binding_digest(entry.data)
                self._by_digest[digest] = entry.id
            case "state" if "module" in entry.data:
                self._states[str(entry.data["module"])] = entry.data.get("value")
            case "event":
                self._note_event(entry.data)
            case "turn_card":
                self.carded.add(str(entry.data.get("turn")))
            case "compaction" if self.bracket:
                self.bracket.done = True

    def _note_message(self, entry: Entry) -> None:
        data = entry.data
        if is_directive(entry):
            self.turn = entry.id
        if "idempotencyKey" in data:
            self._asked.note(entry)
        key = message_id, partial = data["message"]["id"], bool(data.get("partial"))
        known = self._ids[partial].get(message_id)
        if known is None or self._is_undecided(known, key):
            self._ids[partial][message_id] = entry
            request = data.get("requestId")
            if request is not None and request not in self._committed and not partial and data.get("via") == "model":
                self._made.setdefault(request, []).append(key)

    def _is_undecided(self, entry: Entry, key: _MessageKey) -> bool:
        return key in self._made.get(str(entry.data.get("requestId")), ())

    def _note_end(self, data: EntryDict) -> None:
        request = str(data.get("requestId"))
        if data.get("status") == "completed":
            self._committed.add(request)
            self._made.pop(request, None)
        else:
            self._forget_output(request)

    def _forget_output(self, request: str) -> None:
        for message_id, partial in self._made.pop(request, ()):
            known = self.entry_of(message_id, partial)
            if known is not None and known.data.get("requestId") == request:
                del self._ids[partial][message_id]

    def _note_event(self, data: EntryDict) -> None:
        if data.get("kind") == "compaction_begin":
            self.bracket = _Bracket(data)
        elif data.get("kind") == "compaction_end":
            self.bracket = None

    def _absorb_boundary(self, entry: Entry) -> None:
        """Forget what a reader that begins at the new boundary would not see either."""
        path = [*self.path, entry]
        boundary, bracket = boundary_of(path), self.bracket
        self.reset(Loaded(path=[known for known in path if known.seq >= boundary.seq], boundary=boundary))
        if bracket:
            self.bracket = _Bracket(bracket.data, done=True)
