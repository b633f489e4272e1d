"""What was said earlier in one conversation, whole, from its ledger: by turn, by tool result, by words.

A result is found by its evidence id `n.k` (turn n of the active path, its k-th result in the order
shown) or by the id of its call. Its text is the whole one, also where the model was shown a part.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from harness.errors import FileMissing, SessionDamaged
from harness.messages import MessageDict
from harness.sessions.lines.blobs import block_text, read_blob, try_expand
from harness.sessions.lines.entries import EntryDict
from harness.sessions.lines.layout import SessionFiles
from harness.sessions.selection.outline import Outline
from harness.sessions.view.projection import Turn
from harness.sessions.view.query import fold
from harness.sessions.view.turns import blocks_of, message_of
from harness.text import dumps

__all__ = ["Found", "Recalled", "RecalledTurn", "find_said", "recall_call", "recall_result", "recall_turn"]

RECALL = "recall"
"""The name of the tool that reads back."""
_SNIPPET = 240
_LEAD = 80
_SEARCHED = 64 * 1024 * 1024
"""Bytes of files beside the ledger that one search reads; what is behind that is searched as far as it was shown."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """A tool result. `media` says in a word each what it holds besides text.

    `lost` is how many characters it had where its file is gone, and `text` is only what was shown of it.
    """

    evidence: str
    call: str
    tool: str
    text: str
    is_error: bool
    media: tuple[str, ...] = ()
    lost: int = 0


@dataclass(frozen=True, slots=True)
class RecalledTurn:
    """A turn with everything that was said in it; `results` are those of its calls, in order."""

    number: int
    turns: int
    turn: Turn
    results: tuple[Recalled, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A place that holds words of a query. `evidence` is there for a tool's result."""

    number: int
    role: str
    snippet: str
    evidence: str | None = None
    tool: str = ""


def recall_turn(files: SessionFiles, number: int) -> RecalledTurn | int:
    """The turn of that number, or how many turns there are. Blocking; reads the whole ledger."""
    kept = _Kept(files)
    outline = Outline(files, kept.look)
    if not 1 <= number <= len(outline):
        return len(outline)
    turn = outline.turn(number)
    return RecalledTurn(number, len(outline), turn, tuple(_results(number, turn, kept)))


def recall_result(files: SessionFiles, number: int, ordinal: int) -> Recalled | None:
    """The result with the evidence id `number.ordinal`. Blocking; reads the whole ledger."""
    found = recall_turn(files, number)
    if isinstance(found, int) or not 1 <= ordinal <= len(found.results):
        return None
    return found.results[ordinal - 1]


def recall_call(files: SessionFiles, call_id: str) -> Recalled | None:
    """The result of the newest call with this id on the active path. Blocking; reads the whole ledger."""
    kept, calls = _Kept(files), _Calls(call_id)
    outline = Outline(files, kept.look, calls.look)
    numbers = {number for entry_id in calls.entries if (number := outline.number_of(entry_id)) is not None}
    for number in sorted(numbers, reverse=True):
        results = _results(number, outline.turn(number), kept)
        found = [result for result in results if result.call == call_id]
        if found:
            return found[-1]
    return None


def find_said(files: SessionFiles, query: str, limit: int) -> list[Found]:
    """The best places for the words of a query, best first, newer first where equal; blocking.

    How many of the words a place holds counts first, those that most places hold left aside; then how many stand there
    as words of their own, then how rare they are. A word is found inside longer ones, whatever its case. Left out are
    the newest turn, what hooks put in, what is no part of the conversation, and what was recalled; questions that led
    to a recall of these words and replies that followed one come last.
    """
    search = _Search(files, query)
    outline = Outline(files, search.look)
    best = search.best(outline, limit)
    turns = {number: outline.turn(number) for number in {number for number, _ in best}}
    shown = {number: _results(number, turn, search.kept) for number, turn in turns.items()}
    return [_found(number, place, shown[number]) for number, place in best]


class _Kept:
    """The whole texts of results that were shown in part; `look` gathers where they are."""

    def __init__(self, files: SessionFiles) -> None:
        self.read = partial(read_blob, files.blobs)
        self._sums: dict[str, tuple[str, int]] = {}

    def look(self, data: EntryDict) -> None:
        """Notes a line that says where one is kept."""
        details = data.get("data") if data["type"] == "event" and data.get("kind") == "eviction" else None
        media = details.get("media") if isinstance(details, dict) else None
        if isinstance(details, dict) and isinstance(media, dict):
            self._sums[str(details.get("path"))] = (str(media.get("sha256")), int(media.get("bytes", 0)))

    def size(self, block: Mapping[str, Any]) -> int:
        """Bytes of the file that holds the whole of a block; 0 where the block is whole."""
        return self._of(block)[1]

    def text(self, block: Mapping[str, Any]) -> str:
        """The whole text of a result; what was shown of it where the file is lost."""
        whole = self.whole(block)
        return _shown(block) if whole is None else whole

    def whole(self, block: Mapping[str, Any]) -> str | None:
        """The whole text of a result; None where it is not there any more."""
        sha256 = self._of(block)[0]
        try:
            if sha256:
                return self.read(sha256).decode()
        except (FileMissing, SessionDamaged, UnicodeDecodeError):
            return None
        return None if "evicted" in block else _shown(block)

    def _of(self, block: Mapping[str, Any]) -> tuple[str, int]:
        evicted = block.get("evicted")
        return self._sums.get(str(evicted.get("path")), ("", 0)) if isinstance(evicted, dict) else ("", 0)


