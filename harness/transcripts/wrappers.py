"""What a person said inside the text that a harness sent: wrappers of chat gateways and editors."""

from __future__ import annotations

import re

__all__ = ["said_by_person"]

# "[Mon 2026-03-09 15:38 GMT+8] text": everything in front of it is the gateway's.
_TIMED = re.compile(r"\[(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d \d\d:\d\d(?: [^\]\n]{1,12})?\] ?")
_GATEWAY = re.compile(r"(?:System: \[|Conversation info \(untrusted metadata\):|Sender \(untrusted metadata\):)")
_EDITOR = "# Context from my IDE setup"
_REQUEST = "## My request for Codex:"


def said_by_person(text: str) -> str:
    """The part of a prompt to show on one line; the whole text where nothing wraps it."""
    stripped = text.lstrip()
    if _GATEWAY.match(stripped) and (found := _TIMED.search(stripped)):
        return stripped[found.end() :]
    if (found := _TIMED.match(stripped)) is not None:
        return stripped[found.end() :]
    if stripped.startswith(_EDITOR) and _REQUEST in stripped:
        return stripped.split(_REQUEST, 1)[1].lstrip()
    return text
