"""One HTML file that holds a whole session: read without a script, a connection, or anything beside it.

Nothing of a transcript becomes markup: every text is escaped where it is printed, and all there is of
structure is written here. The page's own policy forbids scripts, connections and forms, should that
ever fail.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any

import orjson

from harness.text import counted, visible
from harness.transcripts.export.base import Rendered, Target, findings_told, media_of, medium_label
from harness.transcripts.export.prose import pieces
from harness.transcripts.export.redacting import RedactionReport
from harness.transcripts.export.style import STYLE
from harness.transcripts.reader import Transcript
from harness.transcripts.stitching import stitched

__all__ = ["TARGET", "render"]

_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
MAX_PICTURE = 8 * 1024 * 1024
"""Bytes of the largest picture that is put into the page; larger ones are named."""
_NAMES = {
    "prompt": "Person",
    "queued": "Person, while the model worked",
    "answer": "Assistant",
    "orphan": "Result without a call",
    "context": "Context",
    "meta": "Harness",
    "compaction": "Compaction",
}
_SPOKEN = frozenset({"prompt", "queued", "answer"})
_PREVIEW = 120


def render(transcript: Transcript, redaction: RedactionReport | None) -> Rendered:
    """See the module."""
    page = _Page(transcript, redaction)
    return Rendered({"": "".join(page.parts()).encode()}, dict(page.left_out))


_HOLDS = frozenset(
    {"queued marks", "compaction marks", "harness marks", "session usage", "title", "branch", "findings"}
    | {"sidechain", "abandoned"}
)
TARGET = Target("html", "one HTML file", ".html", render, _HOLDS)


class _Page:
    """The page of one session, part by part."""

    def __init__(self, transcript: Transcript, redaction: RedactionReport | None) -> None:
        self._transcript = transcript
        self._redaction = redaction
        self._turns = stitched(transcript.turns)
        self._media = media_of(transcript)
        self.left_out: Counter[str] = Counter()

    def parts(self) -> Iterator[str]:
        head = self._transcript.head
        title = head.title or self._transcript.session_id
        style = f"'sha256-{_digest(STYLE)}'"
        policy = f"default-src 'none'; style-src {style}; img-src data:; base-uri 'none'; form-action 'none'"
        yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        yield '<meta name="referrer" content="no-referrer">\n'
        yield f"<title>{_text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        yield f"<header>\n<h1>{_text(title)}</h1>\n<dl>\n"
        yield from (f"<div><dt>{name}</dt><dd>{_text(value)}</dd></div>\n" for name, value in self._facts())
        yield "</dl>\n"
        yield from (f'<p class="note">{_text(note)}</p>\n' for note in self._notes())
        yield "</header>\n"
        yield from self._outline()
        yield "<main>\n"
        for number, turn in enumerate(self._turns):
            yield from self._turn(number, turn)
        yield "</main>\n</body>\n</html>\n"

    def _facts(self) -> Iterator[tuple[str, str]]:
        transcript, head, stats = self._transcript, self._transcript.head, self._transcript.stats()
        yield "Written by", head.harness
        yield "Session", transcript.session_id
        if head.models:
            yield "Models", ", ".join(head.models)
        if head.cwd:
            yield "Folder", head.cwd
        if head.branch:
            yield "Branch", head.branch
        if head.first_ts:
            yield "Time", f"{_clock(head.first_ts)} to {_clock(head.last_ts)} UTC"
        yield (
            "Contents",
            (
                f"{counted(stats['prompts'], 'prompt')}, {counted(stats['assistant_msgs'], 'answer')}, "
                f"{counted(stats['tool_calls'], 'tool call')}"
                f" ({stats['failed_results']:,} failed, {stats['calls_open']:,} without a result)"
            ),
        )
        if head.usage:
            yield "Tokens", ", ".join(f"{number:,} {name}" for name, number in head.usage.items())

    def _notes(self) -> Iterator[str]:
        transcript = self._transcript
        if transcript.head.note:
            yield transcript.head.note
        if transcript.warnings:
            yield findings_told(transcript.warnings)
        if self._redaction is not None:
            yield f"Redacted before it was written: {counted(sum(self._redaction.hits.values()), 'place')}."

    def _outline(self) -> Iterator[str]:
        prompts = [
            (number, turn)
            for number, turn in enumerate(self._turns)
            if turn["kind"] in ("prompt", "queued") and "aside" not in turn
        ]
        how_many = counted(len(prompts), "prompt")
        yield f'<nav aria-label="Prompts">\n<details>\n<summary>{how_many}</summary>\n<ol>\n'
        for number, turn in prompts:
            yield f'<li><a href="#t{number}">{_text(_preview(_words(turn["content"])) or "(no text)")}</a></li>\n'
        yield "</ol>\n</details>\n</nav>\n"

    def _turn(self, number: int, turn: Mapping[str, Any]) -> Iterator[str]:
        kind = turn["kind"]
        final = " final" if turn.get("final") else ""
        aside = f' <span class="mark">{turn["aside"]}</span>' if "aside" in turn else ""
        at = f" <time>{_text(_clock(turn['at']))}</time>" if "at" in turn else ""
        model = f' <span class="mark">{_text(str(turn["model"]))}</span>' if turn.get("model") else ""
        tag = f": {_text(str(turn['tag']))}" if "tag" in turn else ""
        title = f"{_NAMES.get(kind, 'Result')}{tag}{aside}{model}{at}"
        yield f'<article id="t{number}" class="{kind if kind in _NAMES else "other"}{final}">\n'
        if kind in _SPOKEN or kind == "orphan":
            yield f"<h2>{title}</h2>\n"
            yield from self._blocks(turn["content"])
        else:
            preview = _text(_preview(_words(turn["content"])))
            yield f"<details>\n<summary><h2>{title}</h2> <span>{preview}</span></summary>\n"
            yield from self._blocks(turn["content"])
            yield "</details>\n"
        yield "</article>\n"

    def _blocks(self, content: Iterable[Any]) -> Iterator[str]:
        for block in content:
            if isinstance(block, dict):
                yield from self._block(block)

    def _block(self, block: Mapping[str, Any]) -> Iterator[str]:
        kind = block.get("type")
        if kind == "text":
            yield from _prose(str(block.get("text", "")))
        elif kind == "thinking":
            yield from _thinking(str(block.get("text", "")))
        elif kind == "toolUse":
            yield from self._call(block)
        elif kind == "toolResult":
            yield from self._blocks(_list(block.get("content")))
        elif kind in ("image", "audio", "video", "file", "unreadable_image"):
            yield self._picture(block)
        else:
            yield f"<pre>{_text(_json(block))}</pre>\n"

    def _call(self, block: Mapping[str, Any]) -> Iterator[str]:
        result = block.get("result")
        state = "open" if not isinstance(result, dict) else "failed" if result.get("isError") is True else "ok"
        label = {"open": ": no result", "failed": ": failed", "ok": ""}[state]
        given = _preview(_first(block.get("input")))
        yield f'<details class="call {state}">\n<summary><b>{_text(str(block.get("name")))}</b>{label}'
        yield f" <span>{_text(given)}</span></summary>\n<pre>{_text(_json(block.get('input')))}</pre>\n"
        if isinstance(result, dict):
            yield '<div class="result">\n'
            yield from self._blocks(_list(result.get("content")))
            yield "</div>\n"
        yield "</details>\n"

    def _picture(self, block: Mapping[str, Any]) -> str:
        label = _text(medium_label(dict(block)))
        media = block.get("media")
        media = media if isinstance(media, dict) else {}
        data = self._media.get(str(media.get("sha256")))
        if data is None or media.get("mediaType") not in _PICTURES or len(data) > MAX_PICTURE:
            self.left_out["media"] += 1
            return f'<p class="note">{label}</p>\n'
        encoded = base64.b64encode(data).decode()
        return f'<p><img alt="{label}" src="data:{media["mediaType"]};base64,{encoded}"></p>\n'


def _prose(text: str) -> Iterator[str]:
    for piece in pieces(visible(text)):
        if piece.language is not None:
            yield f"<pre><code>{escape(piece.text)}</code></pre>\n"
        elif piece.text.strip():
            yield f'<div class="text">{escape(piece.text.strip(chr(10)))}</div>\n'


def _thinking(text: str) -> Iterator[str]:
    if not text.strip():
        yield '<p class="note">Reasoning that the provider withheld.</p>\n'
        return
    yield f'<details class="thinking">\n<summary>Thinking: <span>{_text(_preview(text))}</span></summary>\n'
    yield f'<div class="text">{_text(text)}</div>\n</details>\n'


def _text(text: str) -> str:
    return escape(visible(text))


def _preview(text: str) -> str:
    line = " ".join(text[: _PREVIEW * 4].split())
    return line if len(line) <= _PREVIEW else line[: _PREVIEW - 1] + "…"


def _words(content: object) -> str:
    return " ".join(str(block["text"]) for block in _list(content) if isinstance(block, dict) and "text" in block)


def _first(given: object) -> str:
    value = next(iter(given.values()), "") if isinstance(given, dict) else given
    return value if isinstance(value, str) else _json(value)


def _json(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() if value not in (None, {}) else ""


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _clock(at: str) -> str:
    return at[:19].replace("T", " ")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
