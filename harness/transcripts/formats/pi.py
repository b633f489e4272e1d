"""pi sessions, and OpenClaw's, which are pi sessions with additions.

A header, then entries that form a tree by `parentId` (none in the first version). The active branch
runs from the last entry to the root. Results are messages of their own, and `usage.input` is fresh.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

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

    _callers: dict[str, str | None] | None = None

    def add(self, pieces: Iterable[Piece]) -> None:
        """See `Assembly`."""
        self._callers = None
        super().add(pieces)

    def meant(self, link: str) -> str | None:
        """See `Assembly`."""
        if self._callers is None:
            answers = [draft for draft in self._drafts if draft.kind == "answer"]
            said = ((draft.entry, block) for draft in answers for block in draft.blocks)
            self._callers = {block["id"]: entry for entry, block in said if block["type"] == "toolUse"}
        return self._callers.get(link)


class PiReader(Reader):
    """Reads the entries of one session."""

    links = ("id", "parentId")

    def __init__(self, cap: int | None = None) -> None:
        super().__init__(cap)
        self._told: dict[tuple[object, ...], dict[str, str]] = {}

    def record(self, record: Record) -> None:
        """See `Reader`."""
        if "id" in record or self._entry is not None:
            self.link(record.get("id"), record.get("parentId"))
        kind, message = record.get("type"), record.get("message")
        if kind != "message":
            self._entry_of(kind, record)
        elif type(message) is dict:
            at = self.saw_time(record["timestamp"] if "timestamp" in record else message.get("timestamp"))
            role = message.get("role")
            if role == "assistant":
                self._assistant(message, at)
            elif role == "toolResult":
                self._result(message, at)
            else:
                self._message(role, message, at)
        else:
            self.warn("unknown_record", "a message entry without a message")

    def _entry_of(self, kind: object, record: Record) -> None:
        if kind == "session":
            self._header(record)
        elif kind == "compaction":
            self.counts.compactions += 1
            self._tell("compaction", record.get("summary"), record.get("timestamp"))
        elif kind == "branch_summary":
            self._tell("meta", record.get("summary"), record.get("timestamp"))
        elif kind == "custom_message":
            self.piece("meta", self._content(record.get("content")), record.get("timestamp"))
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
        self._link_only()

    def _tell(self, kind: Kind, text: object, at: object) -> None:
        if said := blocks.text_of(text):
            self.piece(kind, [blocks.text(said)], at)
        else:
            self._link_only()

    def _link_only(self) -> None:
        """An entry that says nothing, but others may follow it in the tree."""
        if self._entry is not None:
            self.piece("note", [])

    def _message(self, role: object, message: Record, at: str | None) -> None:
        if role == "user":
            self._user(message, at)
        elif role == "bashExecution":
            self.piece("meta", [_shell(message)], at)
        elif role in ("branchSummary", "compactionSummary"):
            self._tell("compaction" if role == "compactionSummary" else "meta", message.get("summary"), at)
        else:
            if role not in ("custom", "hookMessage"):
                self.warn("unknown_record", f"role {str(role)[:80]!r} is not known")
            self.piece("meta", self._content(message.get("content")), at)

    def _result(self, message: Record, at: str | None) -> None:
        key = message.get("toolCallId")
        if type(key) is not str or not key.strip():
            key = self.place("result")
        told, failed = message.get("content"), message.get("isError") is True
        content = told if blocks.is_said(told) else self._content(told)
        self.piece("results", [blocks.result_block(key, content, failed)], at)

    def _user(self, message: Record, at: str | None) -> None:
        told = message.get("content")
        said = told if blocks.is_said(told) else self._content(told)
        text = blocks.beginning(said)
        is_typed = not text.startswith(_HEARTBEAT)
        self.piece("prompt" if is_typed else "context", said, at)
        self.counts.prompts_lt += is_typed and not text.startswith("<")

    def _assistant(self, message: Record, at: str | None) -> None:
        self.counts.assistant_msgs += 1
        fields = self._fields(message.get("model"), message.get("provider"), message.get("stopReason"))
        if self._entry is not None:
            fields = fields.copy()
            fields["id"] = self._entry
        content: list[BlockDict] = []
        found = message.get("content")
        for number, item in enumerate(found if type(found) is list else blocks.items(found)):
            if type(item) is dict:
                kind = item.get("type")
                if kind == "text":
                    content.append(blocks.said(item))
                elif kind == "toolCall":
                    content.append(self._call(number, item))
                else:
                    content.append(self._thought(item, fields))
        if "errorMessage" in message and (error := blocks.word(message["errorMessage"])):
            content.append({"type": "error", "text": error})
        usage = message.get("usage")
        if type(usage) is not dict:
            usage = None
        else:
            get = usage.get
            usage = blocks.usage_dict(get("input"), get("cacheRead"), get("cacheWrite"), get("output"))
        self.piece("answer", content, at, fields, None, usage)

    def _fields(self, *told: object) -> dict[str, str]:
        """As `_named`: few different ones are told, again and again."""
        try:
            found = self._told.get(told)
        except TypeError:  # a list or an object in the place of a word
            return self._named(*told)
        if found is None:
            found = self._told[told] = self._named(*told)
        return found

    def _named(self, model: object, provider: object, reason: object) -> dict[str, str]:
        """Who answered and why it stopped."""
        named: dict[str, str] = {}
        if who := blocks.word(provider):
            named["provider"] = who
        if answered := blocks.word(model):
            named["model"] = answered
            if answered not in _MIRRORS:
                self.counts.saw_model(answered)
        if stop := blocks.word(reason):
            named["stop"] = _STOPS.get(stop, stop)
        return named

    def _call(self, position: int, item: BlockDict) -> BlockDict:
        key, given = item.get("id"), item.get("arguments")
        if type(key) is not str or not key.strip():
            key = self.place(f"call-{position}")
        return blocks.call_block(key, item.get("name"), self.settled(given) if blocks.is_odd(given) else given)

    def _thought(self, item: BlockDict, fields: dict[str, str]) -> BlockDict:
        if item.get("type") == "thinking":
            shown, provider = blocks.text_of(item.get("thinking")), fields.get("provider", "unknown")
            return blocks.thinking(shown, provider, fields.get("model"), self.settled(item))
        return self._said(item)

    def _content(self, content: object) -> list[BlockDict]:
        found = [item for item in blocks.items(content) if type(item) is dict]
        return [blocks.said(item) if item.get("type") == "text" else self._said(item) for item in found]

    def _said(self, item: BlockDict) -> BlockDict:
        """A block of another kind than text."""
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


def _shell(message: Record) -> BlockDict:
    """A command that the person ran."""
    block = {"type": "shell", "command": blocks.text_of(message.get("command"))}
    block["output"] = blocks.text_of(message.get("output"))
    code = message.get("exitCode")
    return {**block, "exitCode": code} if isinstance(code, int) else block
