"""A closed turn as a request shows it in full: all that was said, and what tools answered in short.

Reasoning and sealed payloads belong to the turn that is open; in a closed one they are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harness.messages import MessageDict
from harness.models.tokens import estimate_tokens
from harness.sessions.lines.blobs import block_text
from harness.sessions.lines.entries import EntryDict
from harness.sessions.view.digests import result_digest
from harness.sessions.view.projection import Turn
from harness.sessions.view.turns import blocks_of

__all__ = ["evidence_id", "full_record", "full_tokens"]

_MEDIA = frozenset({"image", "audio", "video", "file"})


def evidence_id(number: int, ordinal: int) -> str:
    """The name of a tool result: the number of its turn, and which of that turn's results it is, from 1."""
    return f"{number}.{ordinal}"


def full_record(turn: Turn, number: int) -> tuple[MessageDict, ...]:
    """The messages that show a closed turn in full; `number` is the turn's, from 1.

    Every call has its result and every result its call: a call without a result is left out, and an
    assistant's message of which nothing is left. Results are digests (`result_digest`), errors are
    whole, media in results are named. Messages keep their ids; one that needs no change is the same object.
    """
    shown: list[MessageDict] = []
    made = 0
    for message, after in zip(turn.messages, [*turn.messages[1:], {}], strict=True):
        if message.get("role") == "tool":
            shown.append(_answered(message, number, made))
        elif message.get("role") != "assistant":
            shown.append(message)
        elif said := _said(message, after):
            shown.append(said)
        made += len(blocks_of(message, "toolResult"))
    return tuple(shown)


def full_tokens(messages: Iterable[MessageDict]) -> int:
    """What these messages cost to show, estimated."""
    return sum(estimate_tokens(message) for message in messages)


def _said(message: MessageDict, after: MessageDict) -> MessageDict | None:
    """What the assistant said and which tools it called that answered; None where that is nothing."""
    content = message.get("content")
    if not isinstance(content, list):
        return message if content else None
    results = blocks_of(after, "toolResult") if after.get("role") == "tool" else []
    answered = {str(block.get("id")) for block in results}
    kept = [_plain(block) for block in content if isinstance(block, dict) and _is_shown(block, answered)]
    return _with_content(message, kept) if kept else None


def _is_shown(block: EntryDict, answered: set[str]) -> bool:
    kind = block.get("type")
    if kind == "text":
        return bool(str(block.get("text", "")).strip())
    return str(block.get("id")) in answered if kind == "toolUse" else kind != "thinking"


def _answered(message: MessageDict, number: int, made: int) -> MessageDict:
    """The results in short; `made` says how many the turn had before."""
    blocks = blocks_of(message, "toolResult")
    kept = [_result(block, evidence_id(number, made + index)) for index, block in enumerate(blocks, 1)]
    return _with_content(message, kept)


def _result(block: EntryDict, evidence: str) -> EntryDict:
    block = _plain(block)
    given = block.get("content")
    inner = [item for item in given if isinstance(item, dict)] if isinstance(given, list) else []
    beside = [_named(item, evidence) for item in inner if item.get("type") != "text"]
    text = block_text({"content": [item for item in inner if item.get("type") == "text"]})
    digest = result_digest(
        text,
        tool=str(block.get("name", "")),
        is_error=block.get("isError") is True,
        evidence=evidence,
        chars=_whole_length(block),
    )
    if digest == text and not beside:
        return block
    return {**block, "content": [{"type": "text", "text": "\n".join([*([digest] if digest else []), *beside])}]}


def _whole_length(block: EntryDict) -> int | None:
    """How many characters a result has that is kept elsewhere; None for one that is here."""
    kept = block.get("evicted")
    chars = kept.get("chars") if isinstance(kept, dict) else None
    return chars if isinstance(chars, int) else None


def _named(item: Mapping[str, Any], evidence: str) -> str:
    """A block that is no text, as text."""
    kind, media = str(item.get("type")), item.get("media")
    if not isinstance(media, dict):
        what = f" {item['url']}" if kind in _MEDIA and isinstance(item.get("url"), str) else ""
        return f"[{kind}{what}; evidence:{evidence}]"
    parts = [str(media[key]) for key in ("name", "mediaType") if media.get(key)]
    return f"[{' '.join([kind, *parts])}, {media.get('bytes', 0)} bytes; evidence:{evidence}]"


def _plain(block: EntryDict) -> EntryDict:
    return {key: value for key, value in block.items() if key != "opaque"} if "opaque" in block else block


def _with_content(message: MessageDict, content: list[EntryDict]) -> MessageDict:
    return message if content == message.get("content") else {**message, "content": content}
