"""Gemini CLI sessions: one JSON document, or (since 0.40) lines that may replace or take back others.

Results stand inside their calls. Fresh input is `input` without `cached`; thoughts are outside `output`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.filesystem import disk
from harness.sessions.lines.parsing import values_of
from harness.transcripts import blocks
from harness.transcripts.blocks import BlockDict
from harness.transcripts.document import read_document
from harness.transcripts.formats.base import Format, Opened, Place, Verdict, Where
from harness.transcripts.lines import Line, Record, TranscriptWarning, parsed_line
from harness.transcripts.pieces import About, Reader
from harness.transcripts.rows import RowSource
from harness.transcripts.source import FileSource, file_mark

__all__ = ["FORMATS", "GeminiFormat", "GeminiReader"]

_TYPES = frozenset({"user", "gemini", "info", "error", "warning"})
_FAILED = frozenset({"error", "cancelled"})
_NEAR = 4 * 1024 * 1024


class GeminiReader(Reader):
    """Reads the messages of one session."""

    def record(self, record: Record) -> None:
        """See `Reader`."""
        kind = blocks.text_of(record.get("type"))
        at = self.saw_time(record.get("timestamp"))
        fields = {"id": key} if (key := blocks.word(record.get("id"))) else {}
        if kind == "user":
            said = self._content(record.get("content"))
            self.piece("prompt", said, at, fields)
            self.counts.prompts_lt += blocks.begins_untagged(said)
        elif kind == "gemini":
            self._answer(at, record, fields)
        elif kind in _TYPES:
            self.piece("meta", self._content(record.get("content")), at, fields)
        else:
            self.warn("unknown_record", f"type {kind[:80]!r} is not known")

    def _answer(self, at: str | None, record: Record, fields: dict[str, str]) -> None:
        self.counts.assistant_msgs += 1
        model = blocks.word(record.get("model"))
        self.counts.saw_model(model)
        fields["provider"] = "google"
        if model:
            fields["model"] = model
        content, found = self._content(record.get("content")), record.get("toolCalls")
        if thoughts := record.get("thoughts"):
            content = [*self._thoughts(thoughts, model), *content]
        calls: list[tuple[str, Record]] = []
        for call in found if type(found) is list else ():
            if type(call) is dict:
                key = blocks.word(call.get("id")) or self.place(f"call-{len(calls)}")
                calls.append((key, call))
                content.append(blocks.call_block(key, call.get("name"), self.settled(call.get("args"))))
        self.piece("answer", content, at, fields, None, _usage(record.get("tokens")))
        for key, call in calls:
            self._result(at, key, call)

    def _thoughts(self, thoughts: object, model: str | None) -> list[BlockDict]:
        found = [item for item in thoughts if isinstance(item, dict)] if isinstance(thoughts, list) else []
        if not found:
            return []
        parts = [[blocks.text_of(item.get("subject")), blocks.text_of(item.get("description"))] for item in found]
        shown = ["\n".join(part for part in pair if part) for pair in parts]
        return [blocks.thinking("\n\n".join(shown), "google", model, self.settled(found))]

    def _result(self, at: str | None, key: str, call: Record) -> None:
        result, status = call.get("result"), blocks.text_of(call.get("status"))
        if result is None and status not in _FAILED:
            return
        parts = blocks.items(result) if type(result) is not dict else [result]
        content = [self._response(part) for part in parts if type(part) is dict]
        if not content:
            content = [blocks.text(blocks.text_of(call.get("resultDisplay")))]
        self.piece("results", [blocks.result_block(key, content, status in _FAILED)], at)

    def _response(self, part: Record) -> BlockDict:
        found = part.get("functionResponse")
        response = found.get("response") if isinstance(found, dict) else None
        if not isinstance(response, dict):
            return self._said(part)
        told = response.get("output", response.get("error", response))
        return blocks.text(told if isinstance(told, str) else blocks.json_text(told))

    def _content(self, content: object) -> list[BlockDict]:
        if type(content) is str:
            return [blocks.text(content)] if content else []
        found: list[BlockDict] = []
        for part in [content] if type(content) is dict else blocks.items(content):
            if type(part) is dict:
                block = self._said(part)
                if block["type"] != "text" or block["text"]:
                    found.append(block)
        return found

    def _said(self, part: Record) -> BlockDict:
        if type(said := part.get("text")) is str:
            return blocks.text(said)
        data = part.get("inlineData")
        if isinstance(data, dict):
            return self.image(blocks.image(data.get("data"), data.get("mimeType"), whole=self.cap is None))
        return self.unknown(part)


class GeminiFormat(Format):
    """See the module."""

    name = "gemini"
    title = "Gemini CLI"

    def judge(self, record: Record) -> Verdict:
        """See `Format`."""
        if {"sessionId", "projectHash"} <= record.keys() or "$set" in record or "$rewindTo" in record:
            return Verdict.CERTAIN if "messages" not in record else Verdict.NO
        is_message = (
            blocks.text_of(record.get("type")) in _TYPES
            and "id" in record
            and "timestamp" in record
            and "content" in record
        )
        return Verdict.LIKELY if is_message and "message" not in record else Verdict.NO

    def judge_document(self, value: object) -> bool:
        """See `Format`."""
        return isinstance(value, dict) and isinstance(value.get("messages"), list) and "sessionId" in value

    def is_document(self, path: Path) -> bool:
        """Later lines change earlier ones, so all of them have to be read."""
        return True

    def reader(self, cap: int | None) -> GeminiReader:
        """See `Format`."""
        return GeminiReader(cap)

    def places(self, where: Where) -> Sequence[Place]:
        """See `Format`."""
        root = where.folder("GEMINI_CLI_HOME") / ".gemini" if "GEMINI_CLI_HOME" in where.env else where.home / ".gemini"
        return [Place(root / "tmp", "*/chats/session-*.json*")]

    def open(self, path: Path, session_id: str) -> Opened:
        """See `Format`."""
        first = next(FileSource(path).lines(), None)
        if first is not None and first.record is not None and not self.judge_document(first.record):
            return _open_lines(path, session_id)
        document = read_document(path)
        if document is not None and self.judge_document(document.value):
            value: Record = document.value
            records = [item for item in value["messages"] if isinstance(item, dict)]
            source = RowSource.of(records, [record.get("id") for record in records])
            text = "the document was cut before its end; it may be being written just now"
            warnings = (TranscriptWarning("truncated", 0, text),) if document.is_cut else ()
            return _opened(path, value, source, session_id, (1, 0), warnings)
        return _open_lines(path, session_id)


FORMATS = (GeminiFormat(),)


class _At(NamedTuple):
    """Where a message stands: the line, and within a line that holds several, which of them it is."""

    offset: int
    size: int
    item: int | None = None


class _Messages:
    """The messages of a file of lines, by their places; a few of odd lines as they are."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.warnings: list[TranscriptWarning] = []
        self._found: dict[str, _At | Record] = {}
        self._torn: list[int] = []
        """How many messages stood in front of each line that cannot be read and may be one."""
        self._held: tuple[int, Record] = (-1, {})

    def apply(self, line: Line, record: Record, about: Record) -> None:
        """One line: settings, a message new or again, or a step back."""
        changed = record.get("$set")
        if isinstance(changed, dict):
            about.update({name: value for name, value in changed.items() if name != "messages"})
            if isinstance(changed.get("messages"), list):
                self._found = dict(self._replaced(line, changed["messages"]))
                self._torn.clear()
        elif "$rewindTo" in record:
            self._rewind(line, record["$rewindTo"])
        elif "type" not in record and "sessionId" in record:
            about.update(record)
        else:
            self._found[blocks.word(record.get("id")) or f"line-{line.number}"] = self._place(line, record)

    def step_over(self) -> None:
        """A line that cannot be read."""
        self._torn.append(len(self._found))

    def source(self) -> RowSource:
        """All that was said and not taken back."""
        places = list(self._found.values())
        return RowSource(lambda first, stop: self._read(places[first:stop]), list(self._found))

    def _replaced(self, line: Line, messages: list[object]) -> Iterator[tuple[str, _At | Record]]:
        for number, item in enumerate(messages):
            if isinstance(item, dict):
                yield str(item.get("id") or f"set-{line.number}-{number}"), self._place(line, item, number)

    def _rewind(self, line: Line, key: object) -> None:
        if isinstance(key, str) and key in self._found:
            while self._found.popitem()[0] != key:  # from the end, so that many steps back look at each line once
                pass
        else:
            self._rewind_to_torn(line, key)
        while self._torn and self._torn[-1] > len(self._found):
            self._torn.pop()

    def _rewind_to_torn(self, line: Line, key: object) -> None:
        """Take back what is behind the last line that cannot be read: the message meant is that one, or before it."""
        done = "nothing was taken back"
        if isinstance(key, str) and self._torn:
            done = "what follows the last line that cannot be read was taken back"
            left = self._torn.pop()
            while len(self._found) > left:
                self._found.popitem()
        text = f"$rewindTo {str(key)[:80]!r}: there is no such message; {done}"
        self.warnings.append(TranscriptWarning("missing_entry", line.number, text))

    def _place(self, line: Line, record: Record, item: int | None = None) -> _At | Record:
        # What is left of a torn line, and the first line of a file, may not begin where the line does.
        return record if line.is_bad or line.offset == 0 else _At(line.offset, len(line.raw), item)

    def _read(self, places: list[_At | Record]) -> Iterator[Record | None]:
        """The messages at some places."""
        near = self._near({place[0]: place[1] for place in places if isinstance(place, _At)})
        for place in places:
            if not isinstance(place, _At):
                yield place
            else:
                offset, _, item = place
                record = near.get(offset)
                yield _message(record if type(record) is dict else self._alone(place), item)

    def _near(self, sizes: dict[int, int]) -> dict[int, Any]:
        """The values of some lines by their offsets, read and parsed all at once; none where they are far apart."""
        if not sizes:
            return {}
        start, last = min(sizes), max(sizes)
        end = last + sizes[last]
        if end - start > _NEAR:
            return {}
        raw = disk.read(self._path, start, end - start)
        parts = [raw[offset - start : offset - start + size] for offset, size in sizes.items()]
        return dict(zip(sizes, values_of(parts), strict=True))

    def _alone(self, place: _At) -> Record:
        """One line read by itself; it is held, since it may have several messages."""
        if self._held[0] != place.offset:
            line = parsed_line(disk.read(self._path, place.offset, place.size), place.offset)
            self._held = (place.offset, line.record if line is not None and line.record is not None else {})
        return self._held[1]


