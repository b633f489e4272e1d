"""Media that a message names and nobody has: a line that named them would wait for a file that nobody ever writes."""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import Any

from harness.errors import PersistenceError
from harness.filesystem import disk, pool
from harness.messages import Block, MediaBlock, MessageDict, Msg, TextBlock, ToolResult, UnknownBlock
from harness.sessions.lines.blobs import blob_path
from harness.sessions.lines.references import LOOK, media_in

__all__ = ["NamedMedia"]

_log = logging.getLogger("harness.sessions")


class NamedMedia:
    """Which media are stored in a folder of contents, as far as somebody has looked while the session was his."""

    def __init__(self, blobs: Path) -> None:
        self._blobs = blobs
        self._stored: dict[str, bool] = {}

    async def look_for(self, messages: Iterable[MessageDict | Msg], held: Container[str]) -> list[str]:
        """Look, in one hop to a worker, for the media that messages name and do not bring; the SHA-256 of the lost.

        Where no message names any, nothing is done.
        """
        named = {sha256: None for message in messages for sha256 in _named(message) if sha256 not in held}
        asked = [sha256 for sha256 in named if not self._stored.get(sha256)]
        if asked:
            self._stored.update(await pool.run(self._look, asked))
        return [sha256 for sha256 in named if not self._stored[sha256]]

    def without_lost(
        self, message: MessageDict, raw: bytes | None, held: Container[str]
    ) -> tuple[MessageDict, bytes | None]:
        """The message, and its JSON if that is known, with a text in the place of each medium that nobody has.

        What nobody has looked for is looked for here and now.
        """
        if raw is not None and LOOK not in raw:
            return message, raw
        lost = [sha256 for sha256 in media_in(message.get("content")) if sha256 not in held and self._is_lost(sha256)]
        if not lost:
            return message, raw
        names = ", ".join(lost)
        _log.warning("message %r names media that nobody has (%s); a text stands in their place", message["id"], names)
        return {**message, "content": _told(message["content"], lost)}, None

    def forget(self) -> None:
        """Others may write from here on, and remove."""
        self._stored.clear()

    def _is_lost(self, sha256: str) -> bool:
        if sha256 not in self._stored:
            try:
                self._stored.update(self._look([sha256]))
            except (OSError, PersistenceError):
                # What was said is logged whatever the disk says; `verify` tells it should the file really be missing.
                _log.warning("whether somebody has the medium %s cannot be found out; it is named as it was", sha256)
                return False
        return not self._stored[sha256]

    def _look(self, names: Iterable[str]) -> dict[str, bool]:
        return {sha256: disk.has_file(blob_path(self._blobs, sha256)) for sha256 in names}


def _named(message: MessageDict | Msg) -> Iterator[str]:
    """The media that a message names and does not bring."""
    return _without_bytes(message.blocks) if isinstance(message, Msg) else media_in(message.get("content"))


def _without_bytes(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, TextBlock):
            continue
        if isinstance(block, ToolResult):
            yield from _without_bytes(block.content)
        elif isinstance(block, MediaBlock):
            if block.media and block.media.data is None:
                yield block.media.sha256
        elif isinstance(block, UnknownBlock):
            yield from media_in([block.to_dict()])


def _told(blocks: list[Any], lost: Container[str]) -> list[Any]:
    return [_block(block, lost) if isinstance(block, dict) else block for block in blocks]


def _block(block: dict[str, Any], lost: Container[str]) -> dict[str, Any]:
    if block.get("type") == "toolResult":
        inner = block.get("content")
        return {**block, "content": _told(inner, lost)} if isinstance(inner, list) else block
    gone = next((sha256 for sha256 in media_in([block]) if sha256 in lost), None)
    said = f"[{block.get('type')} {gone}: its bytes were not there to be stored]"
    return {"type": "text", "text": said} if gone else block
