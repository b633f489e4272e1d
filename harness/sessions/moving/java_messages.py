"""Messages and transcripts as the Java harness wrote them, turned into ours.

Its transcripts repeat: after every call the whole memory was written once more, each line under a new id. What was said
is therefore told by role and content, batch by batch; a batch begins with a line that has no parent.

Its files may have been edited, or written by something else: a field that is not of its type counts as absent, and
an id that is missing becomes a new one, as its own reader has it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from harness.ids import new_id
from harness.messages import MAX_COUNT, MessageDict
from harness.text import clean, dumps, read_json

__all__ = [
    "JavaMessage",
    "Key",
    "Transcript",
    "from_java",
    "identity_of",
    "key_of",
    "message_of_line",
    "read_lines",
    "read_transcript",
]

Key: TypeAlias = tuple[str, str]
"""Role and rendered text: what makes two lines the same message."""

SUMMARY_NAME = "__compaction_summary__"
_ROLES = {"USER": "user", "ASSISTANT": "assistant", "TOOL": "tool", "SYSTEM": "system"}
_MAX_CALL, _MAX_RESULT = 500, 1000
_CALL = re.compile(r"\[tool_call: ([^\s()\[\]]{1,200})\((.*)\)\]", re.DOTALL)
_RESULT = re.compile(r"\[tool_result: ([^\]\n]{1,200})\] ?")


@dataclass(frozen=True, slots=True)
class JavaMessage:
    """A message of ours, the bytes of the media in it, and the key of the line that was made of it."""

    message: MessageDict
    key: Key
    media: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(slots=True)
class Transcript:
    """A transcript without its repetitions. `kept` is the line with which what the model saw began, if it says so."""

    said: list[dict[str, Any]] = field(default_factory=list)
    summary: str | None = None
    kept: int = 0
    others: list[dict[str, Any]] = field(default_factory=list)


def read_lines(raw: bytes) -> tuple[list[dict[str, Any]], int]:
    """The objects in the lines of a file, and how many lines were none. A torn last line is one of those."""
    lines = [line for line in raw.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip()]
    parsed = [_object(line) for line in lines]
    return [item for item in parsed if item is not None], parsed.count(None)


def read_transcript(entries: Sequence[dict[str, Any]]) -> Transcript:
    """What was said, each message once, in order."""
    messages = [entry for entry in entries if entry.get("type") == "message"]
    known = ("message", "compaction", "summary")
    transcript = Transcript(
        _merged(list(_batches(messages))), others=[e for e in entries if e.get("type") not in known]
    )
    compaction = next((entry for entry in reversed(entries) if entry.get("type") == "compaction"), None)
    if compaction is not None:
        summaries = {_id(entry.get("id")): entry.get("summary") for entry in entries if entry.get("type") == "summary"}
        first = [_id(entry.get("id")) for entry in transcript.said]
        kept, summary = _id(compaction.get("firstKeptEntryId")), _id(compaction.get("summaryEntryId"))
        transcript.summary = _words(summaries.get(summary)) if summary else ""
        transcript.kept = first.index(kept) if kept and kept in first else 0
    return transcript


def key_of(entry: Mapping[str, Any]) -> Key:
    """The key of a line of a transcript."""
    return str(entry.get("role", "")).upper(), _words(entry.get("content"))


def identity_of(entry: Mapping[str, Any]) -> str:
    """By what a line is known in another transcript: its id, else all of it."""
    return _id(entry.get("id")) or _words(dict(entry))


def message_of_line(entry: Mapping[str, Any]) -> JavaMessage:
    """The message that a line of a transcript tells of; calls and results come back as far as they were written."""
    role, text = key_of(entry)
    message = {
        "id": _id(entry.get("id")) or new_id(),
        "role": _ROLES.get(role, "user"),
        "content": _blocks_of_line(role, text, entry.get("toolCallId")),
        "meta": {"java": _present({"timestamp": entry.get("timestamp"), "transcript": True})},
    }
    return JavaMessage(clean(message).value, (role, text))


def from_java(data: Mapping[str, Any]) -> JavaMessage:
    """A message of the memory, whole."""
    media: dict[str, bytes] = {}
    content = data.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    given = data.get("metadata")
    metadata: dict[str, Any] = given if isinstance(given, dict) else {}
    message: MessageDict = {
        "id": _id(data.get("id")) or new_id(),
        "role": _ROLES.get(str(data.get("role")).upper(), "user"),
        "content": [_block(block, media) for block in blocks],
        **({"usage": usage} if (usage := _usage(metadata.get("_chat_usage"))) else {}),
        "meta": {"java": _present({**{key: data.get(key) for key in ("timestamp", "name")}, "metadata": metadata})},
    }
    key = (str(data.get("role")).upper(), "\n".join(_rendered(block) for block in blocks if _rendered(block)))
    return JavaMessage(clean(message).value, key, media)


def _id(value: Any) -> str:
    """An id as text; empty where there is none that could be one."""
    if type(value) is int:
        return str(value)
    return value if isinstance(value, str) else ""


def _words(value: Any) -> str:
    """What stands where a text belongs, as text."""
    if value is None:
        return ""
    return value if isinstance(value, str) else dumps(clean(value).value).decode()


def _present(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value not in (None, {})}


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        value = read_json(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _batches(messages: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    for entry in messages:
        # Behind a line without an id, one without a parent says nothing: it had nothing to name.
        if entry.get("parentId") is None and batch and (_id(batch[-1].get("id")) or _id(entry.get("id"))):
            yield batch
            batch = []
        batch.append(entry)
    if batch:
        yield batch


def _merged(batches: Sequence[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = []
    before: list[Key] = []
    for batch in batches:
        keys = [key_of(entry) for entry in batch]
        said += batch[_known(before, keys) :]
        before = keys
    return said


def _known(before: Sequence[Key], keys: Sequence[Key]) -> int:
    """How many messages at the start of a batch were in the one before.

    A memory that was compacted begins with a summary of what is gone, and goes on with the end of what was there.
    """
    same = next((n for n, pair in enumerate(zip(before, keys, strict=False)) if pair[0] != pair[1]), None)
    common = min(len(before), len(keys)) if same is None else same
    if common or not before:
        return common
    overlap = _overlap(before, keys[1:])
    return overlap + 1 if overlap else 0


def _overlap(before: Sequence[Key], keys: Sequence[Key]) -> int:
    """The most keys at the start of `keys` that are the end of `before`, in one pass (Knuth, Morris, Pratt)."""
    longest = [0] * len(keys)
    for n in range(1, len(keys)):
        length = longest[n - 1]
        while length and keys[n] != keys[length]:
            length = longest[length - 1]
        longest[n] = length + (keys[n] == keys[length])
    matched = 0
    for key in before:
        while matched and (matched == len(keys) or key != keys[matched]):
            matched = longest[matched - 1]
        if matched < len(keys) and key == keys[matched]:
            matched += 1
    return matched


def _blocks_of_line(role: str, text: str, call_id: Any) -> list[dict[str, Any]]:
    """Only the first call or result of a message has its id in the line; the rest stays text."""
    if not isinstance(call_id, str):
        return [_text(text)]
    if role == "TOOL":
        found = _RESULT.match(text)
        name = {"name": found[1]} if found else {}
        body = text[found.end() :] if found else text
        return [{"type": "toolResult", "id": call_id, **name, "content": [_text(body)], "isError": False}]
    found = _CALL.search(text)
    if found is None:
        return [_text(text)]
    before = text[: found.start()].rstrip("\n")
    call = {"type": "toolUse", "id": call_id, "name": found[1], "input": _arguments(found[2])}
    return [*([_text(before)] if before else []), call]


def _arguments(text: str) -> dict[str, Any]:
    value = _object(text.encode())
    return value if value is not None else {"text": text}


def _block(block: Mapping[str, Any], media: dict[str, bytes]) -> dict[str, Any]:
    kind = block.get("type")
    if kind == "text":
        return _text(_words(block.get("text")))
    if kind == "thinking":
        return {"type": "thinking", "text": _words(block.get("thinking"))}
    if kind == "tool_use":
        arguments = block.get("input")
        call = {"type": "toolUse", "id": _id(block.get("id")), "name": _words(block.get("name"))}
        return {**call, "input": arguments if isinstance(arguments, dict) else {}}
    if kind == "tool_result":
        output = [_block(part, media) for part in _output(block)]
        result = {"type": "toolResult", "id": _id(block.get("id")), "name": _words(block.get("name"))}
        return {**result, "content": output, "isError": False}
    if kind in ("image", "audio", "video"):
        return _media(block, media)
    return dict(block) if isinstance(kind, str) else {"type": "java", "data": dict(block)}


def _output(block: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The blocks of a result; what stands there instead of blocks is its text."""
    output = block.get("output")
    parts = output if isinstance(output, list) else [] if output is None else [output]
    return [part if isinstance(part, dict) else _text(_words(part)) for part in parts]


