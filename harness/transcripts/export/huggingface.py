"""The Hugging Face session format, and the row that the Hub shows for a session in a data set.

The format has places for text, reasoning, calls and results. A picture becomes a line that says what it was, a prompt
that waited a plain one, a compaction a word of the system. What a provider sealed, and what each message cost, is left
out. All are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from harness.text import dumps
from harness.transcripts.export.base import Rendered, Target, conversation, json_lines, safe_name, spoken, text_of
from harness.transcripts.export.redacting import RedactionReport
from harness.transcripts.reader import Transcript
from harness.transcripts.turns import Turn

__all__ = ["ROW_TARGET", "TARGET", "render", "render_row"]

_HARNESS = {"claude": "claude_code"}
_ROLES = {"prompt": "user", "queued": "user", "answer": "assistant", "results": "tool", "orphan": "tool"}


def render(transcript: Transcript, redaction: RedactionReport | None) -> Rendered:
    """The session: a header line, then a message a line. The header has the small columns of the Hub's row."""
    left_out: Counter[str] = Counter()
    made = _session(transcript, redaction, left_out)
    return Rendered({"": made}, dict(+left_out), says_nothing=made.count(b"\n") == 1)


def render_row(transcript: Transcript, redaction: RedactionReport | None) -> Rendered:
    """One line with the columns that the Hub has for agent sessions; many of them make a data set."""
    left_out: Counter[str] = Counter()
    trace = _session(transcript, redaction, left_out).decode()
    messages = [message for turn in _told(transcript, Counter()) for message in _chat(turn)]
    names = dict.fromkeys(block["name"] for turn in transcript.turns for block in turn.of_type("toolUse"))
    columns = _columns(transcript, redaction)
    row = {
        "harness": columns.pop("harness"),
        "session_id": columns.pop("session_id"),
        "prompt": columns.pop("prompt"),
        "messages": messages,
        "tools": [{"type": "function", "function": {"name": name}} for name in names],
        **columns,
        "trace": trace,
        "file_path": f"{safe_name(transcript.session_id)}.jsonl",
    }
    return Rendered({"": json_lines([row])}, dict(+left_out), says_nothing=not messages)


_HOLDS = frozenset({"session usage", "title", "branch"})
TARGET = Target("huggingface", "Hugging Face session format", ".session.jsonl", render, _HOLDS)
ROW_TARGET = Target("huggingface-row", "a row of a Hugging Face data set", ".row.jsonl", render_row, _HOLDS)


def _session(transcript: Transcript, redaction: RedactionReport | None, left_out: Counter[str]) -> bytes:
    columns = _columns(transcript, redaction)
    title = transcript.head.title
    header = {
        "type": "session",
        "harness": columns.pop("harness"),
        "id": transcript.session_id,
        **({"name": title} if title else {}),
        **{name: value for name, value in columns.items() if value is not None},
    }
    messages = [message for turn in _told(transcript, left_out) for message in _messages(turn, left_out)]
    return json_lines([header, *({"type": "message", "message": message} for message in messages)])


def _columns(transcript: Transcript, redaction: RedactionReport | None) -> dict[str, Any]:
    """The Hub's columns that tell what a session is; None where it does not say."""
    head = transcript.head
    prompts = [transcript.turns[number] for number in head.prompts]
    told = list(_told(transcript, Counter()))
    metadata = {
        "source_file": transcript.file_name,
        "session_id": transcript.session_id,
        "trace_type": _harness(transcript),
        "model": head.model,
        "models": list(head.models),
        "cwd": head.cwd,
        "branch": head.branch,
        "usage": head.usage,
        "first_ts": head.first_ts,
        "last_ts": head.last_ts,
        "redaction": redaction.told() if redaction is not None else None,
    }
    return {
        "harness": _harness(transcript),
        "session_id": transcript.session_id,
        "prompt": prompts[0].text if prompts else None,
        "metadata": {name: value for name, value in metadata.items() if value not in (None, "", [])},
        "sent_at": prompts[0].at if prompts else None,
        "num_user_messages": len(prompts),
        "num_tool_calls": sum(1 for turn in told for _ in turn.of_type("toolUse")),
    }


def _harness(transcript: Transcript) -> str:
    return _HARNESS.get(transcript.format, transcript.format)


def _told(transcript: Transcript, left_out: Counter[str]) -> Iterator[Turn]:
    return conversation(transcript.turns, left_out)


def _messages(turn: Turn, left_out: Counter[str]) -> Iterator[dict[str, Any]]:
    """The messages of a turn in the session format."""
    when = {"timestamp": _milliseconds(turn.at)} if turn.at else {}
    role = _ROLES.get(turn.kind, "system")
    if role == "tool":
        for block in turn.of_type("toolResult"):
            failed = {"isError": True} if block.get("isError") is True else {}
            said = text_of(_content(block), left_out)
            yield {"role": role, "content": said, "toolCallId": block["id"], **failed, **when}
        return
    message: dict[str, Any] = {"role": role, "content": text_of(_spoken(turn, left_out), left_out)}
    if thoughts := _thoughts(turn):
        message["reasoningContent"] = thoughts
    if calls := [
        {"id": block["id"], "function": {"name": block["name"], "arguments": dumps(block["input"]).decode()}}
        for block in turn.of_type("toolUse")
    ]:
        message["toolCalls"] = calls
    if model := turn.message.get("model"):
        message["model"] = model
    if any(message.get(name) for name in ("content", "reasoningContent", "toolCalls")):
        yield {**message, **when}
    else:
        left_out["empty"] += 1


def _chat(turn: Turn) -> Iterator[dict[str, Any]]:
    """The messages of a turn as chat models are trained on them."""
    for message in _messages(turn, Counter()):
        made = {"role": message["role"], "content": message["content"]}
        if "reasoningContent" in message:
            made["reasoning_content"] = message["reasoningContent"]
        if "toolCalls" in message:
            made["tool_calls"] = [{"type": "function", **call} for call in message["toolCalls"]]
        if "toolCallId" in message:
            made["tool_call_id"] = message["toolCallId"]
        yield made


def _spoken(turn: Turn, left_out: Counter[str]) -> list[dict[str, Any]]:
    """What stands in a message's text; of what a harness told the model, all of it."""
    given = turn.blocks if turn.role == "system" else spoken(turn.blocks, left_out)
    return [block for block in given if block["type"] not in ("thinking", "toolUse", "toolResult")]


def _content(block: dict[str, Any]) -> list[dict[str, Any]]:
    found = block.get("content")
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _thoughts(turn: Turn) -> str:
    return "\n\n".join(block["text"] for block in turn.of_type("thinking") if block["text"].strip())


def _milliseconds(at: str) -> int:
    return round(datetime.fromisoformat(at).timestamp() * 1000)
