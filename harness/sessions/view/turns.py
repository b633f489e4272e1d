"""Turns: from the lines of the active path to what was said, directive by directive.

A turn is one directive of a person up to the final answer. What opens a turn is decided by
fields, never by text: a message of role `user`, `via` user or repair, not partial, that brings no
tool result. Messages before the first directive form a turn of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.messages import MessageDict
from harness.sessions.lines.entries import START, Entry, EntryDict, Position
from harness.sessions.view.truncating import ARGUMENTS_CUT, cut_arguments

__all__ = [
    "FRAMES",
    "PASSING",
    "SAYING",
    "SUMMARY_MARK",
    "Draft",
    "Step",
    "blocks_of",
    "boundary_of",
    "build_turns",
    "closes_commit",
    "committed_requests",
    "is_boundary",
    "is_directive",
    "is_settled",
    "is_summary",
    "message_of",
    "newest_boundary",
    "opens_turn",
    "opens_view",
]

_ROLES = ("user", "assistant", "tool", "system")
# Tuples, since a damaged line may say anything, also what cannot be looked up in a set.
_DIRECTING = ("user", "repair")
SAYING = ("message", "request_begin")
"""The types of lines with which a conversation goes on."""
PASSING = ("hook", "steer")
"""What they put in is shown while its turn is open."""
_DOUBTFUL = ("model", "summary")
"""What they put in does not always count."""
_MARKS = frozenset({"event", "compaction"})
"""The types of lines that say something about the turns before them."""
SUMMARY_MARK = "contextSummary"
"""In `meta` of the message that stands for a summary; never decided by the text."""
FRAMES = frozenset({"context_summary", "turns"})
"""The tags around what stands for turns; nothing that stands there can open or close one."""


@dataclass(slots=True)
class Step:
    """An assistant message with tool calls, and for each answered call the block and the message it came in."""

    message: MessageDict
    calls: tuple[str, ...]
    results: dict[str, tuple[EntryDict, MessageDict]] = field(default_factory=dict)


@dataclass(slots=True)
class Draft:
    """A turn while it is built: its messages without results, and the entry ids of all.

    Of a message that is more than itself its index says what: `steps` where it asks for tools, `passing` who put it
    there where it is visible only while the turn is open.
    """

    id: str
    messages: list[MessageDict] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    steps: dict[int, Step] = field(default_factory=dict)
    passing: dict[int, str] = field(default_factory=dict)
    aborted: bool = False

    @property
    def answered(self) -> bool:
        """Whether its last message, passing ones included, is an assistant's that asks for no tool."""
        messages = self.messages
        return bool(messages) and messages[-1]["role"] == "assistant" and len(messages) - 1 not in self.steps


def blocks_of(message: MessageDict, kind: str) -> list[EntryDict]:
    """The blocks of one type, in order."""
    content = message.get("content")
    found: list[EntryDict] = []
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == kind:
            found.append(block)  # noqa: PERF401 - asked of every message: a comprehension is one more call
    return found


def message_of(data: EntryDict) -> MessageDict | None:
    """The message of an entry; None for other entries, and for what is no message, as damage may leave it."""
    if data.get("type") != "message":
        return None
    message = data.get("message")
    return message if isinstance(message, dict) and message.get("role") in _ROLES else None


def is_summary(message: MessageDict) -> bool:
    """Whether a message is the summary of what lies before a boundary."""
    meta = message.get("meta")
    return isinstance(meta, dict) and meta.get(SUMMARY_MARK) is True


def opens_turn(data: EntryDict) -> bool:
    """Whether an entry is a directive."""
    if data.get("via") not in _DIRECTING or data.get("type") != "message" or data.get("partial"):
        return False
    message = data.get("message")
    return isinstance(message, dict) and message.get("role") == "user" and not blocks_of(message, "toolResult")


def is_directive(entry: Entry) -> bool:
    """Whether a line opens a turn; each is asked several times while a conversation is read."""
    if entry.kind != "message":
        return False
    if entry.refers:
        return opens_turn(entry.data)  # it changes when its files are put back in
    if entry.opens is None:
        entry.opens = opens_turn(entry.data)
    return entry.opens


def committed_requests(entries: Iterable[Entry]) -> set[str]:
    """The ids of requests that completed: only their output is part of the conversation."""
    return {
        str(entry.data.get("requestId"))
        for entry in entries
        if entry.kind == "request_end" and entry.data.get("status") == "completed"
    }


def closes_commit(data: EntryDict) -> bool:
    """Whether a line is synced, and has its anchor, before anything more is said."""
    kind = data.get("type")
    return kind == "turn_card" or (kind == "request_end" and data.get("status") == "completed")


def is_settled(data: EntryDict, committed: set[str]) -> bool:
    """Whether an entry is a message that counts.

    Not partial; if a model made it, its request completed; and no part of a request beside the
    conversation (`via` summary), unless it is a summary that came back from a snapshot.
    """
    message = data.get("message")
    if data.get("type") != "message" or not isinstance(message, dict) or message.get("role") not in _ROLES:
        return False
    return ("partial" not in data and data.get("via") not in _DOUBTFUL) or _counts(data, message, committed)


def _counts(data: EntryDict, message: MessageDict, committed: set[str]) -> bool:
    if data.get("partial"):
        return False
    via = data.get("via")
    if via == "model":
        return message["role"] != "assistant" or "requestId" not in data or data["requestId"] in committed
    return via != "summary" or is_summary(message)


