"""The lines of a path, turn by turn, and what a closed turn is, made from its own lines alone.

Its own lines are those from its directive to the next one, whatever boundaries have hidden of them:
so a turn is the same for whoever has read its lines, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from harness.sessions.ledger.numbering import whole_turns
from harness.sessions.lines.entries import Entry, EntryDict
from harness.sessions.view.cards import turn_card
from harness.sessions.view.projection import Turn
from harness.sessions.view.turns import is_directive

__all__ = ["Section", "card_of", "closed_turn", "numbered_sections"]

Section: TypeAlias = Sequence[Entry]
"""The lines of one turn, from its directive to the next one."""


def closed_turn(section: Section) -> Turn | None:
    """The turn in these lines as it is when it has closed; None where nothing was said."""
    turns = whole_turns(section, closed=True)
    return turns[0] if turns else None


def card_of(turn: Turn, section: Section) -> EntryDict:
    """The card that was written of a turn, or what it would say."""
    for entry in section:
        if entry.kind == "turn_card" and entry.data.get("turn") == turn.id:
            return entry.data
    return turn_card(turn, "unrecorded")


def numbered_sections(path: Section, kept: int, before: int) -> list[tuple[int, Section]]:
    """The turns of a path as lines, each with its number; `before` turns lie before line number `kept`."""
    cut = next((index for index, entry in enumerate(path) if entry.seq >= kept), len(path))
    rooted = bool(path) and path[0].data.get("parentId") is None
    older, within = _sections(path[:cut], rooted), _sections(path[cut:], rooted and not cut)
    return [*enumerate(older, before - len(older) + 1), *enumerate(within, before + 1)]


def _sections(path: Section, rooted: bool) -> list[Section]:
    """The lines of each turn. What stands before the first directive is a turn only at the root of a session."""
    if not path:
        return []
    starts = [index for index, entry in enumerate(path) if index == 0 or is_directive(entry)]
    sections = [path[start:end] for start, end in zip(starts, [*starts[1:], len(path)], strict=True)]
    if not is_directive(path[0]) and not (rooted and closed_turn(sections[0])):
        del sections[0]
    return sections
