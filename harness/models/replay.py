"""What of a history may go to which provider.

Reasoning is sealed by whoever made it: it goes back unchanged to the same provider and model, or not
at all. Ids of tool calls are made by providers too, and another one may refuse their form. Both are
decided here, for each request, on what goes out; what is stored is never rewritten.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from harness.messages import Block, MediaBlock, MessageDict, Msg, block_from_dict

__all__ = ["for_provider"]

_Message = TypeVar("_Message", Msg, MessageDict)
_WELL_FORMED = re.compile(r"[A-Za-z0-9_-]{1,64}")
_BlockDict = dict[str, Any]


def for_provider(messages: Sequence[_Message], provider: str, model: str) -> list[_Message]:
    """The messages as `model` of `provider` may see them. Messages that need no change are the same objects.

    - Reasoning made elsewhere, altered, cut or unsigned is left out, and with it all other reasoning
      of the same assistant message: a provider wants all of it or none.
    - Payloads of other providers and models are taken off the blocks that carry them.
    - Ids of tool calls from other providers that are not of the form `[A-Za-z0-9_-]{1,64}` are
      replaced, in call and result alike, by ids that depend on the old id only.
    - An assistant message of which nothing is left, or in which nothing ever was, is left out.
    """
    target = _Target(provider, model)
    edited = (_edit(message, target) for message in messages)
    return [message for message in edited if message is not None]


@dataclass(slots=True)
class _Target:
    """Where the messages go, and the ids renamed on the way so far."""

    provider: str
    model: str
    renamed: dict[str, str] = field(default_factory=dict)

    def made(self, opaque: Mapping[str, Any]) -> bool:
        """Whether this payload is of the target's making and still as it was made."""
        if opaque.get("altered"):
            return False
        return opaque.get("provider") == self.provider and opaque.get("model", "") == self.model


def _edit(message: _Message, target: _Target) -> _Message | None:
    if isinstance(message, Msg):
        return _edit_msg(message, target)
    before = message.get("content")
    if not isinstance(before, list):
        return message
    after = _edit_blocks(before, message.get("role"), message.get("provider"), target)
    if _says_nothing(message.get("role"), after):
        return None
    if after is before:
        return message
    return {**message, "content": after} if after else None


def _edit_msg(message: Msg, target: _Target) -> Msg | None:
    before = [block.to_dict() for block in message.blocks]
    after = _edit_blocks(before, message.role, message.provider, target)
    if _says_nothing(message.role, after):
        return None
    if after is before:
        return message
    known = {id(data): block for data, block in zip(before, message.blocks, strict=True)}
    blocks = tuple(known.get(id(data)) or _rebuilt(data, message.blocks) for data in after)
    return message.model_copy(update={"blocks": blocks}) if blocks else None


def _says_nothing(role: Any, blocks: Iterable[_BlockDict]) -> bool:
    """Whether this is an answer without a word, which providers refuse to be shown."""
    return role == "assistant" and all(_is_blank(block) for block in blocks)


def _is_blank(block: _BlockDict) -> bool:
    return block.get("type") == "text" and "opaque" not in block and not str(block.get("text", "")).strip()


def _rebuilt(data: _BlockDict, blocks: Iterable[Block]) -> Block:
    """The block of changed data; media that are not stored yet keep their bytes."""
    block = block_from_dict(data)
    if not isinstance(block, MediaBlock) or block.media is None:
        return block
    known = {old.media.sha256: old.media for old in blocks if isinstance(old, MediaBlock) and old.media}
    return block.model_copy(update={"media": known[block.media.sha256]})


def _edit_blocks(before: list[_BlockDict], role: Any, origin: Any, target: _Target) -> list[_BlockDict]:
    """The edited blocks, or the very list that came in."""
    keeps_thinking = all(_sendable(block, target) for block in before if block.get("type") == "thinking")
    after: list[_BlockDict] = []
    changed = False
    for block in before:
        if block.get("type") == "thinking" and not keeps_thinking:
            changed = True
            continue
        new = _edit_block(block, role, origin, target)
        changed = changed or new is not block
        after.append(new)
    return after if changed else before


def _edit_block(block: _BlockDict, role: Any, origin: Any, target: _Target) -> _BlockDict:
    opaque = block.get("opaque")
    if opaque is not None and not target.made(opaque):
        block = {key: value for key, value in block.items() if key != "opaque"}
    kind = block.get("type")
    if kind not in ("toolUse", "toolResult"):
        return block
    if kind == "toolUse" and role == "assistant":
        _rename(str(block.get("id", "")), origin, target)
    new_id = target.renamed.get(block.get("id", ""))
    return block if new_id is None else {**block, "id": new_id}


def _rename(call_id: str, origin: Any, target: _Target) -> None:
    """Decide under which id a call and the results behind it go out."""
    if origin == target.provider or _WELL_FORMED.fullmatch(call_id):
        target.renamed.pop(call_id, None)
    else:
        target.renamed[call_id] = "call_" + hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _sendable(block: _BlockDict, target: _Target) -> bool:
    opaque = block.get("opaque")
    return opaque is not None and target.made(opaque) and _is_whole(opaque.get("data"))


def _is_whole(data: Any) -> bool:
    """Whether a payload is complete; only the widely used signed form can be judged from outside."""
    if data is None:
        return False
    if not isinstance(data, Mapping) or data.get("type") != "thinking":
        return True
    return bool(data.get("thinking")) and bool(data.get("signature"))