def newest_boundary(path: Sequence[Entry]) -> Entry | None:
    """The newest compaction before which a reader need not look, kept turns aside."""
    for entry in reversed(path):
        if entry.kind == "compaction" and is_boundary(entry):
            return entry
    return None


def is_boundary(entry: Entry) -> bool:
    """Whether a line is a compaction before which a reader need not look."""
    return entry.kind == "compaction" and entry.data.get("boundary") is True


def opens_view(data: EntryDict) -> bool:
    """Whether a view that is not the whole conversation may begin with this entry."""
    return data["type"] == "compaction" or (data["type"] == "message" and opens_turn(data))


def boundary_of(path: Sequence[Entry]) -> Position:
    """The first line a reader must read to see what the model sees.

    That is the opening message of the first turn that the newest boundary keeps, which lies before
    it; the boundary's own line where it keeps none; the beginning where there is no boundary.
    """
    boundary = newest_boundary(path)
    if boundary is None:
        return START
    starts = [entry for entry in path if is_directive(entry) and entry.seq < boundary.seq]
    after = _after(boundary.data.get("lastTurn"), [entry.id for entry in starts])
    return starts[after].position if after < len(starts) else boundary.position


def _after(last_turn: Any, turns: Sequence[str]) -> int:
    """The index of the first kept turn: where the last summarised one is not in sight, all are."""
    return turns.index(last_turn) + 1 if last_turn in turns else 0


def build_turns(path: Sequence[Entry], boundary: Entry | None, committed: set[str] | None = None) -> list[Draft]:
    """The turns that the newest boundary keeps, results joined to their calls.

    `committed` are the requests that completed, where those of the path are known.
    """
    builder = _Builder(committed_requests(path) if committed is None else committed)
    for entry in path:
        if entry.kind == "message":
            builder.add_message(entry)
        elif entry.kind in _MARKS:
            builder.add_mark(entry)
    turns = builder.turns
    return turns[_after(boundary.data.get("lastTurn"), [turn.id for turn in turns]) :] if boundary else turns


class _Builder:
    """One pass over the path; it exists to carry which calls wait for a result."""

    def __init__(self, committed: set[str]) -> None:
        self.turns: list[Draft] = []
        self._committed = committed
        self._waiting: dict[str, Step] = {}

    def add_message(self, entry: Entry) -> None:
        data = entry.data
        message, via = data.get("message"), data.get("via")
        if not isinstance(message, dict):
            return
        is_answer = via == "model" and data.get("requestId") in self._committed  # as nearly all that a model said
        if ((via in _DOUBTFUL and not is_answer) or "partial" in data) and not _counts(data, message, self._committed):
            return
        role = message["role"]
        if role == "user" and is_directive(entry):
            self.turns.append(Draft(entry.id, [message], [entry.id]))
            return
        if not self.turns:
            self.turns.append(Draft(entry.id))
        turn = self.turns[-1]
        if role != "assistant":
            message = self._take_results(message)
        elif data.get("turnId", turn.id) != turn.id and turn.answered:
            # An answer of another turn, whose directive cannot be read. It is left out: two answers in a row
            # are refused, and the first one was not about what the second one answers.
            return
        elif calls := blocks_of(message, "toolUse"):
            turn.steps[len(turn.messages)] = self._step(message, calls)
        turn.ids.append(entry.id)
        if message:
            if via in PASSING:
                turn.passing[len(turn.messages)] = via
            turn.messages.append(message)

    def add_mark(self, entry: Entry) -> None:
        kind, data = entry.kind, entry.data
        if kind == "event" and data.get("kind") == "abort":
            self._abort(data.get("turnId"))
        elif kind == "event" and data.get("kind") == ARGUMENTS_CUT:
            self._cut_arguments(data.get("data"))
        elif kind == "compaction" and data.get("keepsOpenTurn"):
            self._forget_steps()

    def _step(self, message: MessageDict, calls: Iterable[EntryDict]) -> Step:
        step = Step(message, tuple(dict.fromkeys(str(call.get("id")) for call in calls)))
        # An id used again by a later message means the later call.
        self._waiting.update(dict.fromkeys(step.calls, step))
        return step

    def _take_results(self, message: MessageDict) -> MessageDict | None:
        """Give each result to its call, the first one only; what is left of the message, or None."""
        results = blocks_of(message, "toolResult")
        if not results:
            return None if message["role"] == "tool" else message
        for block in results:
            call = str(block.get("id"))
            if step := self._waiting.get(call):
                step.results.setdefault(call, (block, message))
        if message["role"] == "tool":
            return None
        rest = [block for block in message["content"] if block not in results]
        return {**message, "content": rest} if rest else None

    def _abort(self, turn_id: Any) -> None:
        for turn in reversed(self.turns):
            if turn_id in (None, turn.id):
                turn.aborted = True
                return

    def _cut_arguments(self, rule: Any) -> None:
        """Show the calls of all turns up to one with short arguments."""
        ids = [turn.id for turn in self.turns]
        last = rule.get("lastTurn") if isinstance(rule, dict) else None
        for turn in self.turns[: _after(last, ids)]:
            turn.messages = [cut_arguments(message, rule) for message in turn.messages]

    def _forget_steps(self) -> None:
        """A boundary within an open turn keeps what opened it and what follows the boundary."""
        if self.turns:
            turn = self.turns[-1]
            del turn.messages[1:]
            turn.steps = {index: step for index, step in turn.steps.items() if index == 0}
            turn.passing = {index: via for index, via in turn.passing.items() if index == 0}
        self._waiting.clear()
