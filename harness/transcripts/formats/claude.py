"""Claude Code sessions: one JSON object a line, one content block an assistant line.

The lines of one `message.id` are one message, wherever they stand. What a person typed is a `user`
line that the harness did not write itself: no meta line, no summary, no tool result, no text in one
of the harness's own tags. File order is the order; the parent links run through hidden lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from harness.filesystem import disk
from harness.transcripts import blocks
from harness.transcripts.assembly import Assembly
from harness.transcripts.blocks import BlockDict
from harness.transcripts.formats.base import Format, Place, Verdict, Where
from harness.transcripts.formats.claude_queue import QueueAssembly
from harness.transcripts.lines import Record, parsed_lines
from harness.transcripts.pieces import Reader, Subagent
from harness.transcripts.refusing import path_text
from harness.transcripts.source import neighbours, small_file
from harness.transcripts.turns import Aside

__all__ = ["FORMATS", "ClaudeFormat", "ClaudeReader", "is_harness_text"]

PROVIDER = "anthropic"
_SPOKEN = frozenset({"user", "assistant", "system"})
_OWN = frozenset(
    {
        *("summary", "progress", "attachment", "queue-operation", "file-history-snapshot", "file-history-delta"),
        *("last-prompt", "permission-mode", "custom-title", "ai-title", "agent-name", "pr-link", "frame-link"),
        *("worktree-state", "relocated", "bridge-session", "atis-latch"),
    }
)
_TYPES = _SPOKEN | _OWN | {"mode", "started", "result"}
# A tag of the harness has - or _ in its name; a person's <script> has not.
_TAG = re.compile(r"\s*</?[A-Za-z0-9]*[-_]")
_INTERRUPTED = "[Request interrupted by user"
_STOPS = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length"}
_AGENT = "agent-"


def is_harness_text(text: str) -> bool:
    """Whether the harness wrote this into the place where a person's text stands."""
    return bool(_TAG.match(text)) or text.lstrip().startswith(_INTERRUPTED)


