"""Search by reading: every message of a ledger, ranked. Words are found as parts of words, in any script."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.messages import MessageDict
from harness.sessions.lines.blobs import block_text
from harness.sessions.lines.entries import Entry
from harness.sessions.view.turns import is_settled

__all__ = ["SearchHit", "message_text", "rank", "search_ledger", "search_words"]

_SNIPPET = 240
_LEAD = 60


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A message that holds words of the query. A higher score is a better match."""

    session_id: str
    entry_id: str
    turn_id: str
    role: str
    snippet: str
    score: float
    timestamp: str


def search_words(query: str) -> tuple[str, ...]:
    """The words of a query, folded so that case does not matter."""
    return tuple(dict.fromkeys(query.casefold().split()))


def search_ledger(session_id: str, entries: Iterable[Entry], words: Sequence[str]) -> list[SearchHit]:
    """The matching messages among the lines of a ledger, unranked; none of the lines is kept."""
    found: list[SearchHit] = []
    undecided: dict[str, list[SearchHit]] = {}
    for entry in entries:
        data = entry.data
        request = str(data.get("requestId"))
        if entry.kind == "request_end":
            found += undecided.pop(request, []) if data.get("status") == "completed" else []
        # Whether an answer counts is decided by a line that comes after it.
        elif data.get("via") != "hook" and is_settled(data, {request}) and (hit := _hit(session_id, entry, words)):
            (found if is_settled(data, set()) else undecided.setdefault(request, [])).append(hit)
    return found


def rank(hits: Iterable[SearchHit], limit: int) -> list[SearchHit]:
    """The best hits: by score, newer first where equal."""
    newest_first = sorted(hits, key=lambda hit: (hit.timestamp, hit.entry_id), reverse=True)
    return sorted(newest_first, key=lambda hit: -hit.score)[:limit]


def message_text(message: MessageDict) -> str:
    """The readable text of a message, tool results included."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return "\n".join(text for block in blocks if isinstance(block, dict) and (text := block_text(block)))


def _hit(session_id: str, entry: Entry, words: Sequence[str]) -> SearchHit | None:
    text = message_text(entry.data["message"])
    folded = text.casefold()
    counts = [count for word in words if (count := folded.count(word))]
    if not counts:
        return None
    # How many of the words are there matters most, how often they are there little.
    score = len(counts) / len(words) * sum(1 + math.log(count) for count in counts)
    return SearchHit(
        session_id=session_id,
        entry_id=entry.id,
        turn_id=str(entry.data.get("turnId", "")),
        role=str(entry.data["message"]["role"]),
        snippet=_snippet(text, folded, words),
        score=round(score, 6),
        timestamp=str(entry.data.get("timestamp", "")),
    )


def _snippet(text: str, folded: str, words: Sequence[str]) -> str:
    """The surroundings of the first match. Folding may change lengths; a place slightly off is still near."""
    first = min(place for word in words if (place := folded.find(word)) >= 0)
    start = max(0, min(first, len(text)) - _LEAD)
    cut = text[start : start + _SNIPPET]
    return f"{'…' if start else ''}{cut}{'…' if start + _SNIPPET < len(text) else ''}"
