"""When the two tracks of a session differ: which one knows more, decided by a pure function.

The ledger is the truth where it knows the snapshot's position. A snapshot that goes on beyond the
ledger, or that has no ledger, gives the messages that are missing. Where each has what the other
lacks, nothing is thrown away: the snapshot's messages become a branch and the ledger stays active.
What the ledger left behind, by going back or by a compaction, it does not lack.

A snapshot of another machine's ledger may begin with a summary. If the ledger's end is among what stands behind it,
the ledger has all that it stands for. If not, it may stand for turns that are nowhere else, and is taken in itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from harness.messages import MessageDict
from harness.sessions.lines.anchor import is_deleted
from harness.sessions.view.turns import is_summary

__all__ = ["AppendMissing", "Branch", "Decision", "Ignore", "LedgerSide", "LedgerWins", "holds", "reconcile"]


@dataclass(frozen=True, slots=True)
class LedgerWins:
    """The ledger has everything the snapshot has."""


@dataclass(frozen=True, slots=True)
class Ignore:
    """The snapshot belongs to a ledger that was deleted; or may belong to one, for it names none."""

    ledger_id: str | None


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
    def anchored(self) -> str | None:
        """The ledger that the anchor belongs to, which may be lost and is not deleted."""
        ...

    @property
    def deleted(self) -> tuple[str, ...]:
        """Ledgers that must not come back, as the anchor says it."""
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


def reconcile(
    ledger: LedgerSide,
    snapshot: Mapping[str, Any] | None,
    messages: Sequence[MessageDict],
    known: Set[str] = frozenset(),
) -> Decision:
    """What to do about a snapshot `{ledgerId, seq, hash, count}` and the messages that belong to it.

    `known` are the ids of messages that the ledger holds anywhere, on branches that were left and before the boundary
    too. To find them all of it must be read: worth it only where the decision without them is to take something over.
    """
    position = snapshot or {}
    named = position.get("ledgerId")
    ledger_id = named if isinstance(named, str) else None
    own = (None, ledger.ledger_id, ledger.anchored)
    if ledger_id is not None and ledger_id not in own and is_deleted(ledger_id, ledger.deleted):
        return Ignore(ledger_id)
    if holds(ledger, position):
        return LedgerWins()
    decision = _compare(ledger, messages, known)
    # Whose messages these are nobody knows: those of a conversation that was deleted must not come back.
    return Ignore(None) if ledger.deleted and ledger_id is None and decision != LedgerWins() else decision


def holds(ledger: LedgerSide, position: Mapping[str, Any]) -> bool:
    """Whether a ledger has the line at which a snapshot was taken."""
    seq, line_hash = position.get("seq"), str(position.get("hash"))
    return position.get("ledgerId") == ledger.ledger_id and isinstance(seq, int) and ledger.knows(seq, line_hash)


def _compare(ledger: LedgerSide, messages: Sequence[MessageDict], known: Set[str]) -> Decision:
    logged = [str(message.get("id")) for message in ledger.messages()]
    said = [str(message.get("id")) for message in messages]
    end = _end(logged, messages, said)
    rest = [message for message in messages if ledger.entry_id(str(message.get("id"))) is None]
    # A summary before that place stands for what was said here too; it is nothing that anybody said.
    summed = {said[n] for n in range(end) if is_summary(messages[n])}
    missing = tuple(message for message in rest if message.get("id") not in known | summed)
    if not missing:
        return LedgerWins()
    if [message.get("id") for message in missing] == said[end:]:
        return AppendMissing(missing)
    common = 0
    while common < min(len(logged), len(said)) and logged[common] == said[common]:
        common += 1
    return Branch(said[common - 1] if common else None, missing)


def _end(logged: Sequence[str], messages: Sequence[MessageDict], said: Sequence[str]) -> int:
    """Where in the snapshot the ledger ends: how many of its messages stand up to there.

    None does where the ledger is empty; nor where the snapshot begins with a summary, which may stand for all of the
    ledger. Behind what was said here it hides nothing. Where the ledger's end is nowhere, that is the snapshot's end.
    """
    if logged and logged[-1] in said:
        return said.index(logged[-1]) + 1
    return 0 if not logged or (messages and is_summary(messages[0])) else len(said)
