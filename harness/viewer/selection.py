"""How a request showed the conversation where it did not show all of it: which turns in which form.

What was shown comes from the ledger (`context_at`); here its `select` is told in words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from harness.sessions.lines.entries import Entry
from harness.sessions.selection.packets import packet_text
from harness.sessions.view.turns import is_directive
from harness.viewer.shown import first_words

__all__ = ["FORMS", "Choice", "Form", "TurnAt", "choices_of"]

Form: TypeAlias = Literal["whole", "full", "cards", "packet", "gap", "summary", "line"]

FORMS: Mapping[Form, str] = {
    "whole": "as it stands",
    "full": "in full, results in short",
    "cards": "a line each",
    "packet": "behind a summary",
    "gap": "named, not shown",
    "summary": "behind the summary of a compaction",
    "line": "one message",
}
"""Each form in words."""


@dataclass(frozen=True, slots=True)
class TurnAt:
    """A turn of the log: its number from 1, the key of its first line, and how it begins."""

    number: int
    key: str
    words: str


@dataclass(frozen=True, slots=True)
class Choice:
    """One item of a selection: these turns, in this form. `text` is the summary that stands for them.

    message   the id of the message that it became, where it became one of its own
    """

    form: Form
    turns: Sequence[TurnAt] = ()
    text: str = ""
    message: str = ""

    @property
    def how(self) -> str:
        """The form in words."""
        return FORMS[self.form]

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        made = {"form": self.form, "turns": [turn.number for turn in self.turns], "text": self.text}
        return {name: value for name, value in made.items() if value}


def choices_of(select: object, path: Sequence[Entry]) -> list[Choice]:
    """The items of a `select`, in their order; `path` are the lines that led to the request, oldest first."""
    teller = _Teller(path)
    return [choice for item in select for choice in teller.told(item)] if isinstance(select, list) else []


class _Teller:
    def __init__(self, path: Sequence[Entry]) -> None:
        self._lines = {entry.id: entry for entry in path}
        opening = [entry for entry in path if is_directive(entry)]
        self._order = [entry.id for entry in opening]
        self._turns = {entry.id: _turn(number, entry) for number, entry in enumerate(opening, start=1)}

    def told(self, item: object) -> Iterator[Choice]:
        """What one item stands for; nothing for one of a later version that is not known here."""
        if isinstance(item, str):
            yield self._line(item)
        elif isinstance(item, dict):
            if packet := str(item.get("packet") or ""):
                yield self._packet(packet)
            if gap := self._numbered(item.get("gap")):
                yield Choice("gap", gap, message=packet or "gap")
            if cards := self._between(item.get("cards")):
                yield Choice("cards", cards, message=f"{item['cards'][0]}/cards")
            if full := self._between(item.get("full")):
                yield Choice("full", full)

    def _line(self, entry_id: str) -> Choice:
        if entry_id in self._turns:
            return Choice("whole", [self._turns[entry_id]])
        entry = self._lines.get(entry_id)
        if entry is not None and entry.kind == "compaction":
            return self._summary(entry)
        return Choice("line", text=_words(entry) if entry else "")

    def _summary(self, entry: Entry) -> Choice:
        last = str(entry.data.get("lastTurn"))
        covered = self._order[: self._order.index(last) + 1] if last in self._turns else []
        return Choice("summary", [self._turns[one] for one in covered], packet_text(entry.data), entry.id)

    def _packet(self, entry_id: str) -> Choice:
        entry = self._lines.get(entry_id)
        if entry is not None and entry.kind == "compaction":
            return self._summary(entry)
        data = entry.data if entry else {}
        held = data.get("data")
        covered = self._numbered(held.get("turns")) if isinstance(held, dict) else []
        return Choice("packet", covered, packet_text(data), entry_id)

    def _between(self, ends: object) -> list[TurnAt]:
        if not isinstance(ends, list) or len(ends) != 2 or any(end not in self._turns for end in ends):
            return []
        first, last = (self._order.index(end) for end in ends)
        return [self._turns[one] for one in self._order[first : last + 1]]

    def _numbered(self, ends: object) -> list[TurnAt]:
        if not isinstance(ends, list) or len(ends) != 2 or not all(isinstance(end, int) for end in ends):
            return []
        return [self._turns[one] for one in self._order[max(0, ends[0] - 1) : ends[1]]]


def _turn(number: int, entry: Entry) -> TurnAt:
    return TurnAt(number, f"b{entry.offset}", _words(entry))


def _words(entry: Entry) -> str:
    message = entry.data.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    blocks = content if isinstance(content, list) else []
    return first_words(" ".join(str(block.get("text", "")) for block in blocks if isinstance(block, dict)))
