"""Text of people and models, split into prose and fenced code, for pages that set them apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Piece", "fenced", "pieces"]

_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^\n]*)")
_LANGUAGE = re.compile(r"[\w+#.-]{1,30}", re.ASCII)
_RUN = re.compile(r"`{3,}")


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


def fenced(text: str, language: str = "") -> str:
    """Text as a block of Markdown code that nothing in it can end."""
    longest = max((len(found) for found in _RUN.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
