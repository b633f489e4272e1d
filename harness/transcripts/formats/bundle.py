"""The bundle that this library writes for a session of any format: the normal form, a turn a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from harness.transcripts import blocks
from harness.transcripts.assembly import Assembly
from harness.transcripts.blocks import BlockDict
from harness.transcripts.formats.base import Format, Place, Verdict, Where
from harness.transcripts.lines import Record
from harness.transcripts.pieces import Piece, Reader, Subagent
from harness.transcripts.stats import Tokens
from harness.transcripts.times import stamp
from harness.transcripts.turns import Aside, Kind

__all__ = ["COUNTED", "FORMATS", "HEADER", "TRANSCRIPT", "BundleAssembly", "BundleFormat", "BundleReader"]

HEADER = "transcript"
"""The `type` of the first line."""
TRANSCRIPT = "transcript.jsonl"
COUNTED = {
    "promptsLt": "prompts_lt",
    "metaLines": "meta_lines",
    "assistantMsgs": "assistant_msgs",
    "images": "images",
    "compactions": "compactions",
    "sidechainLines": "sidechain_lines",
    "extraTexts": "extra_texts",
}
"""What only the reader of the source could count, under its names in the header and in `Counts`."""
_KINDS = frozenset(get_args(Kind))
_ASIDES = frozenset(get_args(Aside))


class BundleAssembly(Assembly):
    """The header knows what the session cost, also where its messages do not say."""

    _total: Tokens | None = None

    def note(self, piece: Piece) -> None:
        """The totals of the source."""
        known = {name: blocks.integer(number) for name, number in piece.data["usage"].items()}
        first, naive = (blocks.integer(piece.data.get(name)) for name in ("first", "naive"))
        self._total = Tokens(known, first, naive, is_known=True)

    def tokens(self) -> Tokens:
        """See `Assembly`."""
        return self._total or super().tokens()


class BundleReader(Reader):
    """Reads the lines of one bundle."""

    _counted: Mapping[str, Any] | None = None

    def record(self, record: Record) -> None:
        """See `Reader`."""
        kind, message = record.get("kind"), record.get("message")
        if record.get("type") == HEADER:
            self._header(record)
        elif record.get("type") != "turn" or kind not in _KINDS or not isinstance(message, dict):
            self.warn("unknown_record", f"type {str(record.get('type'))[:80]!r} is not known")
        else:
            self._turn(str(kind), record, message)

    def _header(self, record: Record) -> None:
        about = self.about
        about.session_id = blocks.word(record.get("sessionId"))
        about.title, about.harness = blocks.word(record.get("title")), blocks.word(record.get("harness"))
        about.model = blocks.word(record.get("model"))
        about.cwd, about.branch = blocks.word(record.get("cwd")), blocks.word(record.get("branch"))
        about.parent, about.forked_from = blocks.word(record.get("parent")), blocks.word(record.get("forkedFrom"))
        about.subagents += _subagents(record.get("subagents"))
        for name in ("firstTs", "lastTs"):
            self.saw_time(record.get(name))
        tokens, counted, models = record.get("tokens"), record.get("counts"), record.get("models")
        if isinstance(tokens, dict) and isinstance(tokens.get("usage"), dict):
            self.note("tokens", tokens)
        self._counted = counted if isinstance(counted, dict) else None
        for name in models if isinstance(models, list) else ():
            self.counts.saw_model(name)

    def finish(self) -> None:
        """What the source counted stands above what its turns show."""
        for name, field in COUNTED.items():
            if self._counted is not None and name in self._counted:
                setattr(self.counts, field, blocks.integer(self._counted[name]))

    def _turn(self, kind: str, record: Record, message: dict[str, Any]) -> None:
        at = stamp(record.get("at"))
        if self._counted is None and at is not None:
            self.counts.saw_time(at)
        found = message.get("content")
        content = [self._block(item) for item in found if isinstance(item, dict)] if isinstance(found, list) else []
        aside: Any = record.get("aside") if record.get("aside") in _ASIDES else None
        self.counts.sidechain_lines += aside == "sidechain"
        fields = {name: value for name, value in message.items() if name not in ("role", "content", "usage")}
        if kind in ("results", "orphan"):
            for block in content:
                if block["type"] == "toolResult":
                    self.piece("results", [block], at, aside=aside)
            return
        more: dict[str, Any] = {}
        if kind == "answer":
            self.counts.assistant_msgs += 1
            self.counts.saw_model(message.get("model"))
            usage = message.get("usage")
            more["usage"] = {k: blocks.integer(v) for k, v in usage.items()} if isinstance(usage, dict) else None
        self.counts.compactions += kind == "compaction"
        self.counts.prompts_lt += kind == "prompt" and _is_plain(content)
        named: Any = kind
        self.piece(named, content, at, aside=aside, fields=fields, **more)

    def _block(self, block: BlockDict) -> BlockDict:
        """A block as it was written, with the fields that the normal form relies on."""
        kind = block.get("type")
        if kind in ("text", "thinking"):
            return {**block, "text": blocks.text_of(block.get("text"))}
        if kind == "toolUse":
            given = block.get("input")
            named = {"id": blocks.word(block.get("id")) or self.place("call"), "name": str(block.get("name"))}
            return {**block, **named, "input": self.settled(given if isinstance(given, dict) else {"input": given})}
        if kind == "toolResult":
            content = [self._block(item) for item in blocks.items(block.get("content")) if isinstance(item, dict)]
            return {**block, "id": blocks.word(block.get("id")) or self.place("result"), "content": content}
        self.counts.images += kind in ("image", "unreadable_image")
        return blocks.kept_block(block) if isinstance(kind, str) else blocks.unknown(block)


class BundleFormat(Format):
    """See the module."""

    name = "bundle"
    title = "harness bundle"
    assembly: type[Assembly] = BundleAssembly

    def judge(self, record: Record) -> Verdict:
        """See `Format`."""
        if record.get("type") == HEADER:
            return Verdict.CERTAIN if {"version", "sessionId", "format"} <= record.keys() else Verdict.NO
        is_turn = record.get("type") == "turn" and record.get("kind") in _KINDS
        return Verdict.LIKELY if is_turn and isinstance(record.get("message"), dict) else Verdict.NO

    def reader(self, cap: int | None) -> BundleReader:
        """See `Format`."""
        return BundleReader(cap)

    def session_id(self, path: Path, found: str | None) -> str:
        """See `Format`."""
        return found or path.stem

    def places(self, where: Where) -> Sequence[Place]:
        """Bundles lie where somebody put them."""
        return ()


FORMATS = (BundleFormat(),)


def _subagents(found: object) -> list[Subagent]:
    """Who was started by the session; where they are written is not taken from a bundle."""
    given = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    return [
        Subagent(key, call=blocks.word(one.get("call")), title=blocks.text_of(one.get("title")))
        for one in given
        if (key := blocks.word(one.get("sessionId")))
    ]


def _is_plain(content: list[BlockDict]) -> bool:
    return any(not str(block.get("text", "<")).lstrip().startswith("<") for block in content)
