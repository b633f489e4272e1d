"""In a session that is a tree: which entries lead from the last one to the first, and which were left.

A damaged line takes its own words with it and nobody else's. Where its links can still be read, they hold; where not,
what follows it goes on at the entry that stands in front.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from harness.transcripts.pieces import TORN, Piece

__all__ = ["Branches", "InFront", "Path"]

InFront: TypeAlias = Callable[[str], bool]
"""Whether a line in front of a window is an entry of this name, or follows one."""


class Path(NamedTuple):
    """The way from the last entry back.

    left  the entries that are not on it
    tip   the entry at which it goes on in front of what is known; None for the last one there is, or for none
    lost  the links that lead to no entry of the file, each with the first line that has it: None if that is not
          known, or nothing stands in front of it
    """

    left: dict[str, Piece]
    tip: str | None
    lost: dict[str, Piece | None]


class Branches:
    """The entries of a file or of a window of one, by their names, in order. `in_front` is None where nothing is."""

    def __init__(self) -> None:
        self.entries: dict[str, Piece] = {}
        self.torn: dict[str, Piece] = {}
        self.start: str | None = None
        self.in_front: InFront | None = None
        self._followers: dict[str, tuple[Piece, str | None]] | None = None

    def growing(self) -> tuple[dict[str, Piece], dict[str, Piece]]:
        """Where lines that have a name are added: `entries`, and `torn` for those with the note `TORN`."""
        self._followers = None
        return self.entries, self.torn

    def path(self, meant: Callable[[str], str | None]) -> Path:
        """The path; `meant` gives the entry that a link leads to which names none."""
        left, torn = self.entries.copy(), self.torn.copy()
        lost: dict[str, Piece | None] = {}
        here = self.start if self.start is not None else next(reversed(left), None)
        while here is not None:
            if here in left:
                here = left.pop(here).parent  # what is taken out of it is on the path
            elif here in self.entries or here in lost:
                break  # a ring
            elif (known := meant(here)) in left:
                here = known
            elif here in torn:
                here = torn.pop(here).parent
            elif self.in_front is not None and self.in_front(here):
                break
            else:
                first, before = self._instead(here)
                lost[here] = None if before is None and self.in_front is None else first
                here = before
        return Path(left, here, lost)

    def _instead(self, link: str) -> tuple[Piece | None, str | None]:
        """The first line with a link that leads nowhere, and the entry in front of it; the last one if it is behind."""
        if self._followers is None:
            self._followers = self._followed()
        return self._followers.get(link, (None, next(reversed(self.entries), None)))

    def _followed(self) -> dict[str, tuple[Piece, str | None]]:
        """What is linked to: the first line that does so, and the entry in front of that."""
        found: dict[str, tuple[Piece, str | None]] = {}
        last: str | None = None
        for piece in sorted((*self.entries.values(), *self.torn.values()), key=attrgetter("offset")):
            if piece.parent is not None:
                found.setdefault(piece.parent, (piece, last))
            last = last if piece.note == TORN else piece.entry
        return found
