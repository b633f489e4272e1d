"""How much of a turn, and of all turns of a page, is shown at once.

Strangers decide how long a turn is: a message of a few megabytes may be tens of thousands of calls, each of which
is twenty elements of a page. What is left out is counted, and there for who asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from harness.transcripts.pieces import shorten

__all__ = ["MOST_BLOCKS", "MOST_CHARACTERS", "bounded", "fitted"]

MOST_BLOCKS = 60
"""Blocks of a turn that are shown at once: texts, calls, pictures."""
MOST_CHARACTERS = 60_000
"""Characters of a turn that are shown at once, or of its first block where that has more."""
_PAGE = 600_000
"""Characters of all turns of a page; where there are more, each has its share."""
_LEAST = 200


def bounded(turn: Mapping[str, Any], start: int = 0, most: int = MOST_CHARACTERS) -> dict[str, Any]:
    """A stitched turn with the blocks from `start` on that are shown at once.

    `next` is then the number of the first one behind them, and `left` how many are left, where there are any.
    """
    content: Sequence[Any] = turn["content"]
    end, room = start, most
    for block in islice(content, start, start + MOST_BLOCKS):
        room -= _weight(block)
        if room < 0 and end > start:
            break
        end += 1
    made = {**turn, "content": list(content[start:end])}
    return {**made, "next": end, "left": len(content) - end} if end < len(content) else made


def fitted(turns: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The turns of a page, each bounded. Where all of them would be too much, their texts are cut in place, too."""
    if sum(_weight(turn["content"]) for turn in turns) <= _PAGE:
        return [bounded(turn) for turn in turns]
    most = max(_LEAST, min(MOST_CHARACTERS, _PAGE // len(turns)))
    made = [bounded(turn, most=most) for turn in turns]
    for turn in made:
        for block in turn["content"]:
            _cut(block, most)
    return made


def _cut(block: Any, most: int) -> None:
    if isinstance(block, dict):
        before = block.pop("more", {}).get("characters", 0)
        shorten([block], most)
        if before or "more" in block:
            block["more"] = {"characters": before + block.get("more", {}).get("characters", 0)}


def _weight(value: object) -> int:
    """The characters of a value, and some for each of its members: all of them are written out."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(len(name) + 4 + _weight(member) for name, member in value.items())
    return sum(4 + _weight(member) for member in value) if isinstance(value, list) else 4