def _media(block: Mapping[str, Any], media: dict[str, bytes]) -> dict[str, Any]:
    source = block.get("source")
    if not isinstance(source, dict):
        return dict(block)
    if source.get("type") == "url":
        return {"type": block["type"], "url": _words(source.get("url"))}
    try:
        data = base64.b64decode(source["data"], validate=True)
    except (TypeError, KeyError, ValueError, binascii.Error):
        return dict(block)
    sha256 = hashlib.sha256(data).hexdigest()
    media[sha256] = data
    kind = str(source.get("media_type") or "application/octet-stream")
    return {"type": block["type"], "media": {"sha256": sha256, "mediaType": kind, "bytes": len(data)}}


def _usage(value: Any) -> dict[str, int]:
    if not isinstance(value, dict):
        return {}
    counted = {ours: value.get(theirs) for ours, theirs in (("input", "inputTokens"), ("output", "outputTokens"))}
    return {key: number for key, number in counted.items() if type(number) is int and 0 <= number <= MAX_COUNT}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _rendered(block: Mapping[str, Any]) -> str:
    """A block as the Java harness wrote it into a transcript."""
    kind = block.get("type")
    if kind == "text":
        return _words(block.get("text"))
    if kind == "tool_use":
        arguments = dumps(clean(block.get("input") or {}).value).decode()
        cut = f"{arguments[:_MAX_CALL]}..." if len(arguments) > _MAX_CALL else arguments
        return f"[tool_call: {block.get('name')}({cut})]"
    if kind == "tool_result":
        texts = [_words(part.get("text")) for part in _output(block)]
        cuts = [f"{text[:_MAX_RESULT]}...(truncated)" if len(text) > _MAX_RESULT else text for text in texts]
        return f"[tool_result: {block.get('name')}] {' '.join(cuts)}"
    return ""
