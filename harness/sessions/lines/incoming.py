"""Messages on their way into the ledger: as plain dicts, as JSON, and the media bytes they bring along."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from harness.errors import ConfigError
from harness.ids import new_id
from harness.messages import Block, MediaBlock, MessageDict, Msg, ToolResult
from harness.sessions.lines.entries import Entry
from harness.sessions.lines.shapes import is_message, wrong_message
from harness.text import clean, dumps, is_clean

__all__ = ["media_bytes", "media_named", "plain_message", "storable", "storable_message"]

_log = logging.getLogger("harness.sessions")


def plain_message(message: MessageDict | Msg) -> MessageDict:
    """The dict of a message, behind the text edge and with an id."""
    data = _cleaned(message) if isinstance(message, Msg) else message
    return data if isinstance(data.get("id"), str) else {"id": new_id(), **data}


def _cleaned(message: Msg) -> MessageDict:
    stored = message.to_dict()
    return stored if is_clean(stored) else message.cleaned().to_dict()


def storable_message(data: MessageDict) -> tuple[MessageDict, bytes]:
    """A message as readers will take it, and the bytes that are stored and hashed.

    A usage that no reader takes is left out: it is not known. Raises `ConfigError` for what is no message.
    """
    data, raw = storable(data)
    if is_message(data):
        return data, raw
    wrong = wrong_message(data)
    if not wrong.startswith("message.usage"):
        raise ConfigError(
            f"what was to be stored is no message: its part {wrong} is not what one has; nothing was stored"
        )
    _log.warning("message %r was stored without its usage, of which %s cannot be", data["id"], wrong)
    return storable_message({key: value for key, value in data.items() if key != "usage"})


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


def media_named(held: Mapping[str, bytes], entry: Entry | None) -> dict[str, bytes]:
    """Those of the media that a message names as it was logged: a redactor may have taken a picture out of it."""
    raw = dumps(entry.data["message"]) if entry else b""
    return {sha256: data for sha256, data in held.items() if sha256.encode() in raw}


def _of(blocks: Iterable[Block]) -> Iterable[tuple[str, bytes]]:
    for block in blocks:
        if isinstance(block, ToolResult):
            yield from _of(block.content)
        elif isinstance(block, MediaBlock) and block.media and block.media.data is not None:
            yield block.media.sha256, block.media.data
