"""When the two tracks of a session differ: which one knows more, decided by a pure function.

The ledger is the truth where it knows the snapshot's position. A snapshot that goes on beyond the
ledger, or that has no ledger, gives the messages that are missing. Where each has what the other
lacks, nothing is thrown away: the snapshot's messages become a branch and the ledger stays active.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from harness.messages import MessageDict

__all__ = ["AppendMissing", "Branch", "Decision", "Ignore", "LedgerSide", "LedgerWins", "reconcile"]


@dataclass(frozen=True, slots=True)
class LedgerWins:
    """The ledger has everything the snapshot has."""


@dataclass(frozen=True, slots=True)
class Ignore:
    """The snapshot belongs to a ledger that was deleted."""

    ledger_id: str


@dataclass(frozen=True, slots=True)
class AppendMissing:
    """The snapshot goes on where the ledger ends."""

    messages: tuple[MessageDict, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """Each has what the other lacks, from after the message `common` on; None: from the beginning."""

    common: str | None
    messages: tuple[MessageDict, ...]


Decision: TypeAlias = LedgerWins | Ignore | AppendMissing | Branch


class LedgerSide(Protocol):
    """What the decision needs to know of a ledger; `SessionTree` is one."""

    @property
    def ledger_id(self) -> str | None:
        """None without a ledger."""
        ...

    @property
    def deleted(self) -> tuple[str, ...]:
        """Ledgers that must not come back."""
        ...

    def knows(self, seq: int, line_hash: str) -> bool:
        """Whether the line of that number has that hash."""
        ...

    def messages(self) -> list[MessageDict]:
        """The conversation as the model sees it."""
        ...

    def entry_id(self, message_id: str) -> str | None:
        """The line that holds a message."""
        ...


def reconcile(ledger: LedgerSide, snapshot: Mapping[str, Any] | None, messages: Sequence[MessageDict]) -> Decision:
    """What to do about a snapshot `{ledgerId, seq, hash, count}` and the messages that belong to it."""
    position = snapshot or {}
    ledger_id = position.get("ledgerId")
    if ledger_id in ledger.deleted:
        return Ignore(str(ledger_id))
    if ledger.ledger_id is None:
        return AppendMissing(tuple(messages)) if messages else LedgerWins()
    if ledger_id == ledger.ledger_id and _is_known(ledger, position):
        return LedgerWins()
    return _compare(ledger, messages)


def _is_known(ledger: LedgerSide, position: Mapping[str, Any]) -> bool:
    seq = position.get("seq")
    return isinstance(seq, int) and ledger.knows(seq, str(position.get("hash")))


def _compare(ledger: LedgerSide, messages: Sequence[MessageDict]) -> Decision:
    logged = [str(message.get("id")) for message in ledger.messages()]
    said = [str(message.get("id")) for message in messages]
    common = 0
    while common < min(len(logged), len(said)) and logged[common] == said[common]:
        common += 1
    missing = tuple(message for message in messages[common:] if ledger.entry_id(str(message.get("id"))) is None)
    if not missing:
        return LedgerWins()
    if common == len(logged):
        return AppendMissing(missing)
    return Branch(said[common - 1] if common else None, missing)
