"""Which messages a ledger holds, wherever they stand in it."""

from __future__ import annotations

from harness.errors import FileMissing
from harness.sessions.lines.layout import SessionFiles
from harness.sessions.lines.skimming import read_entries

__all__ = ["message_ids"]


def message_ids(files: SessionFiles) -> frozenset[str]:
    """The ids of all messages in a ledger, in a worker; reads all of it.

    A summary is known by its line, whose id its message has. What a request left that never ended, or failed, does
    not count: only a snapshot may know that it was an answer.
    """
    found: set[str] = set()
    made: list[tuple[str, str]] = []
    committed: set[str] = set()
    try:
        for entry in read_entries(files.ledger):
            data, request = entry.data, str(entry.data.get("requestId", ""))
            message = data.get("message")
            if entry.kind == "compaction":
                found.add(entry.id)
            elif entry.kind == "request_end" and data.get("status") == "completed":
                committed.add(request)
            elif isinstance(message, dict) and not data.get("partial"):
                by_model = data.get("via") == "model" and request != ""
                made.append((request if by_model else "", str(message.get("id"))))
    except FileMissing:
        return frozenset()
    return frozenset(found | {message_id for request, message_id in made if not request or request in committed})
