"""Text of people and models, split into prose and fenced code, for pages that set them apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Piece", "fenced", "pieces", "spans"]

_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^\n]*)")
_LANGUAGE = re.compile(r"[\w+#.-]{1,30}", re.ASCII)
_RUN = re.compile(r"`{3,}")
_PARAGRAPH = re.compile(r"(\n[ \t]*\n)")
_LONG = 4_000
_SPAN = re.compile(r"(?<!`)(`+)(?!`)([^\n]*?[^`\n])\1(?!`)")


class Piece(NamedTuple):
    """A part of a text; `language` is set, perhaps empty, where it is fenced code."""

    text: str
    language: str | None = None


def pieces(text: str) -> Iterator[Piece]:
    """The parts of a text in order. A fence that is never closed reaches to the end."""
    held: list[str] = []
    fence, language = "", None
    for line in text.split("\n"):
        found = _FENCE.fullmatch(line)
        if fence:
            if found and found["fence"].startswith(fence) and not found["info"].strip():
                yield Piece("\n".join(held), language)
                held, fence, language = [], "", None
            else:
                held.append(line)
        elif found and not (found["fence"][0] == "`" and "`" in found["info"]):
            if held:
                yield Piece("\n".join(held))
            named = _LANGUAGE.match(found["info"])
            held, fence, language = [], found["fence"], named[0] if named else ""
        else:
            held.append(line)
    if held or fence:
        yield Piece("\n".join(held), language)


def spans(text: str) -> Iterator[Piece]:
    """The parts of prose in order; what is a code span to every renderer has an empty language.

    Where one could see it otherwise (a sign that is escaped, a span over two lines or two cells) it is prose.
    """
    for paragraph in _PARAGRAPH.split(text):
        at = 0
        for found in _SPAN.finditer(paragraph) if _is_plain(paragraph) else ():
            if "|" not in found[2]:
                yield Piece(paragraph[at : found.start()])
                yield Piece(found[0], "")
                at = found.end()
        yield Piece(paragraph[at:])


def _is_plain(paragraph: str) -> bool:
    """Whether each span of code ends on the line on which it begins; of a very long paragraph it is not looked up."""
    return len(paragraph) < _LONG and "\\`" not in paragraph and "`" not in _SPAN.sub("", paragraph)


def fenced(text: str, language: str = "") -> str:
    """Text as a block of Markdown code that nothing in it can end."""
    longest = max((len(found) for found in _RUN.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
