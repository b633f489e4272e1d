"""vak ledgers: a tree of entries, each naming by `prev_hash` the line that stood before it.

A branch is a later entry with an earlier parent. What the runtime wrote in a person's place is known
by its control tag, never by its text.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.transcripts import blocks
from harness.transcripts.assembly import Assembly, Draft
from harness.transcripts.blocks import BlockDict
from harness.transcripts.chain import ChainReader
from harness.transcripts.formats.base import Format, Place, Verdict, Where
from harness.transcripts.lines import Record
from harness.transcripts.pieces import Piece

__all__ = ["FORMATS", "VakAssembly", "VakFormat", "VakReader"]

_KINDS = frozenset(
    {
        *("header", "message", "compaction", "receipt", "goal", "goal_update", "activity", "work", "intent"),
        *("child_run", "turn_capabilities_bound", "turn_capabilities_ref", "presentation", "turn_card"),
        *("evidence_body", "context_selection"),
    }
)


class VakAssembly(Assembly):
    """A tree in which a later line may hold the whole of a result."""

    is_tree = True
    results_grow = True

    def note(self, piece: Piece) -> None:
        """An `evidence` note: the message carried only a window of it."""
        if piece.note != "evidence":
            return
        key, content = piece.data
        draft = self._results.get(key)
        if isinstance(draft, Draft):
            draft.blocks = [{**draft.blocks[0], "content": content}]
            draft.until = piece.offset


class VakReader(ChainReader):
    """Reads the entries of one ledger."""

    hash_field = "prev_hash"
    links = ("id", "parent_id")

    def record(self, record: Record) -> None:
        """See `Reader`."""
        kind = record.get("kind")
        self.link(record.get("id"), record.get("parent_id"))
        at = self.saw_time(record.get("ts"))
        if kind == "header":
            self._header(record)
        elif kind == "message":
            self._message(at, record)
            return
        elif kind == "compaction":
            self.counts.compactions += 1
            self.piece("compaction", [blocks.text(blocks.text_of(record.get("summary")))], at)
            return
        elif kind == "evidence_body" and isinstance(record.get("tool_use_id"), str):
            content = record.get("content")
            text = content if isinstance(content, str) else blocks.json_text(content)
            self.piece("note", [], at, note="evidence", data=(record["tool_use_id"], [blocks.text(text)]))
            return
        elif kind == "intent" and (told := blocks.word(record.get("model_visible"))):
            self.piece("context", [blocks.text(told)], at)
            return
        elif not isinstance(kind, str) or kind not in _KINDS:
            self.warn("unknown_record", f"kind {str(kind)[:80]!r} is not known")
        self.piece("note", [], at)

    def _header(self, record: Record) -> None:
        self.about.session_id = self.about.session_id or blocks.word(record.get("session_id"))
        self.about.cwd = blocks.word(record.get("cwd")) or self.about.cwd
        self.about.parent = blocks.word(record.get("parent_session_id")) or self.about.parent

    def _message(self, at: str | None, record: Record) -> None:
        message, meta = record.get("message"), record.get("meta")
        if not isinstance(message, dict):
            self.warn("unknown_record", "a message entry without a message")
            self.piece("note", [], at)
            return
        told = meta if isinstance(meta, dict) else {}
        found = [item for item in blocks.items(message.get("content")) if isinstance(item, dict)]
        results = [item for item in found if item.get("type") == "tool_result"]
        for number, item in enumerate(results):
            key = blocks.word(item.get("tool_use_id")) or self.place(f"result-{number}")
            content = [self._said(part, told) for part in blocks.items(item.get("content")) if isinstance(part, dict)]
            self.piece("results", [blocks.result_block(key, content, failed=item.get("is_error") is True)], at)
        said = [self._said(item, told) for item in found if item.get("type") != "tool_result"]
        if message.get("role") == "assistant":
            self._assistant(at, record, told, said)
        elif said or not results:
            is_typed = not told.get("control") and not results
            self.piece("prompt" if is_typed else "context", said, at)
            self.counts.prompts_lt += is_typed and any(
                not str(b.get("text", "<")).lstrip().startswith("<") for b in said
            )

    def _assistant(self, at: str | None, record: Record, meta: Record, said: list[BlockDict]) -> None:
        self.counts.assistant_msgs += 1
        model = blocks.word(meta.get("model"))
        self.counts.saw_model(model)
        named = {"id": blocks.word(record.get("id")), "model": model, "stop": blocks.word(meta.get("stop_reason"))}
        fields = {name: value for name, value in named.items() if value}
        self.piece("answer", said, at, fields, usage=_usage(meta.get("usage")))

    def _said(self, item: BlockDict, meta: Record) -> BlockDict:
        kind = item.get("type")
        if kind == "text":
            return blocks.text(blocks.text_of(item.get("text")))
        if kind == "thinking":
            shown = blocks.text_of(item.get("thinking")) or blocks.text_of(item.get("text"))
            return blocks.thinking(shown, "vak", blocks.word(meta.get("model")), self.settled(item))
        if kind == "tool_use":
            key = blocks.word(item.get("id")) or self.place("call")
            return blocks.call_block(key, item.get("name"), self.settled(item.get("input")))
        if kind == "image":
            source = item.get("source")
            found = source if isinstance(source, dict) else item
            return self.image(blocks.image(found.get("data"), found.get("media_type"), whole=self.cap is None))
        return self.unknown(item)


class VakFormat(Format):
    """See the module."""

    name = "vak"
    title = "vak"
    assembly: type[Assembly] = VakAssembly

    def judge(self, record: Record) -> Verdict:
        """See `Format`."""
        kind = record.get("kind")
        is_entry = isinstance(kind, str) and kind in _KINDS and {"id", "ts"} <= record.keys()
        return Verdict.CERTAIN if is_entry else Verdict.NO

    def reader(self, cap: int | None) -> VakReader:
        """See `Format`."""
        return VakReader(cap)

    def places(self, where: Where) -> Sequence[Place]:
        """See `Format`."""
        return [Place(where.folder("VAK_HOME", ".vak"), "**/sessions/*/*.jsonl")]


FORMATS = (VakFormat(),)


def _usage(usage: object) -> dict[str, int] | None:
    if not isinstance(usage, dict):
        return None
    names = (("input_tokens", "input"), ("cache_read_tokens", "cache_read"), ("cache_write_tokens", "cache_write"))
    fresh, read, write = (usage.get(long, usage.get(short)) for long, short in names)
    return blocks.usage_dict(fresh, read, write, usage.get("output_tokens", usage.get("output")))
