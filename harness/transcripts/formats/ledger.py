"""This library's own sessions: the ledger, with its hash links, its branches and its files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from harness.errors import FileMissing, PersistenceError
from harness.filesystem import disk
from harness.sessions.catalog.index import HANDOFF, SessionInfo, parse_index
from harness.sessions.lines.blobs import read_blob, try_expand
from harness.sessions.lines.layout import LEDGER_SUFFIX
from harness.transcripts import blocks
from harness.transcripts.assembly import Assembly
from harness.transcripts.blocks import BlockDict
from harness.transcripts.chain import ChainReader
from harness.transcripts.formats.base import Format, Opened, Place, Verdict, Where
from harness.transcripts.lines import Line, Record, TranscriptWarning
from harness.transcripts.memo import Memo
from harness.transcripts.pieces import Subagent
from harness.transcripts.source import FileSource
from harness.transcripts.turns import Kind

__all__ = ["FORMATS", "NOTE", "LedgerAssembly", "LedgerFormat", "LedgerReader"]

_TYPES = frozenset(
    {
        *("header", "message", "binding", "request_begin", "request_end", "compaction", "turn_card", "artifact"),
        *("state", "branch", "label", "custom", "event", "redacted"),
    }
)
_VIA: dict[str, Kind] = {"user": "prompt", "steer": "queued", "hook": "context", "summary": "compaction"}
NOTE = "imported"
"""What an import kept of the other harness: an event of this kind, and in `meta` of a message when it was said."""
_lists = Memo(64)
_STORED = b'"stored":{"sha256":"'


class LedgerAssembly(Assembly):
    """A tree: a branch is a line with an earlier parent."""

    is_tree = True


class LedgerReader(ChainReader):
    """Reads the lines of one ledger."""

    hash_field = "prevHash"
    links = ("id", "parentId")

    def record(self, record: Record) -> None:
        """See `Reader`."""
        kind = record.get("type")
        self.link(record.get("id"), record.get("parentId"))
        at = self.saw_time(record.get("timestamp"))
        if kind == "message":
            self._message(at, record)
        elif kind == "compaction":
            self.counts.compactions += 1
            self.piece("compaction", [blocks.text(blocks.text_of(record.get("summary")))], at)
        elif kind == "binding":
            self._binding(at, record)
        elif kind == "event":
            self._event(at, record)
        else:
            if kind == "header":
                self._header(record)
            elif not isinstance(kind, str) or kind not in _TYPES:
                self.warn("unknown_record", f"type {str(kind)[:80]!r} is not known")
            self.piece("note", [], at)

    def _header(self, record: Record) -> None:
        self.about.session_id = self.about.session_id or blocks.word(record.get("session"))
        self.about.cwd = blocks.word(record.get("workspace")) or self.about.cwd
        self.about.agent = blocks.text_of(record.get("agent"))
        self.about.tenant = "/".join(blocks.text_of(part) for part in blocks.items(record.get("tenant")))
        parent, forked = record.get("parent"), record.get("forkedFrom")
        # Without a call it is the session that was handed over to this one, which is no sub-agent's.
        started = parent if isinstance(parent, dict) and "toolCallId" in parent else {}
        self.about.parent = blocks.word(started.get("session"))
        self.about.forked_from = blocks.word(forked.get("session")) if isinstance(forked, dict) else None

    def _message(self, at: str | None, record: Record) -> None:
        message = record.get("message")
        if not isinstance(message, dict):
            self.warn("unknown_record", "a message line without a message")
            self.piece("note", [], at)
            return
        meta = message.get("meta")
        at = self._said_at(meta.get(NOTE) if isinstance(meta, dict) else None) or at
        found = message.get("content")
        listed = [self._said(block) for block in found if isinstance(block, dict)] if isinstance(found, list) else []
        fields = {name: value for name, value in message.items() if name not in ("role", "content", "usage")}
        if record.get("partial") is True:
            fields["partial"] = True
        role, via = message.get("role"), blocks.text_of(record.get("via"))
        if role == "assistant":
            self._answer(at, record, listed, fields, message.get("usage"))
            return
        results = [block for block in listed if block["type"] == "toolResult"]
        for block in results:
            self.piece("results", [block], at)
        if told := [block for block in listed if HANDOFF in block]:  # of another session, and no word of the person
            self.piece("context", told, at)
        rest = [block for block in listed if block["type"] != "toolResult" and HANDOFF not in block]
        if rest or not (results or told):
            kind = _VIA.get(via, "context" if role != "user" else "prompt")
            self.piece(kind, rest, at, fields)
            if kind == "prompt":
                self.counts.prompts_lt += any(not str(b.get("text", "<")).lstrip().startswith("<") for b in rest)

    def _said(self, block: BlockDict) -> BlockDict:
        """A block as it was logged, with the fields that the normal form relies on."""
        kind = block.get("type")
        if kind in ("text", "thinking"):
            return {**block, "text": blocks.text_of(block.get("text"))}
        if kind == "toolUse":
            given = block.get("input")
            named = {"id": blocks.word(block.get("id")) or self.place("call"), "name": str(block.get("name"))}
            return {**block, **named, "input": self.settled(given if isinstance(given, dict) else {"input": given})}
        if kind == "toolResult":
            content = [self._said(item) for item in blocks.items(block.get("content")) if isinstance(item, dict)]
            return {**block, "id": blocks.word(block.get("id")) or self.place("result"), "content": content}
        if kind == "image":
            self.counts.images += 1
        return blocks.kept_block(block) if isinstance(kind, str) else blocks.unknown(block)

    def _answer(
        self, at: str | None, record: Record, said: list[BlockDict], fields: dict[str, Any], usage: object
    ) -> None:
        self.counts.assistant_msgs += 1
        self.counts.saw_model(fields.get("model"))
        numbers = {k: blocks.integer(v) for k, v in usage.items()} if isinstance(usage, dict) else None
        self.piece("answer", said, at, fields, usage=numbers)

    def _binding(self, at: str | None, record: Record) -> None:
        """The system texts that were new in this binding."""
        found = record.get("system")
        parts = [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
        texts = [blocks.text(item["text"]) for item in parts if isinstance(item.get("text"), str)]
        self.piece("context" if texts else "note", texts, at)

    def _event(self, at: str | None, record: Record) -> None:
        kind, data = blocks.text_of(record.get("kind")), record.get("data")
        told = data if isinstance(data, dict) else {}
        if kind == "subagent" and (child := blocks.word(told.get("session"))):
            self.about.subagents.append(Subagent(child, call=blocks.word(told.get("toolCallId"))))
        elif kind == "title":
            self.about.title = blocks.word(told.get("title"))
        if kind == NOTE and isinstance(content := told.get("content"), list):
            kept = [self._said(block) for block in content if isinstance(block, dict)]
            self.piece("meta", kept, self._said_at(told) or at)
            return
        self.piece("meta", [{"type": "event", "kind": kind, "data": self.settled(data)}], at)

    def _said_at(self, kept: object) -> str | None:
        """When what was imported was said; its line has the time of the import."""
        return self.saw_time(kept["at"]) if isinstance(kept, dict) and "at" in kept else None


class _LedgerSource(FileSource):
    """The lines, with what lies in files of its own put back."""

    def lines(self, start: int = 0, end: int | None = None) -> Iterator[Line]:
        folder = self.path.parent / "files"
        for line in super().lines(start, end):
            is_whole = line.record is None or _STORED not in line.raw
            if is_whole or line.record is None or try_expand(line.record, partial(read_blob, folder)):
                yield line
                continue
            text = "a file that this line names is missing or changed; its preview is shown"
            yield line._replace(warning=line.warning or TranscriptWarning("missing_file", line.number, text))


class LedgerFormat(Format):
    """See the module."""

    name = "harness"
    title = "harness"
    assembly: type[Assembly] = LedgerAssembly

    def judge(self, record: Record) -> Verdict:
        """See `Format`."""
        kind = record.get("type")
        if kind == "header":
            return Verdict.CERTAIN if "ledgerId" in record else Verdict.NO
        is_line = isinstance(kind, str) and kind in _TYPES and {"id", "seq", "timestamp"} <= record.keys()
        return Verdict.CERTAIN if is_line else Verdict.NO

    def suits(self, path: Path) -> bool:
        """See `Format`."""
        return path.name.endswith(LEDGER_SUFFIX)

    def holds(self, path: Path) -> bool:
        """The context beside a ledger holds copies of its lines."""
        return path.name.endswith(LEDGER_SUFFIX)

    def reader(self, cap: int | None) -> LedgerReader:
        """See `Format`."""
        return LedgerReader(cap)

    def session_id(self, path: Path, found: str | None) -> str:
        """See `Format`."""
        return found or path.name.removesuffix(LEDGER_SUFFIX)

    def listed_title(self, path: Path, session_id: str) -> str:
        """See `Format`."""
        place = path.with_name("sessions.json")
        mark = disk.mark(place)
        infos = _lists.get(str(place), mark, lambda: _infos(place)) if mark else {}
        info = infos.get(session_id)
        return info.title if info else ""

    def places(self, where: Where) -> Sequence[Place]:
        """See `Format`."""
        named = where.env.get("HARNESS_WORKSPACE")
        root = Path(named) if named else where.cwd / "workspace"
        return [Place(root / "tenants", f"*/agents/*/sessions/*{LEDGER_SUFFIX}")]

    def open(self, path: Path, session_id: str) -> Opened:
        """See `Format`."""
        source = _LedgerSource(path)
        return Opened(source, session_id, source.total)


def _infos(place: Path) -> dict[str, SessionInfo]:
    try:
        return parse_index(disk.read(place)) or {}
    except (FileMissing, PersistenceError):
        return {}  # made for listing: a session is there without it


FORMATS = (LedgerFormat(),)
