"""What of a message or an entry is content, which a redactor may change, and what is structure, which nobody may.

Structure is what lines, turns, calls and files are found by, and what readers decide by. Of the entries of this
library the content is listed; of messages, which carry blocks and fields of strangers, the structure is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from harness.errors import ConfigError
from harness.sessions.lines.listed import FILES

__all__ = ["has_content", "refuse_entry", "with_structure"]

_Part: TypeAlias = "Mapping[str, _Part] | None"
"""The members that are content; None where all of it is."""

_CARD: _Part = {"asked": None, "answered": None, "did": {"args": None, "error": None}}
_ENTRIES: Mapping[str, _Part] = {
    "artifact": {"payload": None},
    "binding": {"options": None},
    "branch": {},
    "compaction": {"summary": None, "cards": _CARD},
    "custom": {"data": None},
    "label": {"name": None},
    "request_end": {},
    "system": {"text": None},
    "turn_card": _CARD,
}
"""Entries of other types are an application's own: all of them is content."""
_ERROR: _Part = {"error": None}
_EVENTS: Mapping[str, _Part] = {
    "abort": {"message": None},
    "arguments_cut": {},
    "capacity": {},
    "compaction_begin": {},
    "compaction_end": _ERROR,
    "damage": {},
    "eviction": {},
    "fallback": _ERROR,
    "hook_failure": {"message": None},
    "model_switch": {},
    "overflow": _ERROR,
    "packet": {"text": None},
    "packet_begin": {},
    "packet_failed": _ERROR,
    "prefix_changed": {},
    "replace": {"toolUse": {"input": None}},
    "retry": _ERROR,
    "title": {"title": None},
    "tools_changed": {},
}
"""By kind; of events that are not here all data is content."""
_MODULES: Mapping[str, _Part] = {
    "active_tool_groups": {},
    "agent_meta": {"description": None},
    "handoff": {},
}
"""By module; of states that are not here the whole value is content."""

_OF_THE_LINE = frozenset(
    {"type", "id", "parentId", "seq", "prevHash", "timestamp", "turnId", "requestId", "inherited", FILES}
)
"""What a line says of itself, beside the fields of its type."""
_MESSAGE = frozenset({"id", "role", "model", "provider", "stop", "usage"})
_BLOCK = frozenset({"type", "id", "isError", "synthetic", "evicted", "handoff"})
_TOOL = frozenset({"toolUse", "toolResult"})
_MEDIA = frozenset({"sha256", "mediaType", "bytes"})
_OPAQUE = frozenset({"provider", "model"})


def has_content(kind: str, fields: Mapping[str, Any]) -> bool:
    """Whether an entry of this kind, or a message, has anything that may be changed."""
    part = _content_of(kind, fields)
    return kind == "message" or part is None or any(key in fields and part[key] != {} for key in part)


def refuse_entry(kind: str, fields: Mapping[str, Any]) -> None:
    """Raise `ConfigError` for what nobody adds by hand: entries that others write, and what a line says of itself."""
    if kind in ("message", "header"):
        raise ConfigError(f"a {kind} is not added by hand; use add_message, or describe before the first line")
    if not _OF_THE_LINE.isdisjoint(fields):
        raise ConfigError(
            f"a {kind} entry cannot have {_forged(fields)}, which is the ledger's own; put it in a field `data`"
        )


def with_structure(kind: str, before: Mapping[str, Any], after: Any) -> dict[str, Any]:
    """What `after` has of content, in the structure of `before`: a message, or the fields of an entry of this kind.

    Raises ValueError, naming the member, where `after` has not the form of `before`.
    """
    if not isinstance(after, dict):
        raise ValueError(f"gave a {type(after).__name__} for a {kind}")
    if kind == "message":
        return _message(before, after)
    merged = dict(_merged(_content_of(kind, before), before, after, kind))
    if not _OF_THE_LINE.isdisjoint(merged):
        raise ValueError(f"gave a {_forged(merged)}, which is the ledger's own")
    return merged


def _forged(fields: Mapping[str, Any]) -> str:
    return f"`{min(_OF_THE_LINE & fields.keys())}`"


def _content_of(kind: str, fields: Mapping[str, Any]) -> _Part:
    if kind == "event":
        return {"data": _EVENTS.get(str(fields.get("kind")))}
    if kind == "state":
        return {"value": _MODULES.get(str(fields.get("module")))}
    return _ENTRIES.get(kind)


