"""Long arguments of old tool calls, cut in what the model sees.

An `arguments_cut` event says it: `{lastTurn, maxArgLength, truncationText}`. From then on every turn
up to `lastTurn` is shown with short arguments. The lines that hold the calls are not changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.messages import MessageDict

__all__ = ["ARGUMENTS_CUT", "cut_arguments", "has_long_arguments"]

ARGUMENTS_CUT = "arguments_cut"
_KEPT = 20


def cut_arguments(message: MessageDict, rule: Mapping[str, Any]) -> MessageDict:
    """The message with short arguments by the rule of an event; itself where none is too long."""
    content = message.get("content")
    longest, text = int(rule.get("maxArgLength", 0)), str(rule.get("truncationText", ""))
    if not isinstance(content, list) or not has_long_arguments(message, longest):
        return message
    return {**message, "content": [_cut_block(block, longest, text) for block in content]}


def has_long_arguments(message: MessageDict, longest: int) -> bool:
    """Whether an argument of a call in this message has more characters."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    calls = [block for block in blocks if isinstance(block, dict) and block.get("type") == "toolUse"]
    return any(_is_long(call.get("input"), longest) for call in calls)


def _cut_block(block: Any, longest: int, text: str) -> Any:
    if not isinstance(block, dict) or block.get("type") != "toolUse":
        return block
    return {**block, "input": _cut(block.get("input"), longest, text)}


def _cut(value: Any, longest: int, text: str) -> Any:
    if isinstance(value, str):
        return value if len(value) <= longest else f"{value[:_KEPT]}{text}"
    if isinstance(value, dict):
        return {key: _cut(item, longest, text) for key, item in value.items()}
    return [_cut(item, longest, text) for item in value] if isinstance(value, list) else value


def _is_long(value: Any, longest: int) -> bool:
    if isinstance(value, str):
        return len(value) > longest
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_is_long(item, longest) for item in items)
