"""What checking a session finds: where, how bad, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Finding", "Kind", "VerifyReport", "missing_lines"]

Kind = Literal[
    "torn",
    "gap",
    "edited",
    "reordered",
    "doubled",
    "truncated",
    "unanchored",
    "missing_file",
    "foreign",
    "context",
]
"""What a finding says.

    torn          unfinished by a crash; no error where it is the end, or where the next line is linked to it
    gap           lines are missing before it
    edited        its bytes, or those of a file it names, are not the ones that were written
    reordered     it stands where it was not written
    doubled       it stands there a second time
    truncated     lines are missing at the end
    unanchored    no error: written after the last sync. An error: there is no anchor, so the end is not proved
    missing_file  a file that it names is not there
    foreign       it was not written here: another session's, another ledger's, or inserted
    context       the copy for the model says something else; never an error, it is made anew
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a line, numbered from 1, at its first byte. `text` says what it means and what to do.

    `noted` says that the line itself tells of it: an earlier writer found the ledger so, and it stays so.
    """

    kind: Kind
    line: int
    byte: int
    error: bool
    text: str = ""
    noted: bool = False

    @property
    def severity(self) -> Literal["error", "note"]:
        """The word for `error`."""
        return "error" if self.error else "note"

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "kind": self.kind,
            "line": self.line,
            "byte": self.byte,
            "severity": self.severity,
            "text": self.text,
        }


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was checked, and what was found, in the order of the lines, the context file last; empty if all is right.

    anchored  lines that the anchor proves; what stands behind them could be cut off unseen
    files     contents beside the ledger that were read and compared
    """

    session: str
    ledger_id: str | None
    lines: int
    bytes: int
    anchored: int
    files: int
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether there is no error among the findings; notes are no errors."""
        return not any(finding.error for finding in self.findings)

    @property
    def noted(self) -> tuple[int, ...]:
        """The lines that note a loss: of a ledger with such lines nobody can say that it is as it was written."""
        return tuple(dict.fromkeys(finding.line for finding in self.findings if finding.noted))

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "session": self.session,
            "ok": self.ok,
            "ledgerId": self.ledger_id,
            "lines": self.lines,
            "bytes": self.bytes,
            "anchored": self.anchored,
            "files": self.files,
            "findings": [finding.to_dict() for finding in self.findings],
        }


def missing_lines(first: int, last: int) -> str:
    """That these lines are missing, in words."""
    return f"line {first} is missing" if first == last else f"lines {first} to {last} are missing"
