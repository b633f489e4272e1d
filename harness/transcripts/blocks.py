"""Message blocks from foreign content, whatever type its fields turn out to have."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from typing import Any, TypeAlias, TypeGuard

from harness.messages import Media
from harness.text import MAX_DEPTH, clean, dumps, loads, read_json

__all__ = [
    "BlockDict",
    "call_block",
    "counts",
    "image",
    "image_from_url",
    "integer",
    "is_odd",
    "items",
    "json_text",
    "kept_block",
    "parsed",
    "result_block",
    "said",
    "text",
    "text_of",
    "thinking",
    "unknown",
    "usage_dict",
    "word",
]

BlockDict: TypeAlias = dict[str, Any]
"""A block in its stored form; a picture's bytes stand in `media.data` until somebody stores it."""

_OURS = frozenset({"text", "thinking", "toolUse", "toolResult", "image", "audio", "video", "file"})
_DATA_URL = re.compile(r"data:(?P<type>[\w.+/-]+)(?:;[\w=.-]+)*;base64,", re.ASCII)
_DATA_HEAD = 256
_PROBE = 64
_HUGE = float(2**63)
MAX_COUNT = 2**53 - 1
"""The largest count: every reader of JSON has it exactly, and sums of many stay within 64 bits."""
_PLAIN = frozenset({str, int, bool, type(None)})


def text(value: str) -> BlockDict:
    """A text block."""
    return {"type": "text", "text": value}


def said(item: BlockDict) -> BlockDict:
    """A text block of what an item says under `text`; an empty one where that is no text."""
    value = item.get("text")
    return {"type": "text", "text": value if isinstance(value, str) else ""}


def thinking(value: str, provider: str, model: str | None, original: object) -> BlockDict:
    """Reasoning, with the provider's record kept whole: only it can tell what a signature covers."""
    if model:
        opaque = {"provider": provider, "model": model, "data": original}
    else:
        opaque = {"provider": provider, "data": original}
    return {"type": "thinking", "text": value, "opaque": opaque}


def call_block(key: str, name: object, given: object) -> BlockDict:
    """A call; arguments that are no object, or JSON text of one, stand under `input`."""
    found = given if not isinstance(given, str) else parsed(given)
    if not isinstance(found, dict):
        found = {} if given is None else {"input": given}
    return {"type": "toolUse", "id": key, "name": word(name) or "unknown", "input": found}


def result_block(key: str, content: list[BlockDict], *, failed: bool, exit_code: object = None) -> BlockDict:
    """A result; the exit code of a command stands beside it where the format tells it."""
    block: BlockDict = {"type": "toolResult", "id": key, "content": content, "isError": failed}
    if exit_code is not None and isinstance(exit_code, int) and not isinstance(exit_code, bool):
        block["exitCode"] = exit_code
    return block


def image(data: object, media_type: object, *, whole: bool = True) -> BlockDict | None:
    """A picture from base64 text; None where that is not what it is.

    Without `whole` its bytes are counted and not kept.
    """
    if not isinstance(data, str) or not data:
        return None
    named = media_type if isinstance(media_type, str) and media_type else "application/octet-stream"
    try:
        if not whole:
            base64.b64decode(data[:_PROBE], validate=len(data) <= _PROBE)
            size = len(data) * 3 // 4 - data[-2:].count("=")
            return {"type": "image", "media": {"mediaType": named, "bytes": size}}
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
    return {"type": "image", "media": {**Media.from_bytes(raw, named).to_dict(), "data": raw}}


def image_from_url(url: object, *, whole: bool = True) -> BlockDict | None:
    """A picture from a data URL, or by reference from a web address; None for anything else."""
    if not isinstance(url, str):
        return None
    if url.startswith(("https://", "http://")):
        return {"type": "image", "url": url}
    found = _DATA_URL.match(url[:_DATA_HEAD])
    return image(url[found.end() :], found["type"], whole=whole) if found else None


def unknown(value: BlockDict) -> BlockDict:
    """A block nobody knows, kept whole, under a type that means nothing here."""
    kind = text_of(value.get("type")) or "unknown"
    return {**value, "type": f"foreign.{kind}" if kind in _OURS else kind}


def items(value: object) -> list[object]:
    """Content as a list: a plain text is one text block, anything that is no list is nothing."""
    if isinstance(value, str):
        return [text(value)]
    return value if isinstance(value, list) else []


def word(value: object) -> str | None:
    """A text that says something, or None."""
    return value if isinstance(value, str) and value.strip() else None


def text_of(value: object) -> str:
    """A text, or nothing."""
    return value if isinstance(value, str) else ""


def integer(value: object) -> int:
    """A count; 0 for what is none, and `MAX_COUNT` for more than that."""
    return min(value, MAX_COUNT) if type(value) is int and value > 0 else 0


def kept_block(block: BlockDict) -> BlockDict:
    """A block of a form that is ours, as it was written; a medium's size that is no count is left out."""
    medium = block.get("media")
    if not isinstance(medium, dict) or integer(medium.get("bytes")) == medium.get("bytes"):
        return block
    return {**block, "media": {name: value for name, value in medium.items() if name != "bytes"}}


def counts(values: tuple[Any, ...]) -> TypeGuard[tuple[int, ...]]:
    """Whether all values are counts, as they nearly always are: faster than asking each."""
    return set(map(type, values)) == {int} and min(values) >= 0 and max(values) <= MAX_COUNT


def parsed(value: object) -> object:
    """What JSON text says; None for what is none."""
    if not isinstance(value, str):
        return None
    try:
        found = loads(value)
        if not is_odd(found):
            return found
    except ValueError:
        pass  # the slow reader takes more than the fast one
    try:
        return clean(read_json(value.encode())).value
    except ValueError:
        return None


def is_odd(value: object, depth: int = 0) -> bool:
    """Whether what the fast reader gave may be no exact copy, or cannot be stored: a huge number, or too deep."""
    if isinstance(value, dict):
        members: Iterable[object] = value.values()
    elif isinstance(value, list):
        members = value
    else:
        return isinstance(value, float) and not -_HUGE < value < _HUGE
    if depth >= MAX_DEPTH:
        return True
    for member in members:  # noqa: SIM110 - a generator costs more than the loop
        # Most members are texts, and a whole number was read exactly or as a fraction: they are not worth a call.
        if type(member) not in _PLAIN and is_odd(member, depth + 1):
            return True
    return False


def json_text(value: object) -> str:
    """A value as JSON text; nothing for no value."""
    return "" if value is None else dumps(clean(value).value).decode()


def usage_dict(fresh: object, read: object, write: object, out: object, reasoning: object = None) -> dict[str, int]:
    """Tokens of one message under the names of this library; `fresh` leaves cached tokens out."""
    told = (fresh, read, write, out)
    fresh, read, write, out = told if counts(told) else map(integer, told)
    found = {"input": fresh, "cacheRead": read, "cacheWrite": write, "output": out}
    if reasoning is not None:
        found["reasoning"] = integer(reasoning)
    return found
