"""From whatever a tool returned to a `ToolResult` that can be stored and shown to a model."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Any

from harness.messages import (
    Block,
    BlockBase,
    Media,
    MediaBlock,
    Msg,
    TextBlock,
    ToolResult,
    block_from_dict,
)
from harness.text import clean, clean_text, dumps, error_text, said

__all__ = ["NO_OUTPUT", "as_text", "error_result", "render_result"]

NO_OUTPUT = "[no output]"
"""Stands where a tool had nothing to say; providers refuse empty results."""

_INLINE_CHARS = 100_000
_MEDIA_KINDS = ("image", "audio", "video")

log = logging.getLogger("harness.tools")


def as_text(value: object) -> str:
    """The text a model gets for any value: a text as it is, nothing for None, JSON for the rest."""
    return _text(value)[0]


def error_result(call_id: str, name: str, text: str) -> ToolResult:
    """A result that tells the model what went wrong."""
    return _result(call_id, name, [TextBlock(text=clean_text(text))], is_error=True)


async def render_result(call_id: str, name: str, value: object) -> ToolResult:
    """The result for any value a tool returned. Text stays, blocks stay, the rest becomes JSON text.

    What could not be stored as it was is named in the block's `cleaned`. Never raises: a value that
    cannot even be looked at becomes an error result. Long values are walked off the event loop.
    """
    try:
        if (isinstance(value, str) and len(value) > _INLINE_CHARS) or not isinstance(value, str | BlockBase | None):
            return await asyncio.to_thread(_render, call_id, name, value)
        return _render(call_id, name, value)
    except Exception as error:  # the value is foreign: its methods may raise anything
        log.warning("the value that tool %s returned cannot be read", name, exc_info=True)
        kind = type(value).__name__
        return error_result(call_id, name, f"Error: the tool returned a {kind} that cannot be read: {said(error)}")


def _render(call_id: str, name: str, value: object) -> ToolResult:
    try:
        if isinstance(value, ToolResult):
            value = value.checked()
            blocks, marks = _clean_blocks(value.content)
            return _result(call_id, name, blocks, marks, value)
        blocks, marks = _blocks(value)
        return _result(call_id, name, blocks, marks)
    except StopIteration as error:  # may not cross the border of a thread
        raise RuntimeError(error_text(error)) from error


def _blocks(value: object) -> tuple[list[Block], set[str]]:
    if isinstance(value, Msg):
        value = value.checked()
        return _clean_blocks(value.blocks)
    members = list(value) if isinstance(value, list | tuple) else [value]
    if any(isinstance(member, BlockBase | Media) for member in members):
        return _clean_blocks(_as_block(member) for member in members)
    text, marks = _text(value)
    return [TextBlock(text=text)], marks


def _as_block(member: object) -> Block:
    if isinstance(member, Media):
        kind = member.media_type.partition("/")[0]
        return MediaBlock.model_validate({"type": kind if kind in _MEDIA_KINDS else "file", "media": member.checked()})
    if isinstance(member, BlockBase):
        return member.checked()  # type: ignore[return-value]  # `Block` is the closed set of its subclasses
    return TextBlock(text=as_text(member))


def _text(value: object) -> tuple[str, set[str]]:
    if value is None:
        return "", set()
    cleaned = clean(value)
    text = cleaned.value if isinstance(cleaned.value, str) else dumps(cleaned.value).decode()
    return text, set(cleaned.marks)


def _clean_blocks(blocks: Iterable[Block]) -> tuple[list[Block], set[str]]:
    result: list[Block] = []
    marks: set[str] = set()
    for block in blocks:
        cleaned = clean(block.to_dict())
        marks.update(cleaned.marks)
        result.append(_rebuilt(block, cleaned.value) if cleaned.marks else block)
    return result, marks


def _rebuilt(block: Block, stored: dict[str, Any]) -> Block:
    rebuilt = block_from_dict(stored)
    if isinstance(block, MediaBlock) and isinstance(rebuilt, MediaBlock) and block.media and rebuilt.media:
        media = rebuilt.media.model_copy(update={"data": block.media.data})  # bytes do not pass through a dict
        return rebuilt.model_copy(update={"media": media})
    return rebuilt


def _result(
    call_id: str,
    name: str,
    blocks: Sequence[Block],
    marks: Iterable[str] = (),
    made: ToolResult | None = None,
    *,
    is_error: bool = False,
) -> ToolResult:
    content = tuple(block for block in blocks if not (isinstance(block, TextBlock) and not block.text.strip()))
    fields: dict[str, Any] = {"id": call_id, "name": name, "content": content or NO_OUTPUT, "is_error": is_error}
    if made is not None:
        kept = {"is_error": made.is_error, "synthetic": made.synthetic, "opaque": made.opaque}
        fields = {**(made.model_extra or {}), **fields, **kept}
    if marks:
        fields["cleaned"] = sorted(marks)
    return ToolResult(**fields)