def _message(record: Record, item: int | None) -> Record | None:
    """What a line has at a place."""
    if item is None:
        return record or None
    changed = record.get("$set")
    found = changed.get("messages") if isinstance(changed, dict) else None
    message = found[item] if isinstance(found, list) and item < len(found) else None
    return message if isinstance(message, dict) else None


def _open_lines(path: Path, session_id: str) -> Opened:
    about: Record = {}
    messages = _Messages(path)
    warnings = messages.warnings
    count = bad = 0
    for line in FileSource(path).lines():
        count, bad = count + 1, bad + line.is_bad
        warnings += [line.warning] if line.warning is not None else []
        if line.is_bad:
            messages.step_over()
        if line.record is not None:
            messages.apply(line, line.record, about)
    return _opened(path, about, messages.source(), session_id, (count, bad), tuple(warnings))


def _opened(
    path: Path,
    about: Record,
    source: RowSource,
    session_id: str,
    counted: tuple[int, int],
    warnings: tuple[TranscriptWarning, ...],
) -> Opened:
    found = blocks.word(about.get("sessionId")) or session_id or path.stem
    directories = about.get("directories")
    cwd = blocks.word(directories[0]) if isinstance(directories, list) and directories else None
    parent = path.parent.name if about.get("kind") == "subagent" else None
    told = About(session_id=found, cwd=cwd, parent=parent, title=blocks.word(about.get("summary")))
    return Opened(source, found, file_mark(path).size, warnings, about=told, counted=counted)


def _usage(tokens: object) -> dict[str, int] | None:
    if not isinstance(tokens, dict):
        return None
    get = tokens.get
    found = blocks.usage_dict(get("input"), get("cached"), 0, get("output"), get("thoughts") or 0)
    found["input"] = max(0, found["input"] - found["cacheRead"])
    return found