class ClaudeReader(Reader):
    """Reads the lines of one file."""

    def __init__(self, cap: int | None = None) -> None:
        super().__init__(cap)
        self._ids: set[str] = set()
        self._summaries: dict[str, str] = {}
        self._aside: Aside | None = None
        self._told: object = None
        self._place: tuple[object, ...] = ()
        self._usage: dict[str, int] | None = None
        self._fields: dict[str, str] = {}

    def record(self, record: Record) -> None:
        """See `Reader`."""
        kind = record.get("type")
        self._aside = None
        if record.get("isSidechain") is True:
            self._aside = "sidechain"
            self.counts.sidechain_lines += 1
        if kind == "assistant":
            self._assistant(record)
        elif kind == "user":
            self._user(record)
        elif kind == "system":
            self._system(record)
        elif type(kind) is str and kind in _TYPES:
            self._other(kind, record)
        else:
            self.warn("unknown_record", f"type {str(kind)[:80]!r} is not known")
        place = (record.get("cwd"), record.get("gitBranch"), record.get("sessionId"))
        if place != self._place:  # mostly it is that of the line before
            self._place = place
            self._learn(*place)
        if self._summaries and (uuid := record.get("uuid")) and isinstance(uuid, str) and uuid in self._summaries:
            self.about.weak_title = self._summaries[uuid]

    def _learn(self, cwd: object, branch: object, session_id: object) -> None:
        about = self.about
        about.cwd = blocks.text_of(cwd) or about.cwd
        about.branch = blocks.text_of(branch) or about.branch
        about.session_id = about.session_id or blocks.word(session_id)

    def _other(self, kind: str, record: Record) -> None:
        if kind == "queue-operation":
            self._queue(record)
        elif kind == "attachment":
            self._attachment(record)
        elif kind == "custom-title":
            self.about.title = blocks.word(record.get("customTitle")) or self.about.title
        elif kind == "ai-title":
            self.about.weak_title = blocks.word(record.get("aiTitle")) or self.about.weak_title
        elif kind == "summary" and (leaf := blocks.word(record.get("leafUuid"))):
            self._summaries[leaf] = blocks.text_of(record.get("summary"))

    def _queue(self, record: Record) -> None:
        operation = record.get("operation")
        if operation in ("dequeue", "remove"):
            self.note("dequeued")
        if operation not in ("enqueue", "popAll"):
            return
        said = [item for item in blocks.items(record.get("content")) if isinstance(item, dict)]
        text = "\n".join(blocks.text_of(item.get("text")) for item in said if item.get("type") == "text")
        if operation == "popAll":
            self.note("withdrawn", text)
        elif text.strip() and not is_harness_text(text):
            self.piece("queued", [self._said(item) for item in said], record.get("timestamp"))

    def _attachment(self, record: Record) -> None:
        """A prompt that the model took while it worked stands in no other line."""
        found = record.get("attachment")
        if not isinstance(found, dict) or found.get("type") != "queued_command":
            return
        said = [item for item in blocks.items(found.get("prompt")) if isinstance(item, dict)]
        content = [self._said(item, counted=False) for item in said]
        texts = [block["text"] for block in content if block["type"] == "text"]
        if found.get("commandMode") == "task-notification" or any(is_harness_text(text) for text in texts):
            self.piece("context", content, record.get("timestamp"), aside=self._aside)
        else:
            self.piece("queued", content, record.get("timestamp"), aside=self._aside, data="taken")

    def _user(self, record: Record) -> None:
        message = record.get("message")
        at = self.saw_time(record.get("timestamp"))
        if not isinstance(message, dict):
            self.warn("unknown_record", "a user line without a message")
            return
        is_meta = record.get("isMeta") is True or bool(record.get("sourceToolUseID"))
        self.counts.meta_lines += is_meta
        said, results = [], 0
        for item in blocks.items(message.get("content")):
            if type(item) is not dict:
                continue
            if item.get("type") == "tool_result":
                self._result(item, record, at)
                results += 1
            else:
                said.append(self._said(item))
        if results and not said:
            return
        if record.get("isCompactSummary") is True:
            self.piece("compaction", said, at, aside=self._aside)
        elif is_meta or results:
            self.piece("meta", said, at, aside=self._aside)
        else:
            self._typed(said, record, at)

    def _typed(self, said: list[BlockDict], record: Record, at: str | None) -> None:
        """One line may hold harness text and a person's text: each block is judged for itself."""
        own = []
        for block in said:
            if block["type"] == "text" and is_harness_text(block["text"]):
                self.piece("context", [block], at, aside=self._aside)
            elif block["type"] != "text" or block["text"].strip():
                own.append(block)
        if own:
            self.piece("prompt", own, at, aside=self._aside)
            self.counts.prompts_lt += any(b["type"] == "text" and not b["text"].lstrip().startswith("<") for b in own)

    def _said(self, item: BlockDict, *, counted: bool = True) -> BlockDict:
        kind = item.get("type")
        if kind == "text":
            return blocks.said(item)
        if kind != "image":
            return self.unknown(item)
        source = item.get("source")
        source = source if isinstance(source, dict) else {}
        whole = self.cap is None
        found = blocks.image(source.get("data"), source.get("media_type"), whole=whole)
        found = found or blocks.image_from_url(source.get("url"), whole=whole)
        if not counted:
            return found or {"type": "unreadable_image"}
        return self.image(found)

    def _result(self, item: BlockDict, record: Record, at: str | None) -> None:
        key = blocks.text_of(item.get("tool_use_id"))
        content = [self._said(found) for found in blocks.items(item.get("content")) if type(found) is dict]
        block = blocks.result_block(key, content, failed=item.get("is_error") is True)
        self.piece("results", [block], at, aside=self._aside)
        mirror = record.get("toolUseResult")
        if type(mirror) is dict and (agent := blocks.word(mirror.get("agentId"))):
            self.about.subagents.append(Subagent(f"{_AGENT}{agent}", call=key))

    def _assistant(self, record: Record) -> None:
        message = record.get("message")
        at = self.saw_time(record.get("timestamp"))
        if not isinstance(message, dict):
            self.warn("unknown_record", "an assistant line without a message")
            return
        uuid = blocks.word(record.get("uuid"))
        key = blocks.word(message.get("id")) or uuid or self.place()
        if key not in self._ids:
            self._ids.add(key)
            self.counts.assistant_msgs += 1
        fields = self._named(key, message)
        said = blocks.items(message.get("content"))
        content = [self._answer(n, item, fields) for n, item in enumerate(said) if type(item) is dict]
        usage = self._tokens(message.get("usage"))
        self.piece(
            "answer", content, at, key=key, fields=fields, usage=usage, aside=self._aside, data=self.identity(uuid)
        )

    def _tokens(self, told: object) -> dict[str, int] | None:
        """What a line shows of its message's tokens; the lines of one message mostly repeat it."""
        if told != self._told:
            self._told, self._usage = told, _usage(told) if told else None
        return self._usage

    def _named(self, key: str, message: Record) -> dict[str, str]:
        fields = {"id": key, "provider": PROVIDER}
        model = message.get("model")
        self.counts.saw_model(model)
        if isinstance(model, str) and not model.startswith("<"):
            fields["model"] = model
        if reason := blocks.word(message.get("stop_reason")):
            fields["stop"] = _STOPS.get(reason, reason)
        if fields != self._fields:  # the lines of one message share what is the same for all
            self._fields = fields
        return self._fields

    def _answer(self, position: int, item: BlockDict, fields: dict[str, str]) -> BlockDict:
        kind = item.get("type")
        if kind == "text":
            return blocks.said(item)
        if kind in ("thinking", "redacted_thinking"):
            shown = blocks.text_of(item.get("thinking"))
            return blocks.thinking(shown, PROVIDER, fields.get("model"), self.settled(item))
        if kind == "tool_use":
            key = blocks.word(item.get("id")) or self.place(f"call-{position}")
            given = item.get("input")
            arguments = self.settled(given if isinstance(given, dict) else {"input": given})
            return {
                "type": "toolUse",
                "id": key,
                "name": blocks.word(item.get("name")) or "unknown",
                "input": arguments,
            }
        return self._said(item)

    def _system(self, record: Record) -> None:
        said = blocks.word(record.get("content"))
        content = [blocks.text(said)] if said else []
        if record.get("subtype") == "compact_boundary":
            self.counts.compactions += 1
            self.piece("compaction", content, record.get("timestamp"), aside=self._aside)
        elif content:
            self.piece("meta", content, record.get("timestamp"), aside=self._aside)


