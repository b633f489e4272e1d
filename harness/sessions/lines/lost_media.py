"""Media that a message names and nobody has: a line that named them would wait for a file that nobody ever writes."""

from __future__ import annotations

import logging
from collections.abc import Container
from pathlib import Path
from typing import Any

from harness.filesystem import disk
from harness.messages import MessageDict
from harness.sessions.lines.blobs import blob_path
from harness.sessions.lines.references import LOOK, media_in

__all__ = ["lost_media", "without_lost_media"]

_log = logging.getLogger("harness.sessions")


def lost_media(content: Any, held: Container[str], blobs: Path) -> list[str]:
    """The SHA-256 of each medium in these blocks that is neither `held` nor in the folder of contents."""
    return [
        sha256 for sha256 in media_in(content) if sha256 not in held and not disk.has_file(blob_path(blobs, sha256))
    ]


def without_lost_media(
    message: MessageDict, raw: bytes | None, held: Container[str], blobs: Path
) -> tuple[MessageDict, bytes | None]:
    """The message, and its JSON if that is known, with a text in the place of each medium that nobody has."""
    if raw is not None and LOOK not in raw:
        return message, raw
    lost = lost_media(message.get("content"), held, blobs)
    if not lost:
        return message, raw
    names = ", ".join(lost)
    _log.warning("message %r names media that nobody has (%s); a text stands in their place", message.get("id"), names)
    return {**message, "content": _told(message["content"], lost)}, None


def _told(blocks: list[Any], lost: Container[str]) -> list[Any]:
    return [_block(block, lost) if isinstance(block, dict) else block for block in blocks]


def _block(block: dict[str, Any], lost: Container[str]) -> dict[str, Any]:
    if block.get("type") == "toolResult":
        inner = block.get("content")
        return {**block, "content": _told(inner, lost)} if isinstance(inner, list) else block
    gone = next((sha256 for sha256 in media_in([block]) if sha256 in lost), None)
    said = f"[{block.get('type')} {gone}: its bytes were not there to be stored]"
    return {"type": "text", "text": said} if gone else block
