"""What one request showed the model, beside everything that was logged by then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from harness.errors import SessionNotFound
from harness.messages import MessageDict
from harness.sessions.ledger.reading import active_path
from harness.sessions.lines.entries import Entry
from harness.sessions.selection.context_at import ContextAt, context_of
from harness.viewer.bounds import bounded
from harness.viewer.ledgers import Lines
from harness.viewer.rows import Row, row_of
from harness.viewer.selection import Choice, Form, choices_of

__all__ = ["Logged", "Seen", "seen_by"]

_KINDS = {"user": "prompt", "assistant": "answer", "tool": "orphan"}
_NAMES = {
    "hook": "Hook, for the model",
    "steer": "You, while it worked",
    "repair": "Repair",
    "summary": "Request for a summary",
    "tool": "Results",
}

_NAMED: Mapping[Form, str] = {
    "cards": "Turns, a line each",
    "packet": "Summary of earlier turns",
    "gap": "Turns that are not shown",
}
_NONE: Mapping[str, str] = {}

T = TypeVar("T")


class Logged(NamedTuple):
    """A line of the conversation, and whether the request showed it, by itself or as a part of a message.

    how   for the line that opens a turn: in which other form a selection showed the turn; empty for none
    """

    row: Row
    sent: bool
    how: str = ""


class _Line(NamedTuple):
    """A line of the conversation before it is made a row."""

    entry: Entry
    message: MessageDict
    sent: bool
    how: str


@dataclass(frozen=True, slots=True)
class Seen:
    """A request. `choices` are its selection, where it did not show all of the conversation since the boundary.

    sent    of its messages those that stand on the page
    log     of the lines those that stand beside them
    counts  how many messages and lines there are in all
    marks   of each line of another part its turn's key, empty for one without a turn, and whether it was sent
    """

    at: str
    policy: str
    choices: Sequence[Choice]
    context: ContextAt
    sent: Sequence[Row]
    log: Sequence[Logged]
    counts: tuple[int, int]
    marks: Sequence[tuple[str, bool]]


def seen_by(ledger: Lines, request_id: str, start: int = 0, most: int | None = None, marks: int | None = None) -> Seen:
    """The request of that id, with the `most` messages and lines in front of the last `start`, and so many `marks`.

    All of them without.

    Blocks while it works. Raises `SessionNotFound`.
    """
    begin = next((each for each in ledger.entries if each.kind == "request_begin" and each.id == request_id), None)
    if begin is None:
        raise SessionNotFound("there is no such request in this ledger; its page lists those there are")
    context = context_of(ledger.entries, request_id, ledger.files)
    before = [each for each in ledger.entries if each.seq < begin.seq]
    path = active_path(before, damaged=True) or []
    lines = {str(_message(each).get("id")): each for each in path if each.kind == "message"}
    choices = choices_of(begin.data.get("select"), path)
    named = {choice.message: _NAMED[choice.form] for choice in reversed(choices) if choice.form in _NAMED}
    log = list(_log(path, {str(message.get("id")): message for message in context.messages}, choices))
    return Seen(
        at=str(begin.data.get("timestamp", "")),
        policy=str(begin.data.get("policy", "")),
        choices=choices,
        context=context,
        sent=[
            _row(message, lines.get(str(message.get("id"))), named)
            for message in _back_from(context.messages, start, most)
        ],
        log=[Logged(_row(line.message, line.entry), line.sent, line.how) for line in _back_from(log, start, most)],
        counts=(len(context.messages), len(log)),
        marks=[(_key(line.entry), line.sent) for line in _back_from(log, start, marks)],
    )


def _back_from(rows: Sequence[T], start: int, most: int | None) -> Sequence[T]:
    """Of the rows that are shown beside others the part that ends so many of them in front of the last."""
    end = max(0, len(rows) - start)
    return rows[0 if most is None else max(0, end - most) : end]


def _log(path: Sequence[Entry], sent: Mapping[str, MessageDict], choices: Sequence[Choice]) -> Iterator[_Line]:
    shown = {
        turn.key: choice.how for choice in choices if choice.form not in ("whole", "line") for turn in choice.turns
    }
    prompts = {each.id: str(_message(each).get("id")) for each in path if each.kind == "message"}
    for entry in path:
        if entry.kind == "message":
            prompt = sent.get(prompts.get(str(entry.data.get("turnId")), ""))
            how = shown.get(f"b{entry.offset}", "") if entry.data.get("turnId") == entry.id else ""
            yield _Line(entry, _message(entry), _is_sent(_message(entry), sent, prompt), how)
        elif entry.kind == "compaction":
            yield _Line(entry, _summary(entry), entry.id in sent, "")


def _is_sent(message: MessageDict, sent: Mapping[str, MessageDict], prompt: MessageDict | None) -> bool:
    """What a hook put behind a directive is shown as the end of that directive."""
    inside = prompt.get("content", []) if prompt else []
    content = message.get("content") or []
    return message.get("id") in sent or bool(content and all(block in inside for block in content))


def _message(entry: Entry) -> MessageDict:
    message = entry.data.get("message")
    return message if isinstance(message, dict) else {}


def _summary(entry: Entry) -> MessageDict:
    text = {"type": "text", "text": str(entry.data.get("summary", ""))}
    return {"id": entry.id, "role": "summary", "content": [text]}


def _key(entry: Entry) -> str:
    return f"b{entry.offset}" if entry.kind == "message" else ""


def _row(message: Mapping[str, Any], entry: Entry | None, names: Mapping[str, str] = _NONE) -> Row:
    """A row; it leads to its line where it has one of its own."""
    kind = _KINDS.get(str(message.get("role")), "compaction")
    key = _key(entry) if entry else ""
    at = entry.data.get("timestamp") if entry else None
    content = message.get("content")
    turn = {**message, "content": content if isinstance(content, list) else [], "kind": kind, "key": key, "at": at}
    row = row_of(bounded(turn))
    other = names.get(str(message.get("id")), "Summary of what lies before")
    named = _NAMES.get(str(entry.data.get("via"))) if entry else other
    return replace(row, name=named) if named else row
