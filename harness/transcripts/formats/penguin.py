"""penguin-harness sessions: one file (shard) for each context, joined in the order of their numbers.

What belongs to one request stands between its `request_begin` and the next one's. A call id may come
again in a later request: here it has the place of its line in front of it, which a window knows as well
as who reads the whole, and a result is of the newest call of its id. What a compaction writes is its
summary and no answer. A text that was typed while the model worked stands in a wrapper; a prompt's
picture is a message of its own right behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.filesystem import disk
from harness.transcripts import blocks
from harness.transcripts.assembly import Assembly, Draft
from harness.transcripts.blocks import BlockDict
from harness.transcripts.formats.base import Format, Opened, Place, Verdict, Where
from harness.transcripts.lines import Record
from harness.transcripts.pieces import Piece, Reader, Subagent
from harness.transcripts.source import FileSource, JoinedSource, neighbours

__all__ = ["FORMATS", "PenguinAssembly", "PenguinFormat", "PenguinReader", "id_in_file"]

_TYPES = frozenset({"session_meta", "model_msg", "event_msg"})
_SHARD = re.compile(r"(?P<session>.+)_(?P<number>\d{3,})\.jsonl")
_CALL = re.compile(r"\Ab\d+-")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_SUMMARY = re.compile(r"\s*[\[<]context_summary[\]>]")
_STEERING, _STEERED = "[user_steering]", "[/user_steering]"
_PEOPLE = frozenset({"user", "parent_agent"})
_ASSISTANT = frozenset({"thinking", "inline_thinking", "tool_call"})
_EVENTS = frozenset(
    {
        *("request_begin", "request_end", "token_usage", "approval_decision", "abort", "compaction_begin"),
        *("compaction_end", "subagent", "tool_list_ready", "mcp_connect_begin", "mcp_connect_end", "goal_finished"),
    }
)


class PenguinAssembly(Assembly):
    """See the module."""

    state_mark = b'"session_meta"'

    def __init__(self) -> None:
        super().__init__()
        self._open: Draft | None = None
        self._last: Draft | None = None
        self._asked: Draft | None = None
        self._compacting: int | None = None
        self._named: dict[str, str] = {}
        self._state: dict[str, str] = {}

    def resume(self, state: Iterable[Piece]) -> None:
        """See `Assembly`."""
        for piece in state:
            self._state = piece.data

    def note(self, piece: Piece) -> None:
        """Brackets, totals, and which model speaks."""
        self._asked = None
        if piece.note == "request_begin":
            self._open = None
        elif piece.note in ("compaction_begin", "compaction_end"):
            self._compact(piece)
        elif piece.note == "session_meta":
            self._state = piece.data
        elif piece.note == "token_usage" and self._last is not None:
            self._last.show(piece.data)

    def _compact(self, piece: Piece) -> None:
        """A compaction begins or ends; what stands between is read as one."""
        self._open, begun = None, self._compacting
        if piece.note == "compaction_begin":
            self._compacting = piece.offset
            return
        self._compacting = None
        if begun is None:
            self.tie_in_front(piece.offset)
        else:
            self.tie(begun, piece.offset)

    def message(self, piece: Piece) -> Draft:
        """What is said to the model during a compaction is no prompt; a picture belongs to the prompt before it."""
        asked = self._asked
        if asked is not None and piece.note == "picture":
            asked.blocks, asked.until = [*asked.blocks, *piece.blocks], piece.offset
            return asked
        draft = self.keep(Draft(piece))
        if self._compacting is not None and draft.kind == "prompt":
            draft.kind = "context"
        self._asked = draft if draft.kind in ("prompt", "queued") else None
        return draft

    def answer(self, piece: Piece) -> None:
        """One more piece of the open request's answer; within a compaction, its summary."""
        self._asked = None
        if self._compacting is not None and (texts := [block for block in piece.blocks if block["type"] == "text"]):
            self.added.extra_texts += len(texts)
            self._last = self.keep(Draft(piece))
            self._last.kind, self._last.blocks = "compaction", texts
            return
        if self._open is None:
            self._open = self._last = self.keep(Draft(piece))
            self._open.blocks, self._open.fields = [], dict(self._state)
        self._open.until = piece.offset
        for block in piece.blocks:
            self._open.blocks.append(self._own(block))

    def result(self, piece: Piece) -> None:
        """A result answers the newest call of its id."""
        block = piece.blocks[0]
        named = self._named.get(block["id"])
        super().result(piece if named is None else piece.replaced(blocks=[{**block, "id": named}]))

    def _own(self, block: BlockDict) -> BlockDict:
        if block["type"] == "thinking" and "opaque" in block:
            model = {"model": self._state["model"]} if "model" in self._state else {}
            opaque = {"provider": self._state.get("provider", "unknown"), **model, "data": block["opaque"]["data"]}
            return {**block, "opaque": opaque}
        if block["type"] != "toolUse":
            return block
        self._named[id_in_file(block["id"])] = block["id"]
        self._calls[block["id"]] = block
        return block


