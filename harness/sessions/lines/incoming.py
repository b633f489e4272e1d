"""Messages on their way into the ledger: as plain dicts, as JSON, and the media bytes they bring along."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from harness.errors import ConfigError
from harness.ids import named_bytes, new_id
from harness.messages import Block, MediaBlock, MessageDict, Msg, TextBlock, ToolResult
from harness.sessions.lines.entries import Entry
from harness.sessions.lines.references import media_in
from harness.sessions.lines.shapes import is_message, wrong_message
from harness.text import clean, clean_json, dumps

__all__ = ["media_bytes", "media_named", "plain_message", "storable", "storable_message"]

_log = logging.getLogger("harness.sessions")


def plain_message(message: MessageDict | Msg) -> tuple[MessageDict, bytes | None]:
    """The dict of a message, behind the text edge and with an id; and its JSON, where that was made on the way."""
    if isinstance(message, Msg):
        stored = message.to_dict()
        raw = clean_json(stored)
        return (stored, raw) if raw else (message.cleaned().to_dict(), None)
    return (message if isinstance(message.get("id"), str) else {"id": new_id(), **message}), None


def storable_message(data: MessageDict, raw: bytes | None = None) -> tuple[MessageDict, bytes]:
    """A message as readers will take it, and the bytes that are stored and hashed; `raw` if they are known.

    A usage that no reader takes is left out: it is not known. Raises `ConfigError` for what is no message.
    """
    if raw is None:
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


def media_bytes(message: MessageDict | Msg, beside: Mapping[str, bytes] | None = None) -> dict[str, bytes]:
    """The bytes of the media a message carries, by SHA-256, those within tool results included, and those `beside` it.

    Raises `ConfigError` for bytes that are not what they are named by: they would take the place of the true ones.
    """
    held = dict(beside or {})
    if isinstance(message, Msg):
        for block in message.blocks:
            if type(block) is not TextBlock:  # most messages are text and no more
                held.update(_of(message.blocks))
                break
    try:
        return {sha256: named_bytes(sha256, data) for sha256, data in held.items()}
    except ValueError as error:
        raise ConfigError(str(error)) from None


def media_named(held: Mapping[str, bytes], entry: Entry | None) -> dict[str, bytes]:
    """Those of the media that a message names as it was logged: a redactor may have taken a picture out of it."""
    named = {*media_in(entry.data["message"].get("content"))} if entry else frozenset[str]()
    return {sha256: data for sha256, data in held.items() if sha256 in named}


def _of(blocks: Iterable[Block]) -> Iterable[tuple[str, bytes]]:
    for block in blocks:
        if isinstance(block, ToolResult):
            yield from _of(block.content)
        elif isinstance(block, MediaBlock) and block.media and block.media.data is not None:
            yield block.media.sha256, block.media.data
