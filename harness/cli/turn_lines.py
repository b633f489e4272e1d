"""Turns of a transcript as lines for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.cli.clock import told
from harness.cli.output import one_line
from harness.text import dumps

__all__ = ["turn_lines"]

_WIDE = 160
_NAMES = {"prompt": "person", "queued": "person, while it worked", "answer": "assistant", "orphan": "result"}
_SPOKEN = frozenset({"prompt", "queued", "answer"})


def turn_lines(turn: Mapping[str, Any]) -> Iterator[str]:
    """One stitched turn: what was said in full, everything else in a line each."""
    kind = str(turn.get("kind"))
    marks = [turn.get("tag"), turn.get("aside"), turn.get("model"), told(turn.get("at")).replace("T", " ")]
    yield "  ".join(one_line(str(part)) for part in (f"[{_NAMES.get(kind, kind)}]", *marks) if part)
    for block in turn.get("content", ()):
        yield from _block(block, in_full=kind in _SPOKEN)
    yield ""


def _block(block: Mapping[str, Any], *, in_full: bool) -> Iterator[str]:
    kind = block.get("type")
    if kind == "text":
        text = str(block.get("text", ""))
        yield text if in_full else one_line(text, _WIDE)
    elif kind == "thinking":
        yield f"  thinking: {one_line(str(block.get('text', '')), _WIDE) or 'withheld by the provider'}"
    elif kind == "toolUse":
        yield f"  calls {one_line(str(block.get('name')))} {one_line(dumps(block.get('input')).decode(), _WIDE)}"
        yield f"    {_outcome(block)}"
    elif kind == "toolResult":
        yield f"  {one_line(_text(block.get('content')), _WIDE)}"
    else:
        yield f"  [{one_line(str(kind))}]"
    more = block.get("more")
    if isinstance(more, dict):
        yield f"  … {more.get('characters', 0):,} characters more"


def _outcome(block: Mapping[str, Any]) -> str:
    """What came of a call; one without a result is open, and nobody knows how it ended."""
    result = block.get("result")
    if not isinstance(result, dict):
        return "open: no result"
    mark = "failed" if result.get("isError") is True else "gave"
    return f"{mark}: {one_line(_text(result.get('content')), _WIDE)}"


def _text(content: object) -> str:
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    return " ".join(str(part.get("text", f"[{part.get('type')}]")) for part in parts)
