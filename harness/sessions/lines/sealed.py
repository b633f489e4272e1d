"""Small JSON objects that are overwritten in place: one block of 512 bytes that shows whether it is whole.

A block is one JSON object whose last key is `sum`, then spaces, then a line feed. `sum` is the SHA-256
of the bytes before `,"sum":`. Overwriting one costs a few microseconds; replacing a file by a rename
costs as much as a sync.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.sessions.lines.entries import digest
from harness.text import dumps, loads

__all__ = ["BLOCK_BYTES", "is_sealed", "seal", "unseal"]

BLOCK_BYTES = 512
_SUM = b',"sum":"'


def seal(fields: Mapping[str, Any]) -> bytes:
    """The block of an object that is not empty; longer than a block, and so no valid one, where it does not fit."""
    body = dumps(fields)[:-1]
    block = body + _SUM + digest(body).encode() + b'"}'
    return block.ljust(BLOCK_BYTES - 1) + b"\n"


def is_sealed(raw: bytes) -> bool:
    """Whether bytes are a block, damaged or not; no other JSON of ours ends in a space and a line feed."""
    return len(raw) == BLOCK_BYTES and raw.endswith(b" \n")


def unseal(block: bytes) -> dict[str, Any] | None:
    """The object in a block, without its sum; None if it is damaged, or no block."""
    body, found, rest = block.partition(_SUM)
    if len(block) != BLOCK_BYTES or not found or rest.rstrip(b" \n") != digest(body).encode() + b'"}':
        return None
    try:
        fields = loads(body + b"}")
    except ValueError:
        return None
    return fields if isinstance(fields, dict) else None
