"""What a summary must hold whatever the model writes: tools, files, kept results, and what is open.

The record is made from the messages, not by a model, and stands behind the model's text under a
heading of its own. The next compaction reads it back and adds to it, so nothing wears off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.messages import MessageDict
from harness.sessions import Turn
from harness.sessions.selection.mentions import files_in, one_line

__all__ = ["Record", "record_of", "split_record", "with_record"]

_HEADING = "## Record"
_MOST_TOOLS, _MOST_FILES, _MOST_RESULTS, _MOST_OPEN = 40, 60, 30, 12
_ASKED = "the assistant asked: "


@dataclass(slots=True)
class Record:
    """Facts about turns that are not shown any more. Newest last; only so many of each are kept."""

    tools: dict[str, int] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    def add(self, other: Record) -> None:
        """Take in what came later."""
        for tool, count in other.tools.items():
            self.tools[tool] = self.tools.pop(tool, 0) + count
        self.tools = dict([*self.tools.items()][-_MOST_TOOLS:])
        self.files = _newest([*self.files, *other.files], _MOST_FILES)
        self.results = _newest([*self.results, *other.results], _MOST_RESULTS)
        # What the assistant asked at the end of an earlier turn was answered, or passed over, by the next directive.
        still = [text for text in self.open if not text.startswith(_ASKED)]
        self.open = _newest([*still, *other.open], _MOST_OPEN)

    def lines(self) -> list[str]:
        """The record as text; nothing where there is nothing to say."""
        said = [
            *[f"- tool used: {tool} (x{count})" for tool, count in self.tools.items()],
            *[f"- file: {path}" for path in self.files],
            *[f"- result kept in: {place}" for place in self.results],
            *[f"- open: {text}" for text in self.open],
        ]
        return [_HEADING, *said] if said else []


def record_of(turns: Iterable[Turn]) -> Record:
    """The facts of these turns."""
    record = Record()
    for turn in turns:
        record.add(_of_turn(turn))
    return record


def split_record(summary: str) -> tuple[str, Record]:
    """A summary without its record, and the record."""
    lines = summary.split("\n")
    starts = [index for index, line in enumerate(lines) if line == _HEADING]
    if not starts:
        return summary, Record()
    record = Record()
    for line in lines[starts[-1] + 1 :]:
        _read(line, record)
    return "\n".join(lines[: starts[0]]).rstrip(), record


def with_record(text: str, record: Record) -> str:
    """A model's summary with the record behind it; whatever the model made of an earlier one is left out."""
    own, _ = split_record(text)
    lines = record.lines()
    return "\n".join([own.strip(), "", *lines]).strip() if lines else own.strip()


def _read(line: str, record: Record) -> None:
    what, _, value = line.removeprefix("- ").partition(": ")
    if what == "tool used":
        tool, _, count = value.removesuffix(")").rpartition(" (x")
        if count.isdecimal():
            record.tools[tool] = int(count)
    elif what == "file":
        record.files.append(value)
    elif what == "result kept in":
        record.results.append(value)
    elif what == "open":
        record.open.append(value)


def _of_turn(turn: Turn) -> Record:
    record = Record()
    for message in turn.messages:
        for block in _blocks(message):
            if block.get("type") == "toolUse":
                name = one_line(str(block.get("name")))
                record.tools[name] = record.tools.get(name, 0) + 1
                record.files.extend(files_in(block.get("input")))
            elif block.get("type") == "toolResult" and isinstance(kept := block.get("evicted"), dict):
                record.results.append(one_line(f"{kept.get('path')} (call {block.get('id')}, {block.get('name')})"))
    record.open = list(_open(turn))
    record.files = _newest(record.files, _MOST_FILES)
    return record


def _open(turn: Turn) -> Iterator[str]:
    first, last = turn.messages[0], turn.messages[-1]
    meta = last.get("meta")
    limited = isinstance(meta, dict) and bool(meta.get("stepLimit"))
    if turn.closed and (turn.aborted or limited) and first.get("role") == "user":
        yield one_line(f"“{_text(first)}” ({'not finished' if limited else 'stopped before an answer'})")
    if turn.closed and last.get("role") == "assistant":
        asked = [line for line in _text(last).splitlines() if line.rstrip().endswith(("?", "\uff1f"))]
        if asked:
            yield one_line(f"{_ASKED}“{asked[-1].strip()}”")


def _text(message: MessageDict) -> str:
    return "\n".join(str(block.get("text", "")) for block in _blocks(message) if block.get("type") == "text")


def _blocks(message: MessageDict) -> list[dict[str, Any]]:
    content = message.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _newest(items: Sequence[str], most: int) -> list[str]:
    """Each once, where it came last; the newest of them."""
    return list(dict.fromkeys(reversed(items)))[:most][::-1]
