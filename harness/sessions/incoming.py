"""Messages on their way into the ledger: as plain dicts, as JSON, and the media bytes they bring along."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness.ids import new_id
from harness.messages import Block, MediaBlock, MessageDict, Msg, ToolResult
from harness.text import clean, dumps, is_clean

__all__ = ["media_bytes", "message_json", "plain_message", "storable"]


def plain_message(message: MessageDict | Msg) -> MessageDict:
    """The dict of a message, behind the text edge and with an id."""
    data = _cleaned(message) if isinstance(message, Msg) else message
    return data if isinstance(data.get("id"), str) else {"id": new_id(), **data}


def _cleaned(message: Msg) -> MessageDict:
    stored = message.to_dict()
    return stored if is_clean(stored) else message.cleaned().to_dict()


def message_json(data: MessageDict) -> bytes:
    """The bytes that are stored and hashed."""
    try:
        return dumps(data)
    except TypeError:  # it did not come through the text edge
        return dumps(clean(data).value)


def storable(fields: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """The fields themselves if they can be stored, else behind the text edge; and their JSON."""
    try:
        return fields, dumps(fields)
    except TypeError:
        cleaned = dict(clean(fields).value)
        return cleaned, dumps(cleaned)


def media_bytes(message: MessageDict | Msg) -> dict[str, bytes]:
    """The bytes of the media a message carries, by SHA-256, those within tool results included."""
    return dict(_of(message.blocks)) if isinstance(message, Msg) else {}


def _of(blocks: Iterable[Block]) -> Iterable[tuple[str, bytes]]:
    for block in blocks:
        if isinstance(block, ToolResult):
            yield from _of(block.content)
        elif isinstance(block, MediaBlock) and block.media and block.media.data is not None:
            yield block.media.sha256, block.media.data
