"""What a line must look like to be one: the values that readers rely on, and no others.

A line may be good JSON and still say what nobody wrote: a number where a text belongs. Such a line is damage like
one that cannot be parsed, and is known here, once, so that nobody behind has to look again. Fields that are
only passed on, and blocks whose fields do not fit their type, are nobody's damage: they are kept as they came.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

__all__ = ["is_entry", "is_message", "may_refer", "wrong_message", "wrong_part"]

_ROLES = ("user", "assistant", "tool", "system")
_NUMBERS = frozenset({"input", "cacheRead", "cacheWrite", "output", "reasoning"})
_TYPES: Mapping[str, type] = {
    "content": list, "model": str, "provider": str, "stop": str, "name": str, "usage": dict, "meta": dict,
}  # fmt: skip
_FEWEST = 3
"""Fields that every message has."""
_PLAIN = frozenset({"id", "role", "content", "model", "provider", "stop", "usage"})
_INTEGERS = frozenset({int})
_ENVELOPE = ("parentId", "requestId", "turnId")


def is_entry(data: Any) -> TypeGuard[dict[str, Any]]:
    """Whether this, read from a line, is an entry: it says what it is and which, and a message in it is one."""
    return may_refer(data) is not None


def may_refer(data: Any) -> bool | None:
    """Whether a part of this entry may stand in a file, where False is certain; None if this is no entry.

    Asked of every line that is read: what is surely right is known at once, and only the rest is looked at closely.
    """
    if type(data) is not dict:
        return None
    try:
        kind, entry_id = data["type"], data["id"]
    except KeyError:
        return None
    if (
        type(entry_id) is not str
        or ("parentId" in data and type(data["parentId"]) is not str)
        or ("turnId" in data and type(data["turnId"]) is not str)
        or ("requestId" in data and type(data["requestId"]) is not str)
    ):
        return None
    if kind != "message":
        return True if type(kind) is str else None
    message = data.get("message")
    if _is_plain(message):
        return False
    return None if wrong_message(message) else True


def wrong_part(data: Mapping[str, Any]) -> str:
    """What in an object keeps it from being an entry, as a path; empty if it is one."""
    if type(data.get("type")) is not str or type(data.get("id")) is not str:
        return "type or id"
    wrong = next((key for key in _ENVELOPE if key in data and type(data[key]) is not str), "")
    return wrong_message(data.get("message")) if not wrong and data["type"] == "message" else wrong


def is_message(message: Any) -> bool:
    """Whether this has the form of a message."""
    return _is_plain(message) or not wrong_message(message)


def wrong_message(message: Any) -> str:
    """The part that keeps an object from being a message; empty if it is one."""
    if type(message) is not dict:
        return "message"
    if type(message.get("id")) is not str:
        return "message.id"
    if message.get("role") not in _ROLES:
        return "message.role"
    for key, value in message.items():
        kind = _TYPES.get(key)
        if kind is not None and type(value) is not kind and not _is_elsewhere(value):
            return f"message.{key}"
    for block in message.get("content", ()):
        if type(block) is not dict or type(block.get("type")) is not str:
            return "message.content"
    for key, value in message["usage"].items() if "usage" in message else ():
        if key in _NUMBERS and type(value) is not int:
            return f"message.usage.{key}"
    return ""


def _is_plain(message: Any) -> bool:
    """Whether this is a message as most are, with nothing of it in a file; False says nothing."""
    if type(message) is not dict:
        return False
    try:
        content = message["content"]
        if type(content) is not list or type(message["id"]) is not str or message["role"] not in _ROLES:
            return False
        for block in content:
            if type(block) is not dict or type(block["type"]) is not str or "stored" in block:
                return False
    except KeyError:
        return False
    return len(message) == _FEWEST or _has_plain_rest(message)


def _has_plain_rest(message: Mapping[str, Any]) -> bool:
    """Whether all that a message has beside the fewest fields is what a model's has."""
    if not message.keys() <= _PLAIN:
        return False
    get = message.get
    usage = get("usage")
    return (
        type(get("model", "")) is str
        and type(get("provider", "")) is str
        and type(get("stop", "")) is str
        and (usage is None or (type(usage) is dict and {*map(type, usage.values())} <= _INTEGERS))
        and (usage is not None or "usage" not in message)
    )


def _is_elsewhere(value: Any) -> bool:
    """Whether a file holds the value; see `blobs`."""
    return type(value) is dict and value.keys() == {"stored"}
