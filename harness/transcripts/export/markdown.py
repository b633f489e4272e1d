"""A session as Markdown that can be pasted anywhere and does nothing there.

Prose of people and models stays Markdown, with HTML and links in it made plain text; code, arguments
and results stand in fences that nothing in them can end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

import orjson

from harness.text import counted, visible
from harness.transcripts.export.base import Rendered, Target, findings_told, text_of
from harness.transcripts.export.prose import fenced, pieces, spans
from harness.transcripts.export.redacting import RedactionReport
from harness.transcripts.reader import Transcript
from harness.transcripts.stitching import stitched

__all__ = ["TARGET", "render"]

_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_ENTITY = re.compile(r"&(?=#?\w)")
_LINK = re.compile(r"\](?=[(\[:])")
_LIVE = re.compile(r"(?<=:)(?=//)|(?<=[Ww]{3})(?=\.)|(?<=@)(?=\w)|(?<=#)(?=\d)")
"""Where many renderers begin to see an address, a person or an issue, with nothing around it that says so."""
_NOTHING = "&#8203;"
"""A space without width: a sign in front of it that is only escaped is put together again by some of them."""
_NAMES = {
    "prompt": "Person",
    "queued": "Person, while the model worked",
    "answer": "Assistant",
    "context": "Context",
    "meta": "Harness",
    "compaction": "Compaction",
    "orphan": "Result without a call",
}
_SPOKEN = frozenset({"prompt", "queued", "answer"})


def render(transcript: Transcript, redaction: RedactionReport | None) -> Rendered:
    """See the module."""
    left_out: Counter[str] = Counter()
    parts = [*_head(transcript, redaction)]
    for turn in stitched(transcript.turns):
        parts += _turn(turn, left_out)
    return Rendered({"": ("\n\n".join(parts) + "\n").encode()}, dict(left_out))


_HOLDS = frozenset(
    {"queued marks", "compaction marks", "harness marks", "session usage", "title", "branch", "findings"}
    | {"sidechain", "abandoned"}
)
TARGET = Target("markdown", "Markdown", ".md", render, _HOLDS)


def _head(transcript: Transcript, redaction: RedactionReport | None) -> Iterator[str]:
    head = transcript.head
    yield f"# {_line(head.title or transcript.session_id)}"
    facts = {
        "Written by": head.harness,
        "Session": transcript.session_id,
        "Models": ", ".join(head.models),
        "Folder": head.cwd,
        "Branch": head.branch,
        "From": head.first_ts,
        "To": head.last_ts,
        "Tokens": ", ".join(f"{number:,} {name}" for name, number in (head.usage or {}).items()),
    }
    yield "\n".join(f"- {name}: {_line(value)}" for name, value in facts.items() if value)
    if head.note:
        yield f"*{head.note}*"
    if transcript.warnings:
        yield f"*{findings_told(transcript.warnings)}*"
    if redaction is not None:
        yield f"*Redacted before it was written: {counted(sum(redaction.hits.values()), 'place')}.*"


def _turn(turn: Mapping[str, Any], left_out: Counter[str]) -> Iterator[str]:
    kind = turn["kind"]
    named = [_NAMES.get(kind, "Result"), turn.get("tag"), turn.get("aside"), turn.get("model"), turn.get("at")]
    title = " · ".join(str(part) for part in named if part)
    if kind in _SPOKEN:
        yield f"## {_line(title)}"
        for block in turn["content"]:
            yield from _block(block, left_out)
    else:
        yield _folded(title, fenced(visible(_plain(turn["content"], left_out))))


def _block(block: Mapping[str, Any], left_out: Counter[str]) -> Iterator[str]:
    kind = block.get("type")
    if kind == "text":
        yield from _prose(str(block.get("text", "")))
    elif kind == "thinking":
        text = visible(str(block.get("text", "")))
        yield _folded("Thinking", fenced(text)) if text.strip() else "*Reasoning that the provider withheld.*"
    elif kind == "toolUse":
        yield _call(block, left_out)
    else:
        yield fenced(visible(text_of([dict(block)], left_out)))


def _call(block: Mapping[str, Any], left_out: Counter[str]) -> str:
    result = block.get("result")
    state = "no result" if not isinstance(result, dict) else "failed" if result.get("isError") is True else ""
    title = f"Tool call: {block.get('name')}{f', {state}' if state else ''}"
    body = fenced(visible(orjson.dumps(block.get("input"), option=orjson.OPT_INDENT_2).decode()), "json")
    if isinstance(result, dict):
        body += "\n\n" + fenced(visible(_plain(result.get("content"), left_out)))
    return _folded(title, body)


def _plain(content: object, left_out: Counter[str]) -> str:
    if not isinstance(content, list):
        return ""
    whole = [block for block in content if isinstance(block, dict)]
    inner = [part for block in whole for part in (block["content"] if block.get("type") == "toolResult" else [block])]
    return text_of([part for part in inner if isinstance(part, dict)], left_out)


def _prose(text: str) -> Iterator[str]:
    for piece in pieces(visible(text)):
        if piece.language is not None:
            yield fenced(piece.text, piece.language)
        elif piece.text.strip():
            yield _inert(piece.text.strip("\n"))


def _inert(text: str) -> str:
    """Prose in which nothing is a tag, a link or a picture; inside of code spans the signs show as they are written."""
    told = _LINK.sub("]\\\\", _TAG.sub("&lt;", _ENTITY.sub("&amp;", text)))
    return "".join(part.text if part.language is not None else _dead(part.text) for part in spans(told))


def _dead(text: str) -> str:
    """Text in which no address becomes a link, and no name a mention."""
    return _LIVE.sub(_NOTHING, text)


def _folded(title: str, body: str) -> str:
    summary = _dead(escape(" ".join(visible(title).split())))
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def _line(text: str) -> str:
    """Text of strangers on a line of ours, where no sign of it means anything."""
    line = " ".join(visible(text).split())
    return _dead(re.sub(r"([\\`*_\[\]|~])", r"\\\1", escape(line, quote=False)))
