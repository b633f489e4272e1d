"""What one request showed the model, beside everything that was logged by then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from harness.errors import SessionNotFound
from harness.messages import MessageDict
from harness.sessions.context_at import ContextAt, context_of
from harness.sessions.entries import Entry
from harness.sessions.reading import active_path
from harness.viewer.ledgers import Ledger
from harness.viewer.rows import Row, row_of

__all__ = ["Logged", "Seen", "seen_by"]

_KINDS = {"user": "prompt", "assistant": "answer", "tool": "orphan"}
_NAMES = {
    "hook": "Hook, for the model",
    "steer": "You, while it worked",
    "repair": "Repair",
    "summary": "Request for a summary",
    "tool": "Results",
}


class Logged(NamedTuple):
    """A line of the conversation, and whether the request showed it, by itself or as a part of a message."""

    row: Row
    sent: bool


@dataclass(frozen=True, slots=True)
class Seen:
    """A request. `chosen` says that its policy showed a selection, not all of the conversation since the boundary."""

    at: str
    policy: str
    chosen: bool
    context: ContextAt
    sent: Sequence[Row]
    log: Sequence[Logged]


def seen_by(ledger: Ledger, request_id: str) -> Seen:
    """The request of that id. Blocks while it works. Raises `SessionNotFound`."""
    begin = next((each for each in ledger.entries if each.kind == "request_begin" and each.id == request_id), None)
    if begin is None:
        raise SessionNotFound("there is no such request in this ledger; its page lists those there are")
    context = context_of(ledger.entries, request_id, ledger.files)
    before = [each for each in ledger.entries if each.seq < begin.seq]
    path = active_path(before, damaged=True) or []
    lines = {str(_message(each).get("id")): each for each in path if each.kind == "message"}
    return Seen(
        at=str(begin.data.get("timestamp", "")),
        policy=str(begin.data.get("policy", "")),
        chosen="select" in begin.data,
        context=context,
        sent=[_row(message, lines.get(str(message.get("id")))) for message in context.messages],
        log=_log(path, {str(message.get("id")): message for message in context.messages}),
    )


def _log(path: Sequence[Entry], sent: Mapping[str, MessageDict]) -> list[Logged]:
    prompts = {each.id: str(_message(each).get("id")) for each in path if each.kind == "message"}
    made = []
    for entry in path:
        if entry.kind == "message":
            prompt = sent.get(prompts.get(str(entry.data.get("turnId")), ""))
            made.append(Logged(_row(_message(entry), entry), _is_sent(_message(entry), sent, prompt)))
        elif entry.kind == "compaction":
            made.append(Logged(_row(_summary(entry), entry), entry.id in sent))
    return made


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


def _row(message: Mapping[str, Any], entry: Entry | None) -> Row:
    """A row; it leads to its line where it has one of its own."""
    kind = _KINDS.get(str(message.get("role")), "compaction")
    key = f"b{entry.offset}" if entry and entry.kind == "message" else ""
    at = entry.data.get("timestamp") if entry else None
    row = row_of({**message, "kind": kind, "key": key, "at": at})
    named = _NAMES.get(str(entry.data.get("via"))) if entry else "Summary of what lies before"
    return replace(row, name=named) if named else row
