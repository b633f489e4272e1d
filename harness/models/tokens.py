"""How many tokens something is, roughly, without asking anybody.

Good enough to decide when to compact; what was really used stands in `Usage`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harness.messages import MessageDict, Msg
from harness.models.base import ModelRequest, ToolSpec
from harness.text import dumps

__all__ = ["MEDIA_TOKENS", "MESSAGE_TOKENS", "estimate_request", "estimate_tokens"]

MESSAGE_TOKENS = 4
"""What the frame of a message costs: its role and its borders."""
MEDIA_TOKENS = 1_200
"""What a picture or file is counted as, whatever its size."""
_MEDIA = frozenset({"image", "audio", "video", "file"})


def estimate_tokens(item: str | Msg | MessageDict) -> int:
    """Tokens of a text or of one message: about four letters of Latin script each, one CJK character each."""
    if isinstance(item, str):
        return _text_tokens(item)
    message = item.to_dict() if isinstance(item, Msg) else item
    return MESSAGE_TOKENS + _content_tokens(message.get("content") or ())


def estimate_request(request: ModelRequest) -> int:
    """Tokens of everything one request shows the model: system text, tools and messages."""
    tools = sum(_tool_tokens(tool) for tool in request.tools)
    return _text_tokens(request.system) + tools + sum(estimate_tokens(message) for message in request.messages)


def _text_tokens(text: str) -> int:
    # UTF-8 tells scripts apart for free: a CJK character has two bytes beyond its first, so 1/4 + 2 * 3/8 = 1.
    extra = 0 if text.isascii() else len(text.encode("utf-8", "surrogatepass")) - len(text)
    return (2 * len(text) + 3 * extra + 7) // 8


def _content_tokens(content: str | Iterable[Mapping[str, Any]]) -> int:
    if isinstance(content, str):
        return _text_tokens(content)
    return sum(map(_block_tokens, content))


def _block_tokens(block: Mapping[str, Any]) -> int:
    kind = block.get("type")
    if kind in ("text", "thinking"):
        text = block.get("text", "")
        return _text_tokens(text) if isinstance(text, str) else _json_tokens(text)
    if isinstance(kind, str) and kind in _MEDIA:
        return MEDIA_TOKENS
    if kind == "toolUse":
        return MESSAGE_TOKENS + _any_tokens(block.get("name", "")) + _json_tokens(block.get("input"))
    if kind == "toolResult":
        content = block.get("content") or ()
        return MESSAGE_TOKENS + (_content_tokens(content) if _is_content(content) else _json_tokens(content))
    return _json_tokens(block)


def _is_content(value: Any) -> bool:
    """A block of a known type may have other fields than its type says; it is kept, and counted as what it is."""
    return isinstance(value, str) or (
        isinstance(value, list | tuple) and all(isinstance(item, Mapping) for item in value)
    )


def _any_tokens(value: Any) -> int:
    return _text_tokens(value) if isinstance(value, str) else _json_tokens(value)


def _tool_tokens(tool: ToolSpec) -> int:
    return MESSAGE_TOKENS + _text_tokens(f"{tool.name} {tool.description}") + _json_tokens(dict(tool.parameters))


def _json_tokens(value: Any) -> int:
    return _text_tokens(dumps(value).decode())
