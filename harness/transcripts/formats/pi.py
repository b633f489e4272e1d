"""pi sessions, and OpenClaw's, which are pi sessions with additions.

A header, then entries that form a tree by `parentId` (none in the first version). The active branch
runs from the last entry to the root. Results are messages of their own, and `usage.input` is fresh.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from harness.transcripts import blocks
from harness.transcripts.assembly import Assembly
from harness.transcripts.blocks import BlockDict
from harness.transcripts.formats.base import Format, Place, Verdict, Where
from harness.transcripts.lines import Record
from harness.transcripts.pieces import Piece, Reader
from harness.transcripts.turns import Kind

__all__ = ["FORMATS", "OpenClawFormat", "PiAssembly", "PiFormat", "PiReader"]

_NEWEST = 3
_ENTRIES = frozenset(
    {
        *("message", "model_change", "thinking_level_change", "compaction", "branch_summary", "custom"),
        *("custom_message", "label", "session_info"),
    }
)
_STOPS = {"stop": "stop", "toolUse": "tool_use", "length": "length"}
_HEARTBEAT = "[OpenClaw heartbeat poll]"
# What OpenClaw's gateway writes into the place of an answer.
_MIRRORS = frozenset({"gateway-injected", "delivery-mirror"})
_NEIGHBOURS = (".trajectory.jsonl", ".checkpoint.")


class PiAssembly(Assembly):
    """A tree whose links may also name the call that a result answers."""

    is_tree = True

    def add(self, pieces: Iterable[Piece]) -> None:
        """See `Assembly`."""
        found = list(pieces)
        for piece in found:
            if piece.entry is not None and piece.kind == "answer":
                calls = (block["id"] for block in piece.blocks if block["type"] == "toolUse")
                self._tips.update(dict.fromkeys(calls, piece.entry))
        super().add(found)


class PiReader(Reader):
    """Reads the entries of one session."""

    def record(self, record: Record) -> None:
        """See `Reader`."""
        kind = record.get("type")
        if kind == "message":
            self._message(record)
        elif kind == "session":
            self._header(record)
        elif kind == "compaction":
            self.counts.compactions += 1
            self._tell("compaction", record, record.get("summary"))
        elif kind == "branch_summary":
            self._tell("meta", record, record.get("summary"))
        elif kind == "custom_message":
            self._add("meta", record, self._content(record.get("content")))
        else:
            self._other(kind, record)

    def _header(self, record: Record) -> None:
        self.about.session_id = self.about.session_id or blocks.word(record.get("id"))
        self.about.cwd = blocks.word(record.get("cwd")) or self.about.cwd
        before = blocks.word(record.get("parentSession")) or blocks.word(record.get("branchedFrom"))
        self.about.forked_from = before or self.about.forked_from
        version = record.get("version")
        if isinstance(version, int) and version > _NEWEST:
            text = f"version {version}, newer than the {_NEWEST} known here: some of it may not be shown"
            self.warn("newer_version", text)

    def _other(self, kind: object, record: Record) -> None:
        if kind == "session_info":
            self.about.title = blocks.word(record.get("name")) or self.about.title
        elif kind not in _ENTRIES if isinstance(kind, str) else True:
            self.warn("unknown_record", f"type {str(kind)[:80]!r} is not known")
        self._add("note", record, ())

    def _tell(self, kind: Kind, record: Record, text: object) -> None:
        said = blocks.text_of(text)
        self._add(kind if said else "note", record, [blocks.text(said)] if said else ())

    def _add(
        self,
        kind: Any,
        record: Record,
        content: Iterable[BlockDict],
        fields: dict[str, Any] | None = None,
        usage: dict[str, int] | None = None,
    ) -> Piece:
        entry, parent = blocks.word(record.get("id")), blocks.word(record.get("parentId"))
        at = record.get("timestamp")
        return self.piece(kind, content, at, fields=fields, usage=usage, entry=entry, parent=parent)

    def _message(self, record: Record) -> None:
        message = record.get("message")
        if not isinstance(message, dict):
            self.warn("unknown_record", "a message entry without a message")
            return
        role = message.get("role")
        record = record if "timestamp" in record else {**record, "timestamp": message.get("timestamp")}
        self.saw_time(record["timestamp"])
        if role == "user":
            self._user(record, message)
        elif role == "assistant":
            self._assistant(record, message)
        elif role == "toolResult":
            key = blocks.word(message.get("toolCallId")) or self.place("result")
            content, failed = self._content(message.get("content")), message.get("isError") is True
            self._add("results", record, [blocks.result_block(key, content, failed=failed)])
        elif role == "bashExecution":
            self._add("meta", record, [_shell(message)])
        elif role in ("branchSummary", "compactionSummary"):
            self._tell("compaction" if role == "compactionSummary" else "meta", record, message.get("summary"))
        elif role in ("custom", "hookMessage"):
            self._add("meta", record, self._content(message.get("content")))
        else:
            self.warn("unknown_record", f"role {str(role)[:80]!r} is not known")
            self._add("meta", record, self._content(message.get("content")))

    def _user(self, record: Record, message: Record) -> None:
        said = self._content(message.get("content"))
        text = "\n".join(block["text"] for block in said if block["type"] == "text")
        is_typed = not text.lstrip().startswith(_HEARTBEAT)
        self._add("prompt" if is_typed else "context", record, said)
        self.counts.prompts_lt += is_typed and not text.lstrip().startswith("<")

    def _assistant(self, record: Record, message: Record) -> None:
        self.counts.assistant_msgs += 1
        model, provider = blocks.word(message.get("model")), blocks.word(message.get("provider"))
        if model not in _MIRRORS:
            self.counts.saw_model(model)
        fields = {"id": blocks.word(record.get("id")), "provider": provider, "model": model}
        if reason := blocks.word(message.get("stopReason")):
            fields["stop"] = _STOPS.get(reason, reason)
        named = {name: value for name, value in fields.items() if value}
        found = [item for item in blocks.items(message.get("content")) if isinstance(item, dict)]
        content = [self._answer(n, item, provider or "unknown", model) for n, item in enumerate(found)]
        if error := blocks.word(message.get("errorMessage")):
            content.append({"type": "error", "text": error})
        usage = _usage(message["usage"]) if isinstance(message.get("usage"), dict) else None
        self._add("answer", record, content, named, usage)

    def _answer(self, position: int, item: BlockDict, provider: str, model: str | None) -> BlockDict:
        kind = item.get("type")
        if kind == "thinking":
            return blocks.thinking(blocks.text_of(item.get("thinking")), provider, model, self.settled(item))
        if kind == "toolCall":
            key = blocks.word(item.get("id")) or self.place(f"call-{position}")
            return blocks.call_block(key, item.get("name"), self.settled(item.get("arguments")))
        return self._said(item)

    def _content(self, content: object) -> list[BlockDict]:
        return [self._said(item) for item in blocks.items(content) if isinstance(item, dict)]

    def _said(self, item: BlockDict) -> BlockDict:
        if item.get("type") == "text":
            return blocks.text(blocks.text_of(item.get("text")))
        if item.get("type") == "image":
            return self.image(blocks.image(item.get("data"), item.get("mimeType"), whole=self.cap is None))
        return self.unknown(item)


class PiFormat(Format):
    """See the module."""

    name = "pi"
    title = "pi"
    assembly: type[Assembly] = PiAssembly

    def judge(self, record: Record) -> Verdict:
        """See `Format`."""
        kind, message = record.get("type"), record.get("message")
        if kind == "session":
            return Verdict.LIKELY if "harness" not in record and "id" in record else Verdict.NO
        if kind == "message":
            is_entry = isinstance(message, dict) and "role" in message and "timestamp" in record
            return Verdict.LIKELY if is_entry else Verdict.NO
        is_entry = isinstance(kind, str) and kind in _ENTRIES and ("parentId" in record or "timestamp" in record)
        return Verdict.MAYBE if is_entry else Verdict.NO

    def reader(self, cap: int | None) -> PiReader:
        """See `Format`."""
        return PiReader(cap)

    def places(self, where: Where) -> Sequence[Place]:
        """See `Format`."""
        return [Place(where.folder("PI_CODING_AGENT_DIR", ".pi", "agent") / "sessions", "*/*.jsonl")]


class OpenClawFormat(PiFormat):
    """pi's format with snapshots of the model, injected context and answers that a gateway wrote."""

    name = "openclaw"
    title = "OpenClaw"

    def judge(self, record: Record) -> Verdict:
        """See `Format`."""
        named = str(record.get("customType", ""))
        if record.get("type") in ("custom", "custom_message") and named.startswith(("openclaw", "model-snapshot")):
            return Verdict.CERTAIN
        message = record.get("message")
        if isinstance(message, dict) and (
            message.get("provider") == "openclaw" or blocks.text_of(message.get("model")) in _MIRRORS
        ):
            return Verdict.CERTAIN
        return super().judge(record)

    def suits(self, path: Path) -> bool:
        """See `Format`."""
        return any("openclaw" in part for part in path.parts[-6:-1])

    def places(self, where: Where) -> Sequence[Place]:
        """See `Format`."""
        return [Place(where.folder("OPENCLAW_STATE_DIR", ".openclaw") / "agents", "*/sessions/*.jsonl")]

    def holds(self, path: Path) -> bool:
        """See `Format`."""
        return not any(mark in path.name for mark in _NEIGHBOURS)


FORMATS = (PiFormat(), OpenClawFormat())


def _usage(usage: Record) -> dict[str, int]:
    return blocks.usage_dict(usage.get("input"), usage.get("cacheRead"), usage.get("cacheWrite"), usage.get("output"))


def _shell(message: Record) -> BlockDict:
    """A command that the person ran."""
    block = {"type": "shell", "command": blocks.text_of(message.get("command"))}
    block["output"] = blocks.text_of(message.get("output"))
    code = message.get("exitCode")
    return {**block, "exitCode": code} if isinstance(code, int) else block