def _merged(part: _Part, before: Any, after: Any, name: str) -> Any:
    if type(after) is not type(before):
        raise ValueError(f"gave a {type(after).__name__} for `{name}`, which is a {type(before).__name__}")
    if part is None:
        return after
    if isinstance(before, list):
        _same_length(before, after, name)
        return [_merged(part, *pair, name) for pair in zip(before, after, strict=True)]
    if not isinstance(before, dict):
        return before
    if missing := [key for key in part if key in before and key not in after]:
        raise ValueError(f"gave no `{missing[0]}`")
    return {key: _merged(part[key], value, after[key], key) if key in part else value for key, value in before.items()}


def _same_length(before: list[Any], after: list[Any], name: str) -> None:
    if len(before) != len(after):
        raise ValueError(f"gave {len(after)} members for `{name}`, which has {len(before)}")


def _message(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    message = _kept(before, after, _MESSAGE)
    if "content" in before:
        message["content"] = _blocks(before["content"], after.get("content"))
    if not isinstance(message.get("meta", {}), dict):
        raise ValueError("gave no object for `meta`")
    return message


def _kept(before: Mapping[str, Any], after: Mapping[str, Any], structure: Iterable[str]) -> dict[str, Any]:
    """`after` with these members of `before`, in the order of `before`, and with none of them that it had not."""
    merged = {
        key: value if key in structure else after[key]
        for key, value in before.items()
        if key in structure or key in after
    }
    return merged | {key: value for key, value in after.items() if key not in merged and key not in structure}


def _blocks(before: Any, after: Any) -> list[dict[str, Any]]:
    """A block may be left out, and a text put in; those that stay are known by their structure then."""
    if not isinstance(after, list) or not all(isinstance(block, dict) for block in after):
        raise ValueError("gave no list of blocks for `content`")
    if len(before) == len(after):
        return [_block(*pair) for pair in zip(before, after, strict=True)]
    if _tools(before) != _tools(after):
        raise ValueError("gave other tool calls or results for `content`")
    left = [*before]
    return [_one_of(left, block) for block in after]


def _one_of(left: list[Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """A block in the structure of the one it was made of, which is taken out of those that are left."""
    alike = [block for block in left if _structure(block) == _structure(after)]
    # Of several, the one whose payload it has: with another one it is of no use to its maker.
    same = [block for block in alike if block.get("opaque") == after.get("opaque")]
    if found := [*same, *alike][:1]:
        left.remove(found[0])
        return _block(found[0], after)
    if not _is_text(after):
        raise ValueError("gave a block for `content` that was not there")
    return _text(after)


def _structure(block: Mapping[str, Any]) -> dict[str, Any]:
    held = {key: block[key] for key in block if key in _BLOCK}
    for name, structure in (("media", _MEDIA), ("opaque", _OPAQUE)):
        if isinstance(found := block.get(name), dict):
            held[name] = {key: found[key] for key in found if key in structure}
    return held


def _tools(blocks: Iterable[Mapping[str, Any]]) -> list[tuple[Any, Any, Any]]:
    """What pairs calls with their results."""
    return [(block["type"], block.get("id"), block.get("name")) for block in blocks if block.get("type") in _TOOL]


def _is_text(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "text" and isinstance(block.get("text"), str)


def _text(block: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "text", "text": block["text"]}


def _block(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """A text may take the place of any block but a call or a result."""
    kind = before.get("type")
    if kind not in _TOOL and kind != "text" and _is_text(after):
        return _text(after)
    block = _kept(before, after, _BLOCK | {"name"} if kind in _TOOL else _BLOCK)
    if kind == "toolResult" and "content" in before:
        block["content"] = _blocks(before["content"], after.get("content"))
    for name, structure in (("media", _MEDIA), ("opaque", _OPAQUE)):
        if name not in before:
            block.pop(name, None)
        elif isinstance(held := before[name], dict) and name in block:
            block[name] = _member(held, block[name], structure, name)
    if isinstance(before.get("opaque"), dict) and block.get("opaque") not in (None, before["opaque"]):
        block["opaque"]["altered"] = True  # of no use to its maker any more, and not to be sent
    return block


def _member(before: Mapping[str, Any], after: Any, structure: Iterable[str], name: str) -> dict[str, Any]:
    if not isinstance(after, dict):
        raise ValueError(f"gave no object for `{name}`")
    return _kept(before, after, structure)
