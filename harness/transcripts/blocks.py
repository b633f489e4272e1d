"""Message blocks from foreign content, whatever type its fields turn out to have."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import Any, TypeAlias, TypeGuard

from harness.messages import Media
from harness.text import MAX_DEPTH, clean, dumps, loads, read_json
from harness.transcripts.decoding import decoded, decoded_size, is_base64

__all__ = [
    "BlockDict",
    "beginning",
    "begins_untagged",
    "call_block",
    "counts",
    "image",
    "image_from_url",
    "integer",
    "is_odd",
    "is_said",
    "items",
    "json_text",
    "kept_block",
    "parsed",
    "result_block",
    "said",
    "says",
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
_HUGE = float(2**63)
_COUNT_BITS = 53
MAX_COUNT = 2**_COUNT_BITS - 1
"""The largest count: every reader of JSON has it exactly, and sums of many stay within 64 bits."""
_PLAIN = frozenset({int, bool, type(None)})
_WHOLE = frozenset({int})


def text(value: str) -> BlockDict:
    """A text block."""
    return {"type": "text", "text": value}


def said(item: BlockDict) -> BlockDict:
    """A text block of what an item of type `text` says under `text`; an empty one where that is no text.

    One that says nothing else is the block already, and stands as it is.
    """
    value = item.get("text")
    if type(value) is str:
        return item if len(item) == 2 else {"type": "text", "text": value}
    return {"type": "text", "text": ""}


def is_said(content: object) -> TypeGuard[list[BlockDict]]:
    """Whether content is one item of type `text` that is the block already: then all of it stands as it is."""
    if type(content) is not list or len(content) != 1 or type(item := content[0]) is not dict:
        return False
    return len(item) == 2 and item.get("type") == "text" and type(item.get("text")) is str


def thinking(value: str, provider: str, model: str | None, original: object) -> BlockDict:
    """Reasoning, with the provider's record kept whole: only it can tell what a signature covers."""
    if model:
        opaque = {"provider": provider, "model": model, "data": original}
    else:
        opaque = {"provider": provider, "data": original}
    return {"type": "thinking", "text": value, "opaque": opaque}


def call_block(key: str, name: object, given: object) -> BlockDict:
    """A call; arguments that are no object, or JSON text of one, stand under `input`."""
    found = parsed(given) if type(given) is str else given
    if type(found) is not dict:
        found = {} if given is None else {"input": given}
    named = name if type(name) is str and name and not name.isspace() else "unknown"
    return {"type": "toolUse", "id": key, "name": named, "input": found}


def result_block(key: str, content: list[BlockDict], failed: bool, exit_code: object = None) -> BlockDict:
    """A result; the exit code of a command stands beside it where the format tells it."""
    block: BlockDict = {"type": "toolResult", "id": key, "content": content, "isError": failed}
    if type(exit_code) is int:
        block["exitCode"] = exit_code
    return block


def image(data: object, media_type: object, *, whole: bool = True) -> BlockDict | None:
    """A picture from base64 text; None where that is not what it is.

    Without `whole` its bytes are counted and not kept.
    """
    if not isinstance(data, str) or not data:
        return None
    named = media_type if isinstance(media_type, str) and media_type else "application/octet-stream"
    if not whole:
        size = decoded_size(data)
        return {"type": "image", "media": {"mediaType": named, "bytes": size}} if is_base64(data) else None
    raw = decoded(data)
    return None if raw is None else {"type": "image", "media": {**Media.from_bytes(raw, named).to_dict(), "data": raw}}


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


def says(block: BlockDict) -> bool:
    """Whether there is something to read in the text of a block, blanks being nothing; cut off or not."""
    text: str = block["text"]
    return bool(text and not text.isspace()) or "said" in block.get("more", ())


def beginning(content: list[BlockDict]) -> str:
    """How the texts of a message begin, blanks left out: the first one that says something."""
    for block in content:
        if block["type"] == "text" and (said := block["text"].lstrip()):
            return str(said)
    return ""


def begins_untagged(content: list[BlockDict]) -> bool:
    """Whether one of the texts of a message begins with something else than a tag."""
    return any(not str(block.get("text", "<")).lstrip().startswith("<") for block in content)


def word(value: object) -> str | None:
    """A text that says something, or None."""
    return value if type(value) is str and value and not value.isspace() else None


def text_of(value: object) -> str:
    """A text, or nothing."""
    return value if type(value) is str else ""


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
    # One that is negative makes all of them together negative, and one that is too large makes them too large.
    return _WHOLE.issuperset(map(type, values)) and 0 <= reduce(or_, values) <= MAX_COUNT


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
    if type(value) is dict:
        members: Iterable[object] = value.values()
    elif type(value) is list:
        members = value
    else:
        return type(value) is float and not -_HUGE < value < _HUGE
    if depth >= MAX_DEPTH:
        return True
    for member in members:
        # Most members are texts, and a whole number was read exactly or as a fraction: they are not worth a call.
        if type(member) is not str and type(member) not in _PLAIN and is_odd(member, depth + 1):
            return True
    return False


def json_text(value: object) -> str:
    """A value as JSON text; nothing for no value."""
    return "" if value is None else dumps(clean(value).value).decode()


def usage_dict(fresh: Any, read: Any, write: Any, out: Any, reasoning: object = None) -> dict[str, int]:
    """Tokens of one message under the names of this library; `fresh` leaves cached tokens out."""
    is_whole = type(fresh) is type(read) is type(write) is type(out) is int
    if not is_whole or (fresh | read | write | out) >> _COUNT_BITS:  # as in `counts`; of a negative one -1 is left
        fresh, read, write, out = map(integer, (fresh, read, write, out))
    found = {"input": fresh, "cacheRead": read, "cacheWrite": write, "output": out}
    if reasoning is not None:
        found["reasoning"] = integer(reasoning)
    return found
