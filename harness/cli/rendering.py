"""Messages as lines for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.cli.output import one_line
from harness.text import dumps

__all__ = ["message_lines"]

_WIDE = 160


def message_lines(message: Mapping[str, Any]) -> Iterator[str]:
    """One message as it is stored: text in full, tool calls and results in one line each."""
    role = str(message.get("role", "?"))
    for block in message.get("content", ()):
        yield f"{role}: {_block(block)}"


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
