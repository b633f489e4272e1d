"""JSON documents that hold a whole session: read at once, and as far as they go where they were cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from harness.errors import TranscriptRefused
from harness.filesystem import disk
from harness.text import clean, loads, read_json
from harness.transcripts.blocks import is_odd
from harness.transcripts.lines import BOM
from harness.transcripts.source import file_mark

__all__ = ["MAX_DOCUMENT", "Document", "read_document"]

MAX_DOCUMENT = 64 * 1024 * 1024
"""Bytes of the largest document that is read: as a whole it takes several times as much memory."""
_SPACE = " \t\r\n"


class Document(NamedTuple):
    """A document's value; `is_cut` says that its end is missing."""

    value: Any
    is_cut: bool = False


def read_document(path: Path) -> Document | None:
    """The value in a file, None where there is none. Raises `TranscriptRefused` for one that is too large.

    A status line that a program printed in front of the document is stepped over.
    """
    size = file_mark(path).size
    if size > MAX_DOCUMENT:
        text = f"{path} is one JSON document of {size:,} bytes; at most {MAX_DOCUMENT:,} are read; convert it"
        raise TranscriptRefused("unreadable", text)
    raw = disk.read(path).removeprefix(BOM)
    start = min((at for at in (raw.find(b"{"), raw.find(b"[")) if at >= 0), default=-1)
    if start < 0:
        return None
    raw = raw[start:]
    try:
        value = loads(raw)
        if not is_odd(value):
            return Document(value)
    except ValueError:
        pass  # the slow reader takes more than the fast one
    try:
        return Document(clean(read_json(raw)).value)
    except ValueError:
        return _cut(raw.decode("utf-8", "replace"))


def _cut(text: str) -> Document | None:
    """What can be read of an object whose end is missing: its members, and those of the last list."""
    if not text.startswith("{"):
        return None
    decoder, found, at = json.JSONDecoder(parse_constant=str), {}, 1
    try:
        while True:
            key, at = decoder.raw_decode(text, _skip(text, at, ","))
            if not isinstance(key, str):
                break
            at = _skip(text, at, ":")
            if text[at] == "[":
                found[key], at = _members(decoder, text, at + 1)
            else:
                found[key], at = decoder.raw_decode(text, at)
    except (ValueError, IndexError, RecursionError):
        pass  # here the document ends
    return Document(clean(found).value, is_cut=True) if found else None


def _members(decoder: json.JSONDecoder, text: str, at: int) -> tuple[list[Any], int]:
    found: list[Any] = []
    try:
        while text[at := _skip(text, at, ",")] != "]":
            value, at = decoder.raw_decode(text, at)
            found.append(value)
    except (ValueError, IndexError, RecursionError):
        return found, len(text)
    return found, at + 1


def _skip(text: str, at: int, sign: str) -> int:
    while text[at] in _SPACE or text[at] == sign:
        at += 1
    return at