class PenguinReader(Reader):
    """Reads the lines of one session."""

    def record(self, record: Record) -> None:
        """See `Reader`."""
        kind, payload = record.get("type"), record.get("payload")
        at = self.saw_time(record.get("timestamp"))
        if type(payload) is not dict:
            self.warn("unknown_record", f"type {str(kind)[:80]!r} is not known")
        elif kind == "model_msg":
            self._message(at, payload)
        elif kind == "event_msg":
            self._event(at, payload)
        elif kind == "session_meta":
            self._meta(payload)
        else:
            self.warn("unknown_record", f"type {str(kind)[:80]!r} is not known")

    def _meta(self, payload: Record) -> None:
        self.about.session_id = self.about.session_id or blocks.word(payload.get("session_id"))
        self.about.cwd = blocks.word(payload.get("workspace")) or self.about.cwd
        model, provider = blocks.word(payload.get("model_id")), blocks.word(payload.get("provider"))
        self.counts.saw_model(model)
        if payload.get("source") == "subagent":
            self.warn("subagent", "the trace of a sub-agent, not of a conversation with a person")
        named = {"provider": provider, "model": model}
        self.note("session_meta", {name: value for name, value in named.items() if value})

    def _event(self, at: str | None, payload: Record) -> None:
        kind = blocks.text_of(payload.get("type"))
        if kind == "token_usage":
            if type(usage := payload.get("request")) is dict:
                self.note(kind, _usage(usage), at)
            return
        if kind == "request_begin":
            self.counts.assistant_msgs += 1
        elif kind == "compaction_begin":
            self.counts.compactions += 1
        elif kind == "subagent" and (child := blocks.word(payload.get("session_id"))):
            self.about.subagents.append(Subagent(child))
        elif kind == "abort":
            self.piece("meta", [blocks.text(blocks.word(payload.get("reason")) or "[aborted]")], at)
        elif kind not in _EVENTS:
            self.warn("unknown_record", f"event of type {kind[:80]!r} is not known")
        self.note(kind, None, at)

    def _message(self, at: str | None, payload: Record) -> None:
        kind, is_answer = blocks.text_of(payload.get("type")), payload.get("role") == "assistant"
        if kind == "tool_call_output":
            self._result(at, payload)
        elif is_answer or kind in _ASSISTANT:
            self.piece("answer", [self._answer(payload)], at)
        elif kind == "text":
            self._text(at, payload)
        else:
            self.piece("prompt", [self._picture(payload)], at, note="picture")
            self.counts.prompts_lt += 1

    def _text(self, at: str | None, payload: Record) -> None:
        text = blocks.text_of(payload.get("text"))
        if _SUMMARY.match(text):
            self.piece("compaction", [blocks.text(text)], at)
            return
        is_typed = blocks.text_of(payload.get("sender", "user")) in _PEOPLE
        if is_typed and text.startswith(_STEERING) and text.endswith(_STEERED):
            said = text.removeprefix(_STEERING).removesuffix(_STEERED)
            self.piece("queued", [blocks.text(said)], at)
        else:
            self.piece("prompt" if is_typed else "context", [blocks.text(text)], at)
        self.counts.prompts_lt += is_typed and not text.lstrip().startswith("<")

    def _answer(self, payload: Record) -> BlockDict:
        kind = payload.get("type")
        if kind == "thinking":
            shown = blocks.text_of(payload.get("thinking"))
            return {"type": "thinking", "text": shown, "opaque": {"data": self.settled(payload)}}
        if kind == "inline_thinking":
            return {"type": "thinking", "text": "", "opaque": {"data": self.settled(payload)}}
        if kind == "tool_call":
            key = blocks.word(payload.get("tool_call_id")) or "call"
            return blocks.call_block(self.place(key), payload.get("name"), payload.get("arguments"))
        if kind == "text":
            return blocks.text(blocks.text_of(payload.get("text")))
        return self._picture(payload)

    def _picture(self, payload: Record) -> BlockDict:
        whole = self.cap is None
        if payload.get("type") == "image_url":
            return self.image(blocks.image_from_url(payload.get("image_url"), whole=whole))
        if payload.get("type") == "inline_data":
            return self.image(blocks.image(payload.get("data"), payload.get("mime_type"), whole=whole))
        return self.unknown(payload)

    def _result(self, at: str | None, payload: Record) -> None:
        key = blocks.word(payload.get("tool_call_id")) or self.place("result")
        content = [blocks.text(blocks.text_of(payload.get("output")))]
        if type(urls := payload.get("images")) is list:
            content += [self.image(blocks.image_from_url(url, whole=self.cap is None)) for url in urls]
        failed = payload.get("stop_reason", "completed") != "completed"
        self.piece("results", [blocks.result_block(key, content, failed)], at)


