"""The Hugging Face session format, and the bundle in which sessions of any format are shared.

A bundle is a folder: the session's file, in this format or in its own, and `meta/manifest.json`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.transcripts import blocks
from harness.transcripts.blocks import BlockDict
from harness.transcripts.formats.base import Format, Opened, Verdict
from harness.transcripts.lines import Record
from harness.transcripts.pieces import Reader, Subagent
from harness.transcripts.source import small_file

__all__ = ["FORMATS", "StsFormat", "StsReader"]

_SCHEMA = "am-session-share/"
_ROLES = frozenset({"user", "assistant", "system", "tool"})
_USAGE = ("input", "cacheRead", "cacheWrite", "output")


class StsReader(Reader):
    """Reads the lines of one session."""

    def record(self, record: Record) -> None:
        """See `Reader`."""
        message = record.get("message")
        if record.get("type") == "session":
            self.about.session_id = self.about.session_id or blocks.word(record.get("id"))
            self.about.title = blocks.word(record.get("name")) or self.about.title
            self._metadata(record.get("metadata"))
        elif isinstance(message, dict):
            self._message(message)
        else:
            self.warn("unknown_record", f"type {str(record.get('type'))[:80]!r} is not known")

    def _metadata(self, metadata: object) -> None:
        """What the export of another harness's session tells of it; its tokens only as a whole."""
        if not isinstance(metadata, dict):
            return
        self.about.cwd = blocks.word(metadata.get("cwd")) or self.about.cwd
        self.about.branch = blocks.word(metadata.get("branch")) or self.about.branch
        if isinstance(usage := metadata.get("usage"), dict):
            self.about.usage = blocks.usage_dict(*(usage.get(name) for name in _USAGE))

    def _message(self, message: Record) -> None:
        role = message.get("role")
        at = self.saw_time(message.get("timestamp"))
        said = [self._said(item) for item in blocks.items(message.get("content")) if isinstance(item, dict)]
        if role == "user":
            self.piece("prompt", said, at)
            self.counts.prompts_lt += any(not str(block.get("text", "<")).lstrip().startswith("<") for block in said)
        elif role == "assistant":
            self._assistant(at, message, said)
        elif role == "tool":
            key = blocks.word(message.get("toolCallId")) or self.place("result")
            self.piece("results", [blocks.result_block(key, said, failed=message.get("isError") is True)], at)
        elif role == "system":
            self.piece("context", said, at)
        else:
            self.warn("unknown_record", f"role {str(role)[:80]!r} is not known")

    def _assistant(self, at: str | None, message: Record, said: list[BlockDict]) -> None:
        self.counts.assistant_msgs += 1
        model = blocks.word(message.get("model"))
        self.counts.saw_model(model)
        shown = blocks.word(message.get("reasoningContent"))
        content: list[BlockDict] = [{"type": "thinking", "text": shown}] if shown else []
        content += [block for block in said if block["type"] != "text" or block["text"]]
        found = message.get("toolCalls")
        calls = [call for call in found if isinstance(call, dict)] if isinstance(found, list) else []
        for number, call in enumerate(calls):
            function = call.get("function")
            named = function if isinstance(function, dict) else {}
            key = blocks.word(call.get("id")) or self.place(f"call-{number}")
            content.append(blocks.call_block(key, named.get("name"), named.get("arguments")))
        self.piece("answer", content, at, fields={"model": model} if model else {})

    def _said(self, item: BlockDict) -> BlockDict:
        return blocks.text(item["text"]) if isinstance(item.get("text"), str) else self.unknown(item)


class StsFormat(Format):
    """See the module."""

    name = "sts"
    title = "Hugging Face session"

    def judge(self, record: Record) -> Verdict:
        """See `Format`."""
        message = record.get("message")
        if record.get("type") == "session":
            return Verdict.CERTAIN if isinstance(record.get("harness"), str) else Verdict.NO
        is_message = (
            record.get("type") == "message"
            and isinstance(message, dict)
            and blocks.text_of(message.get("role")) in _ROLES
        )
        return Verdict.LIKELY if is_message and "timestamp" not in record and "id" not in record else Verdict.NO

    def reader(self, cap: int | None) -> StsReader:
        """See `Format`."""
        return StsReader(cap)

    def around(self, path: Path, inner: Format) -> Format | None:
        """A session of another format, shared in a bundle."""
        if inner.name == self.name:
            return None
        manifest = small_file(path.parent / "meta" / "manifest.json") or b""
        found = blocks.parsed(manifest.decode("utf-8", "replace"))
        is_bundle = isinstance(found, dict) and blocks.text_of(found.get("schema")).startswith(_SCHEMA)
        return _Bundled(inner) if is_bundle else None


class _Bundled(Format):
    """A session in its own format inside a bundle; read as what it is, called what it came in."""

    name = StsFormat.name

    def __init__(self, inner: Format) -> None:
        self._inner = inner
        self.title = inner.title
        self.assembly = inner.assembly

    def reader(self, cap: int | None) -> Reader:
        return self._inner.reader(cap)

    def session_id(self, path: Path, found: str | None) -> str:
        return self._inner.session_id(path, found)

    def marks(self, path: Path) -> tuple[object, ...]:
        return self._inner.marks(path)

    def open(self, path: Path, session_id: str) -> Opened:
        return self._inner.open(path, session_id)

    def subagents(self, path: Path) -> list[Subagent]:
        return self._inner.subagents(path)

    def is_document(self, path: Path) -> bool:
        return self._inner.is_document(path)

    def listed(self, path: Path) -> Any:
        return self._inner.listed(path)


FORMATS = (StsFormat(),)
