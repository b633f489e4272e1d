"""Lines of another ledger that stand in a ledger: somebody put one file behind another.

A header is only ever written to an empty file. So what follows a second one is no part of this conversation, except for
the lines that a writer of this file has put there since: they have the numbers of their places, or go on from such.
"""

from __future__ import annotations

from pathlib import Path

from harness.filesystem import disk
from harness.sessions.lines.entries import Damage, Entry
from harness.sessions.lines.headers import read_first_line

__all__ = ["OwnLines", "may_have_another", "own_lines"]

_HEADER = b'"header"'
"""In every line of that type, and in few others: within a text the quotes would be escaped."""
_BLOCK = 1024 * 1024


class OwnLines:
    """Tells them apart, asked about one readable line after the other; `damage` names the headers that were met.

    The ledger's own header may stand behind what nobody can read, and stand there twice: what follows it then goes on
    with the numbers where the lines before it ended.
    """

    __slots__ = ("_again", "_last", "_ledger", "_own", "damage")

    def __init__(self) -> None:
        self.damage: list[Damage] = []
        self._own: set[str] = set()
        self._ledger: object = None
        self._last = 0
        self._again = False

    def has(self, entry: Entry) -> bool:
        """Whether the line belongs to the conversation."""
        if entry.kind == "header" and not self._is_begun_by(entry):
            return False
        own = not self.damage or self._has_behind(entry)
        if own and type(number := entry.data.get("seq")) is int and number > self._last:
            self._last = number
        return own

    def _is_begun_by(self, header: Entry) -> bool:
        ledger = header.data.get("ledgerId")
        if header.seq == 1 or not self._last:
            self._ledger = ledger
            return True
        self._again = ledger is not None and ledger == self._ledger
        self.damage.append(Damage("header" if self._again else "foreign", header.seq, header.offset))
        return False

    def _has_behind(self, entry: Entry) -> bool:
        number = entry.data.get("seq")
        goes_on = self._again and type(number) is int and number > self._last
        own = goes_on or number == entry.seq or entry.data.get("parentId") in self._own
        if own:
            self._own.add(entry.id)
        return own


def own_lines(entries: list[Entry]) -> tuple[list[Entry], list[Damage]]:
    """The lines that belong to the conversation, and the headers of others."""
    own = OwnLines()
    return [entry for entry in entries if own.has(entry)], own.damage


def may_have_another(ledger: Path, start: int) -> bool:
    """Whether there may be a header behind the byte `start`, where a line begins; 0 for behind the first. Blocking."""
    start, rest = start or len(read_first_line(ledger)), b""
    while block := disk.read(ledger, start, _BLOCK):
        if _HEADER in rest + block:
            return True
        rest, start = block[-len(_HEADER) :], start + len(block)
    return False
