"""A conversation as plain text, for a model that is to take notes of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harness.messages import MessageDict, Msg
from harness.text import clean, dumps

__all__ = ["conversation_text"]

_RESULT_CHARS = 4_000
_INPUT_CHARS = 1_000
_MEDIA = frozenset({"image", "audio", "video", "file"})


def conversation_text(messages: Iterable[Msg | MessageDict], result_chars: int = _RESULT_CHARS) -> str:
    """One paragraph a message, `[ROLE]: text`, with tool calls and results named and media mentioned.

    What people and models wrote is whole. Tool results over `result_chars` characters and inputs
    over 1 000 keep their beginning and end, with a note of how much is left out between. System
    messages and reasoning are left out. Further lines of a paragraph are indented, so that only a
    real message has its role at the beginning of a line.
    """
    paragraphs = [_paragraph(_stored(message), result_chars) for message in messages]
    return "\n".join(paragraph for paragraph in paragraphs if paragraph)


def _stored(message: Msg | MessageDict) -> MessageDict:
    return message.to_dict() if isinstance(message, Msg) else message


def _paragraph(message: MessageDict, result_chars: int) -> str:
    role = str(message.get("role", ""))
    if role == "system":
        return ""
    parts = [part for block in _blocks(message) for part in _parts(block, result_chars) if part.strip()]
    lines = "\n".join(parts).splitlines()
    return f"[{role.upper()}]: " + "\n  ".join(lines) if lines else ""


def _blocks(owner: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = owner.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []


def _parts(block: Mapping[str, Any], result_chars: int) -> Iterator[str]:
    kind = block.get("type")
    if kind == "text":
        yield str(block.get("text", ""))
    elif kind == "toolUse":
        given = dumps(clean(block.get("input", {})).value).decode()
        yield f"[calls {block.get('name', 'a tool')}: {_shortened(given, _INPUT_CHARS)}]"
    elif kind == "toolResult":
        yield _result(block, result_chars)
    elif kind in _MEDIA:
        yield _media(block)


def _result(block: Mapping[str, Any], result_chars: int) -> str:
    what = "error" if block.get("isError") else "result"
    inner = "\n".join(part for item in _blocks(block) for part in _parts(item, result_chars))
    return f"[{what} of {block.get('name') or 'a tool'}] {_shortened(inner, result_chars)}"


def _media(block: Mapping[str, Any]) -> str:
    media = block.get("media")
    details = media if isinstance(media, Mapping) else {}
    about = details.get("name") or details.get("mediaType") or block.get("url") or ""
    return f"[{block.get('type')}: {about}]" if about else f"[{block.get('type')}]"


def _shortened(text: str, limit: int) -> str:
    """A text, or its first three quarters of the limit and its last quarter, and how much is between."""
    if len(text) <= limit:
        return text
    head, tail = limit - limit // 4, limit // 4
    return f"{text[:head]} [… {len(text) - head - tail} characters left out …] {text[len(text) - tail :]}"