class _Calls:
    """Gathers the lines that ask for, or answer, a call of one id."""

    def __init__(self, call_id: str) -> None:
        self.entries: list[str] = []
        self._call_id = call_id

    def look(self, data: EntryDict) -> None:
        """Notes a line that holds it."""
        message = message_of(data)
        blocks = message.get("content") if message else None
        for block in blocks if isinstance(blocks, list) else ():
            hidden = isinstance(block, dict) and "stored" in block
            if isinstance(block, dict) and (hidden or block.get("id") == self._call_id):
                self.entries.append(data["id"])


@dataclass(frozen=True, slots=True)
class _Place:
    """A text that holds words: of which line and role, how often each word and as a word of its own, its call."""

    entry_id: str
    role: str
    counts: tuple[int, ...]
    whole: tuple[bool, ...]
    snippet: str
    call: str = ""
    tool: str = ""


class _Search:
    """Gathers the places that hold any of the words, all branches and requests; `best` sifts them."""

    def __init__(self, files: SessionFiles, query: str) -> None:
        self.kept = _Kept(files)
        self._words = tuple(dict.fromkeys(fold(query).split()))
        self._places: list[_Place] = []
        self._texts = 0
        self._room = _SEARCHED
        self._failed: set[str] = set()
        self._asked: dict[str, str] = {}
        self._recalls: list[tuple[str, str]] = []
        self._whole = [re.compile(rf"(?<!\w){re.escape(word)}(?!\w)") for word in self._words]

    def look(self, data: EntryDict) -> None:
        """Takes in a line."""
        self.kept.look(data)
        message = message_of(data)
        if data["type"] == "request_end" and data.get("status") != "completed":
            self._failed.add(str(data.get("requestId")))
        if message is None or data.get("via") in ("hook", "summary") or data.get("partial"):
            return
        if data.get("via") == "model" and "requestId" in data:
            self._asked[data["id"]] = str(data["requestId"])
        self._expand(data)
        self._recalls += [(data["id"], fold(query)) for query in _queries(data["message"])]
        for role, text, call, tool in self._parts(data["message"]):
            self._take(data["id"], role, text, call, tool)

    def best(self, outline: Outline, limit: int) -> list[tuple[int, _Place]]:
        """The best of the places that are on the path, with the numbers of their turns."""
        there = [(number, place) for place in self._places if (number := self._number(outline, place)) is not None]
        held = [sum(1 for _, place in there if place.counts[index]) for index in range(len(self._words))]
        weights = [math.log(1 + self._texts / count) if count else 0.0 for count in held]
        telling = [2 * count <= self._texts for count in held]
        asked = self._asked_in(outline)

        def value(item: tuple[int, _Place]) -> tuple[bool, int, int, float]:
            number, place = item
            weight = sum(weight * (1 + math.log(n)) for weight, n in zip(weights, place.counts, strict=True) if n)
            words = sum(1 for tells, n in zip(telling, place.counts, strict=True) if tells and n)
            whole = sum(1 for tells, is_whole in zip(telling, place.whole, strict=True) if tells and is_whole)
            return not self._is_echo(place, asked.get(number)), words, whole, weight

        there.reverse()  # sorting keeps the order of equals, so the newest come first among them
        return sorted(there, key=value, reverse=True)[:limit]

    def _asked_in(self, outline: Outline) -> dict[int, str]:
        """What was recalled in which turn: the queries, folded."""
        asked: dict[int, str] = {}
        for entry_id, query in self._recalls:
            if (number := outline.number_of(entry_id)) is not None:
                asked[number] = f"{asked.get(number, '')} {query}"
        return asked

    def _is_echo(self, place: _Place, asked: str | None) -> bool:
        """Whether a place asks for these words or repeats what was recalled, in a turn that recalled."""
        if asked is None or place.role == "tool":
            return False
        words = [word for word, n in zip(self._words, place.counts, strict=True) if n]
        return place.role == "assistant" or all(word in asked for word in words)

    def _number(self, outline: Outline, place: _Place) -> int | None:
        number = outline.number_of(place.entry_id)
        newest = number == len(outline)
        return None if newest or self._asked.get(place.entry_id) in self._failed else number

    def _expand(self, data: EntryDict) -> None:
        content = data["message"].get("content")
        stored = [block["stored"] for block in content if isinstance(block, dict) and "stored" in block]
        sizes = sum(int(each.get("bytes", 0)) for each in stored if isinstance(each, dict))
        if sizes and self._spend(sizes):
            try_expand(data, self.kept.read)

    def _parts(self, message: MessageDict) -> Iterator[tuple[str, str, str, str]]:
        """The texts of a message, each with its role, and of a result the call and the tool."""
        role = str(message["role"])
        said: list[str] = []
        for block in message["content"] if isinstance(message["content"], list) else ():
            kind = block.get("type") if isinstance(block, dict) else None
            if kind == "toolResult":
                if block.get("name") != RECALL:
                    text = self.kept.text(block) if self._spend(self.kept.size(block)) else _shown(block)
                    yield "tool", text, str(block.get("id")), str(block.get("name") or "")
            elif kind == "toolUse" and block.get("name") != RECALL:
                said.append(f"{block.get('name')} {dumps(block.get('input')).decode()}")
            elif kind not in ("thinking", "toolUse") and isinstance(block, dict):
                said.append(block_text(block))
        yield role, "\n".join(said), "", ""

    def _take(self, entry_id: str, role: str, text: str, call: str, tool: str) -> None:
        if not text:
            return
        self._texts += 1
        folded = fold(text)
        counts = tuple(folded.count(word) for word in self._words)
        if any(counts):
            snippet = _snippet(text, folded, [word for word, n in zip(self._words, counts, strict=True) if n])
            whole = tuple(n > 0 and bool(word.search(folded)) for word, n in zip(self._whole, counts, strict=True))
            self._places.append(_Place(entry_id, role, counts, whole, snippet, call, tool))

    def _spend(self, size: int) -> bool:
        if size > self._room:
            return False
        self._room -= size
        return True