class PenguinFormat(Format):
    """See the module."""

    name = "penguin"
    title = "penguin-harness"
    assembly: type[Assembly] = PenguinAssembly

    def judge(self, record: Record) -> Verdict:
        """See `Format`."""
        kind, payload = blocks.text_of(record.get("type")), record.get("payload")
        if not isinstance(payload, dict) or kind not in _TYPES:
            return Verdict.NO
        if kind == "model_msg":
            return Verdict.CERTAIN
        if kind == "session_meta":
            return Verdict.CERTAIN if {"session_id", "model_id"} <= payload.keys() else Verdict.NO
        return Verdict.CERTAIN if blocks.text_of(payload.get("type")) in _EVENTS - {"abort"} else Verdict.NO

    def reader(self, cap: int | None) -> PenguinReader:
        """See `Format`."""
        return PenguinReader(cap)

    def places(self, where: Where) -> Sequence[Place]:
        """See `Format`."""
        return [Place(where.folder("PENGUIN_HOME", ".penguin", "data"), "*/agents/*/traces/*/*_*.jsonl")]

    def files(self, path: Path) -> Sequence[Path]:
        """See `Format`."""
        return _shards(path)

    def home(self, path: Path) -> Path:
        """The folder of all shards, whatever day they are of."""
        if _SHARD.fullmatch(path.name) is None:
            return path
        return path.parent.parent if _DAY.fullmatch(path.parent.name) else path.parent

    def marks(self, path: Path) -> tuple[object, ...]:
        """Those of all shards: the newest one grows, whichever was named."""
        return tuple(disk.mark(shard) for shard in _shards(path))

    def open(self, path: Path, session_id: str) -> Opened:
        """All shards of the session, whichever of them was named."""
        sources = [FileSource(shard) for shard in _shards(path)]
        source = JoinedSource(sources)
        return Opened(source, session_id, source.total)


FORMATS = (PenguinFormat(),)


def id_in_file(key: str) -> str:
    """The id that a call, or its result, has in the file."""
    return _CALL.sub("", key)


def _shards(path: Path) -> list[Path]:
    """The files of a session, in this folder and, below `traces/`, in those of other days."""
    named = _SHARD.fullmatch(path.name)
    if named is None:
        return [path]
    folders = [path.parent]
    if _DAY.fullmatch(path.parent.name):
        days = [item.name for item in disk.list_folder(path.parent.parent) if item.is_dir]
        folders = [path.parent.parent / day for day in days if _DAY.fullmatch(day)] or folders
    found: dict[int, Path] = {}
    for folder in folders:
        for one in neighbours(folder):
            other = _SHARD.fullmatch(one.name)
            if other is not None and other["session"] == named["session"]:
                found.setdefault(int(other["number"]), one)
    found.setdefault(int(named["number"]), path)
    return [found[number] for number in sorted(found)]


def _usage(usage: Record) -> dict[str, int]:
    get = usage.get
    found = blocks.usage_dict(get("total"), get("cache_read"), get("cache_write"), get("output"))
    found["input"] = max(0, found["input"] - found["cacheRead"] - found["cacheWrite"] - found["output"])
    return found
