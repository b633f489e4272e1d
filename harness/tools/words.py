"""Which lines answer a query best: all its words in any order, whatever their case."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harness.sessions.view.query import fold

__all__ = ["Line", "Ranked", "rank"]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file; `number` counts from 1."""

    path: str
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Ranked:
    """The best lines. `complete`: they hold every word; otherwise none does, and these hold the most."""

    lines: tuple[Line, ...]
    found: int
    complete: bool


def rank(query: str, lines: Iterable[Line], limit: int) -> Ranked:
    """The `limit` best of all lines, those that hold every word where there are any.

    A word is found inside longer ones, so that scripts without spaces can be searched. Lines that are
    equally good stay in the order in which they came.
    """
    phrase = fold(" ".join(query.split()))
    words = list(dict.fromkeys(phrase.split()))
    scored = [(score, line) for line in lines if (score := _score(fold(line.text), words, phrase))[0]]
    scored.sort(key=lambda pair: pair[0], reverse=True)
    complete = bool(scored) and scored[0][0][0] == len(words)
    if complete:
        scored = [pair for pair in scored if pair[0][0] == len(words)]
    return Ranked(tuple(line for _, line in scored[: max(limit, 1)]), len(scored), complete)


def _score(text: str, words: list[str], phrase: str) -> tuple[int, int, int]:
    """How many words there are, whether they stand as asked, and how often."""
    counts = [text.count(word) for word in words]
    return sum(map(bool, counts)), phrase in text, sum(counts)
