"""Ledgers whose lines name the hash of the line before: checked while they are read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from harness.transcripts.lines import Line, TranscriptWarning
from harness.transcripts.pieces import Reader

__all__ = ["ChainReader"]


class ChainReader(Reader):
    """Base of the readers of hash-linked ledgers; `hash_field` names the field that holds the hash.

    A link may name the bytes of the line before, or of the last readable one: a writer that healed a
    torn line linked to either. A blank line counts as a line of no bytes. The last line is held by no
    link; a changed one shows only against an anchor.
    """

    hash_field = ""

    def __init__(self, cap: int | None = None) -> None:
        super().__init__(cap)
        self.broken = 0
        self.unlinked = 0
        self.linked = 0
        self._known: frozenset[str] = frozenset()
        self._number = 0

    def read(self, lines: Iterable[Line]) -> None:
        """See `Reader`."""
        super().read(self._checked(lines))

    def finish(self) -> None:
        """Say what the links showed."""
        if self.broken:
            self.about.verified = f"broken in {self.broken} place{'s' if self.broken > 1 else ''}"
        elif self.unlinked and not self.linked:
            self.about.verified = "not linked"
        elif self.linked:
            also = f", {self.unlinked} lines without a link" if self.unlinked else ""
            self.about.verified = f"unbroken{also}"

    def _checked(self, lines: Iterable[Line]) -> Iterable[Line]:
        for line in lines:
            if line.record is not None and not line.is_bad:
                self._check(line)
            here = hashlib.sha256(line.raw.removesuffix(b"\n")).hexdigest()
            is_whole = line.record is not None and not line.is_bad
            self._known = frozenset({here}) if is_whole else self._known | {here}
            self._number = line.number
            yield line

    def _check(self, line: Line) -> None:
        if not self._known or line.record is None:
            return
        found = line.record.get(self.hash_field)
        if found is None:
            self.unlinked += 1
            return
        skipped = line.number > self._number + 1 and found == hashlib.sha256(b"").hexdigest()
        self.linked += 1
        if found not in self._known and not skipped:
            self.broken += 1
            text = "is not linked to the line before it: one of them was changed, moved or removed"
            self.warnings.append(TranscriptWarning("chain", line.number, text))
