"""The bytes of one picture of a session, when somebody wants to see it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from harness.errors import ConfigError
from harness.sessions.lines.blobs import read_blob
from harness.transcripts.blocks import integer
from harness.transcripts.opening import open_session
from harness.transcripts.windows import page

__all__ = ["MAX_MEDIA", "media"]

MAX_MEDIA = 32 * 1024 * 1024
"""Bytes of the largest medium that is given out unless asked otherwise."""
_REF = re.compile(r"(?P<key>[br]\d{1,18}(?:-\d{1,18})?)\.(?P<block>\d{1,9})(?:\.(?P<part>\d{1,9}))?", re.ASCII)


def media(
    source: str | os.PathLike[str], session_id: str | None, ref: str, *, max_bytes: int = MAX_MEDIA
) -> tuple[bytes, str]:
    """The bytes and media type behind the `ref` of a block in a page.

    Blocks while it reads. Raises `ConfigError` for a reference that leads to none, and for one over `max_bytes`.
    """
    found = _REF.fullmatch(ref)
    if found is None:
        raise ConfigError(f"{ref[:80]!r} is no reference to a medium; take the `ref` of one in a page")
    block = _block(source, session_id, found)
    named = block.get("media")
    if not isinstance(named, dict):
        raise ConfigError(f"no medium that can be read is stored under {ref!r}; take the `ref` of one in a page")
    data = named.get("data")
    size = len(data) if isinstance(data, bytes) else integer(named.get("bytes"))
    if size > max_bytes:
        raise ConfigError(f"the medium {ref!r} has {size:,} bytes, more than {max_bytes:,}; raise the limit")
    if not isinstance(data, bytes):
        path = open_session(Path(source), session_id).path
        data = read_blob(path.parent / "files", str(named.get("sha256")))
    return data, str(named.get("mediaType", "application/octet-stream"))


def _block(source: str | os.PathLike[str], session_id: str | None, found: re.Match[str]) -> dict[str, Any]:
    shown = page(source, session_id, where="around", cursor=found["key"], cap=None, min_turns=1, window=1)
    turn = next((turn for turn in shown.turns if turn.key == found["key"]), None)
    content: Any = turn.blocks if turn is not None else []
    block: dict[str, Any] = {}
    for step in (found["block"], found["part"]):
        if step is not None:
            if not isinstance(content, list) or int(step) >= len(content) or not isinstance(content[int(step)], dict):
                raise ConfigError(f"there is no block {found[0]!r} in this session; take the `ref` of one in a page")
            block = content[int(step)]
            content = block.get("content")
    return block
