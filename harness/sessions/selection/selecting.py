"""Which messages a request shows where it does not show the whole conversation, by ids of ledger lines.

`select` in a `request_begin` holds, in the order shown, texts and objects. A text is the id of the
boundary for its summary, the id of a turn for the whole turn as it stands, and the id of any other
message's line for that message. An object shows closed turns in another way than as they stand:

    {"packet": id, "gap"?: [n, m]}    the packet, or summary, in that line; and word of turns that nothing shows
    {"gap": [n, m]}                   that word alone
    {"cards": [first, last]}          each closed turn from one id to the other by its card
    {"full": [first, last]}           each by its Full record
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from harness.messages import MessageDict
from harness.sessions.lines.entries import Entry
from harness.sessions.selection.packets import packet_message, packet_text
from harness.sessions.selection.sections import Section, card_of, closed_turn, numbered_sections
from harness.sessions.view.cards import cards_message, numbered_line
from harness.sessions.view.full_record import full_record
from harness.sessions.view.projection import Turn, View
from harness.sessions.view.turns import is_directive

__all__ = ["Closed", "Selected", "selected_messages", "split_shown"]

FindLine = Callable[[MessageDict], str | None]
Selected: TypeAlias = str | Mapping[str, Any]
"""One item of a `select`."""


def split_shown(
    view: View, messages: Sequence[MessageDict], find: FindLine
) -> list[tuple[str | None, tuple[MessageDict, ...]]]:
    """The messages in pieces, each with its id; None for a message that no line holds.

    `find` gives the line that holds exactly this message.
    """
    turns = {str(turn.messages[0].get("id")): turn for turn in view.turns}
    pieces: list[tuple[str | None, tuple[MessageDict, ...]]] = []
    index = 0
    while index < len(messages):
        message = messages[index]
        turn = turns.get(str(message.get("id")))
        if turn and tuple(messages[index : index + len(turn.messages)]) == turn.messages:
            pieces.append((turn.id, turn.messages))
        elif message == view.summary_message:
            pieces.append((str(message["id"]), (message,)))
        else:
            pieces.append((find(message), (message,)))
        index += len(pieces[-1][1])
    return pieces


def selected_messages(
    view: View, select: Sequence[Selected], lines: Mapping[str, MessageDict], closed: Closed
) -> list[MessageDict] | None:
    """The messages that these items stand for; None if one of them is not there. `lines` holds messages by entry id."""
    turns = {turn.id: turn for turn in view.turns}
    messages: list[MessageDict] = []
    for item in select:
        if not isinstance(item, str):
            found = closed.messages(item)
            if found is None:
                return None
            messages.extend(found)
        elif view.summary_message and view.summary_message["id"] == item:
            messages.append(view.summary_message)
        elif item in turns:
            messages.extend(turns[item].messages)
        elif item in lines:
            messages.append(lines[item])
        else:
            return None
    return messages


class Closed:
    """The closed turns of a whole path, to show them as a `select` says.

    kept, before  the number of the first line that the newest boundary keeps, and how many turns lie before it
    whole         puts back what a line has in files, in place
    """

    def __init__(self, path: Sequence[Entry], kept: int, before: int, whole: Callable[[Entry], None]) -> None:
        self._path = path
        self._place = (kept, before)
        self._whole = whole
        self._sections: list[tuple[str, int, Section]] | None = None

    def messages(self, item: Mapping[str, Any]) -> list[MessageDict] | None:
        """What one object of a `select` shows; None if something of it is not there."""
        if "packet" in item or "gap" in item:
            return self._packet(str(item.get("packet", "")), item.get("gap", []))
        kind = next((kind for kind in ("cards", "full") if kind in item), None)
        turns = self._between(item[kind]) if kind else None
        if not turns:
            return None
        if kind == "cards":
            lines = [numbered_line(number, card_of(turn, section)) for number, turn, section in turns]
            return [cards_message(turns[0][1].id, lines)]
        return [message for number, turn, _ in turns for message in full_record(turn, number)]

    def _packet(self, entry_id: str, gap: Any) -> list[MessageDict] | None:
        if not isinstance(gap, list) or len(gap) not in (0, 2) or any(type(end) is not int for end in gap):
            return None
        entry = next((entry for entry in self._path if entry.id == entry_id), None) if entry_id else None
        if entry is not None:
            self._whole(entry)
        text = packet_text(entry.data) if entry else ""
        return [packet_message(entry_id, text, gap)] if text or not entry_id else None

    def _between(self, ends: Any) -> list[tuple[int, Turn, Section]]:
        """The turns from one to another, both included; nothing where they are not there."""
        if self._sections is None:
            self._sections = [(_id(s), number, s) for number, s in numbered_sections(self._path, *self._place)]
        ids = [turn_id for turn_id, _, _ in self._sections]
        if not isinstance(ends, list) or len(ends) != 2 or any(end not in ids for end in ends):
            return []
        found: list[tuple[int, Turn, Section]] = []
        for _, number, section in self._sections[ids.index(ends[0]) : ids.index(ends[1]) + 1]:
            for entry in section:
                self._whole(entry)
            if turn := closed_turn(section):
                found.append((number, turn, section))
        return found


def _id(section: Section) -> str:
    """The id of the turn in these lines."""
    if is_directive(section[0]):
        return section[0].id
    turn = closed_turn(section)
    return turn.id if turn else ""
