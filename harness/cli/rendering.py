"""Messages as lines for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.cli.output import one_line
from harness.text import dumps

__all__ = ["message_lines"]

_WIDE = 160


def message_lines(message: Mapping[str, Any], when: str | None = None) -> Iterator[str]:
    """One message as it is stored: text in full, tool calls and results in one line each.

    With its time, empty where that is not known, the lines begin with it, and the model is named.
    """
    role = str(message.get("role", "?"))
    if when is not None:
        role = "  ".join(filter(None, (when, role + _model(message))))
    for block in message.get("content", ()):
        yield f"{role}: {_block(block)}"


def _model(message: Mapping[str, Any]) -> str:
    named = [one_line(str(message[key])) for key in ("provider", "model") if message.get(key)]
    return f" ({':'.join(named)})" if named else ""


def _block(block: Mapping[str, Any]) -> str:
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", ""))
    if kind == "thinking":
        return f"[thinking] {one_line(str(block.get('text', '')), _WIDE)}"
    if kind == "toolUse":
        arguments = dumps(block.get("input")).decode()
        return f"[calls {one_line(str(block.get('name')))}] {one_line(arguments, _WIDE)}"
    if kind == "toolResult":
        said = " ".join(str(part.get("text", f"[{part.get('type')}]")) for part in block.get("content", ()))
        mark = "failed" if block.get("isError") else "result"
        return f"[{mark} of {one_line(str(block.get('name', 'a tool')))}] {one_line(said, _WIDE)}"
    return f"[{kind}]"
