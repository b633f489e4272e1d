"""Looking for words in a whole session, window by window; it says what it covered."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from harness.transcripts.blocks import BlockDict, json_text
from harness.transcripts.matching import fold, place_of
from harness.transcripts.telling import Tell
from harness.transcripts.turns import Turn
from harness.transcripts.windows import page

__all__ = ["Found", "Hit", "find"]

_WINDOW = 1024 * 1024
_LEAD, _LENGTH = 60, 240


@dataclass(frozen=True, slots=True)
class Hit:
    """A turn that holds the words. `start` and `length` are where in `snippet` they stand, in characters.

    `key` is that of the turn in which it is shown: for words of a result, the turn that called.
    """

    key: str
    offset: int
    kind: str
    at: str | None
    snippet: str
    start: int
    length: int

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        named = {"key": self.key, "offset": self.offset, "kind": self.kind, "at": self.at, "snippet": self.snippet}
        made = {**named, "start": self.start, "length": self.length}
        return {name: value for name, value in made.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found: the hits, the bytes it covered, and where to go on if it stopped before the end."""

    hits: tuple[Hit, ...]
    covered: int
    size: int
    cursor: str | None

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        made = {"hits": [hit.to_dict() for hit in self.hits], "covered": self.covered, "size": self.size}
        return {**made, "cursor": self.cursor} if self.cursor is not None else made


def find(
    source: str | os.PathLike[str],
    session_id: str | None,
    query: str,
    *,
    limit: int = 200,
    cursor: str | None = None,
    max_bytes: int = 256 * 1024 * 1024,
    tell: Tell | None = None,
) -> Found:
    """The turns whose text, reasoning, arguments or results hold `query`, in order. Letter case does not count, nor
    how accents are written. Arguments are searched as they were meant, and as JSON.

    One hit a turn. It stops after `limit` hits or `max_bytes`; `cursor` then leads on. Whole blocks are
    searched, longer than a page keeps. `tell` is given how many bytes were searched, and of how many. Blocks while it
    reads; in a loop use `in_worker(find, ...)`.
    """
    hits: list[Hit] = []
    wanted = fold(query)
    here = page(source, session_id, where="after" if cursor else "head", cursor=cursor, window=_WINDOW, cap=None)
    first = here.start
    while True:
        hits += [hit for turn, key in _shown(here.turns) if wanted and (hit := _hit(turn, key, wanted)) is not None]
        if tell is not None:
            tell(here.end - first, here.size - first)
        if here.at_end or len(hits) >= limit or here.end - first >= max_bytes:
            break
        here = page(source, session_id, where="after", cursor=here.after, window=_WINDOW, cap=None)
    return Found(tuple(hits), here.end - first, here.size, None if here.at_end else here.after)


def _shown(turns: Iterable[Turn]) -> Iterator[tuple[Turn, str]]:
    """Each turn with the key of the one in which it is shown."""
    key = None
    for turn in turns:
        if turn.kind != "results" or key is None:
            key = turn.key
        yield turn, key


def _hit(turn: Turn, key: str, wanted: str) -> Hit | None:
    for text in _texts(turn.blocks):
        place = place_of(wanted, text)
        if place is not None:
            at, end = place
            begin = max(0, at - _LEAD)
            snippet = text[begin : begin + _LENGTH]
            length = min(end - begin, _LENGTH) - (at - begin)
            return Hit(key, turn.offset, turn.kind, turn.at, snippet, at - begin, length)
    return None


def _texts(content: list[BlockDict]) -> Iterator[str]:
    """What there is to read in blocks; the bytes of pictures are no text."""
    for block in content:
        for name in ("text", "command", "output", "name"):
            if isinstance(block.get(name), str):
                yield block[name]
        if isinstance(block.get("input"), dict):
            yield "\n".join(_plainly(block["input"]))
            yield json_text(block["input"])
        inner = block.get("content")
        if isinstance(inner, list):
            yield from _texts([item for item in inner if isinstance(item, dict)])


def _plainly(value: Any, name: str = "") -> Iterator[str]:
    """Arguments as a person means them: no quotes, and nothing escaped."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _plainly(item, str(key))
    elif isinstance(value, list):
        for item in value:
            yield from _plainly(item, name)
    else:
        said = value if isinstance(value, str) else json_text(value)
        yield f"{name}: {said}" if name else said