def _queries(message: MessageDict) -> Iterator[str]:
    """What a message asks to be recalled; an empty text where it asks for no words."""
    for block in blocks_of(message, "toolUse"):
        given = block.get("input")
        if block.get("name") == RECALL:
            yield str(given.get("query") or "") if isinstance(given, dict) else ""


def _results(number: int, turn: Turn, kept: _Kept) -> list[Recalled]:
    blocks = [block for message in turn.messages for block in blocks_of(message, "toolResult")]
    return [_recalled(f"{number}.{ordinal}", block, kept) for ordinal, block in enumerate(blocks, start=1)]


def _recalled(evidence: str, block: EntryDict, kept: _Kept) -> Recalled:
    whole = kept.whole(block)
    return Recalled(
        evidence=evidence,
        call=str(block.get("id")),
        tool=str(block.get("name") or "a tool"),
        text=_shown(block) if whole is None else whole,
        lost=_length(block) if whole is None else 0,
        is_error=block.get("isError") is True,
        media=tuple(_media(inner) for inner in _inner(block) if inner.get("type") not in ("text", "thinking")),
    )


def _length(block: Mapping[str, Any]) -> int:
    """How many characters a result had that was shown in part."""
    evicted = block.get("evicted")
    chars = evicted.get("chars") if isinstance(evicted, dict) else None
    return chars if type(chars) is int and chars > 0 else len(_shown(block))


def _inner(block: Mapping[str, Any]) -> list[EntryDict]:
    content = block.get("content")
    return [inner for inner in content if isinstance(inner, dict)] if isinstance(content, list) else []


def _shown(block: Mapping[str, Any]) -> str:
    return "\n".join(inner["text"] for inner in _inner(block) if isinstance(inner.get("text"), str))


def _media(block: Mapping[str, Any]) -> str:
    media = block.get("media")
    about = [str(media.get("mediaType")), f"{media.get('bytes')} bytes"] if isinstance(media, dict) else []
    return " ".join([str(block.get("type")), *about])


def _found(number: int, place: _Place, results: Sequence[Recalled]) -> Found:
    evidence = next((result.evidence for result in reversed(results) if place.call and result.call == place.call), None)
    return Found(number, place.role, place.snippet, evidence, place.tool)


def _snippet(text: str, folded: str, words: Sequence[str]) -> str:
    """The surroundings of the longest word. Folding may change lengths; a place slightly off is still near."""
    first = folded.find(max(words, key=len))
    start = max(0, min(first, len(text)) - _LEAD)
    cut = " ".join(text[start : start + _SNIPPET].split())
    return f"{'…' if start else ''}{cut}{'…' if start + _SNIPPET < len(text) else ''}"
