"""Bringing into the ledger what only a snapshot has."""

from __future__ import annotations

import logging
from typing import Protocol

from harness.messages import MessageDict
from harness.sessions.ledger.store import LedgerStore
from harness.sessions.lines.entries import Entry
from harness.sessions.tree.reconcile import AppendMissing, Branch, Decision, Ignore
from harness.sessions.view.turn_ends import end_of_commit
from harness.sessions.view.turns import is_summary, opens_turn

__all__ = ["LogMessage", "adopt"]

_log = logging.getLogger("harness.sessions")


class LogMessage(Protocol):
    """Logs a message, behind `parent` where one is given, and returns its entry id."""

    def __call__(self, data: MessageDict, via: str, turn: str | None = None, *, parent: str | None = None) -> str:
        """See the class."""
        ...


def adopt(store: LedgerStore, log_message: LogMessage, decision: Decision) -> str | None:
    """Plan the lines that a decision asks for; the warning that was logged, or None."""
    session = store.owner.session
    if isinstance(decision, Ignore):
        warning = f"session {session!r}: its snapshot belongs to a conversation that was deleted, and was ignored"
    elif isinstance(decision, AppendMissing):
        for message in decision.messages:
            log_message(message, _via(message))
        warning = f"session {session!r}: its snapshot had {len(decision.messages)} messages more; they were logged"
    elif isinstance(decision, Branch):
        _add_branch(store, log_message, decision)
        warning = (
            f"session {session!r}: ledger and snapshot went different ways; the ledger goes on, "
            f"{len(decision.messages)} messages of the snapshot were kept as a branch"
        )
    else:
        return None
    _log.warning("%s", warning)
    return warning


def _add_branch(store: LedgerStore, log_message: LogMessage, decision: Branch) -> None:
    active = str(store.leaf)
    start = _common_line(store, decision.common)
    turn = start.data.get("turnId")
    parent = store.plan("branch", {"to": start.id}, parent=start.id).id
    for message in decision.messages:
        via = _via(message)
        parent = log_message(message, via, turn, parent=parent)
        if opens_turn({"type": "message", "message": message, "via": via}):
            turn = parent
    store.plan("branch", {"to": active})


def _common_line(store: LedgerStore, message_id: str | None) -> Entry:
    """The end of the commit of the last common message; the first line in memory where there is none."""
    path = store.conversation.path
    found = store.conversation.entry_of(message_id) if message_id else None
    return path[end_of_commit(path, path.index(found), len(path))] if found else path[0]


def _via(message: MessageDict) -> str:
    return "summary" if is_summary(message) else "repair"