class ClaudeFormat(Format):
    """See the module."""

    name = "claude"
    title = "Claude Code"
    assembly: type[Assembly] = QueueAssembly

    def judge(self, record: Record) -> Verdict:
        """See `Format`."""
        kind = record.get("type")
        if not isinstance(kind, str) or isinstance(record.get("payload"), dict):
            return Verdict.NO
        is_marked = "uuid" in record or "sessionId" in record
        if kind in ("user", "assistant") and "message" in record:
            return Verdict.CERTAIN if "uuid" in record else Verdict.MAYBE
        if kind in _OWN or kind == "system":
            return Verdict.CERTAIN if is_marked else Verdict.MAYBE
        return Verdict.NO

    def suits(self, path: Path) -> bool:
        """See `Format`."""
        return "projects" in path.parts

    def reader(self, cap: int | None) -> ClaudeReader:
        """See `Format`."""
        return ClaudeReader(cap)

    def places(self, where: Where) -> Sequence[Place]:
        """See `Format`."""
        roots = [where.folder("CLAUDE_CONFIG_DIR", ".claude"), where.home / ".claude", where.home / ".config/claude"]
        return [Place(root / "projects", "*/*.jsonl") for root in dict.fromkeys(roots)]

    def session_id(self, path: Path, found: str | None) -> str:
        """The name of the file is the id; a sub-agent's lines name its parent's."""
        return path.stem

    def parent(self, path: Path, found: str | None) -> str | None:
        """See `Format`."""
        return (found or path.parent.parent.name) if path.name.startswith(_AGENT) else None

    def subagents(self, path: Path) -> list[Subagent]:
        """See `Format`."""
        below = path.with_suffix("")
        found = [] if disk.is_link(below) else [_described(one) for one in _agents(below / "subagents")]
        siblings = _agents(path.parent)
        return found + [_described(other) for other in siblings if other != path and _belongs(other, path.stem)]


FORMATS = (ClaudeFormat(),)


def _usage(usage: object) -> dict[str, int]:
    found = usage if isinstance(usage, dict) else {}
    return blocks.usage_dict(
        found.get("input_tokens"),
        found.get("cache_read_input_tokens"),
        found.get("cache_creation_input_tokens"),
        found.get("output_tokens"),
    )


def _agents(folder: Path) -> list[Path]:
    return [one for one in neighbours(folder) if one.name.startswith(_AGENT) and one.suffix == ".jsonl"]


def _described(path: Path) -> Subagent:
    """A sub-agent's file, with what the small file beside it says of it."""
    beside = path.with_suffix(".meta.json")
    found = blocks.parsed((small_file(beside) or b"").decode("utf-8", "replace"))
    meta = found if isinstance(found, dict) else {}
    return Subagent(
        path_text(path.stem),
        path_text(path),
        blocks.word(meta.get("toolUseId")),
        blocks.text_of(meta.get("description")),
    )


def _belongs(path: Path, session_id: str) -> bool:
    first = next(parsed_lines([(small_file(path) or b"").partition(b"\n")[0]]), None)
    return first is not None and first.record is not None and first.record.get("sessionId") == session_id
