"""Search over a whole session: hits with their words around them, and what was covered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.transcripts import find
from harness.viewer.shown import count, size, visible

__all__ = ["MAX_QUERY", "search"]

MAX_QUERY = 400
"""Characters of a query."""
_HITS = 200


def search(source: Path, session_id: str, query: str, cursor: str | None) -> dict[str, Any]:
    """The hits of `query`, in the order of the session. Blocks: run it in a worker.

    `said` is one sentence about what was found in how much of the session. A cursor in the result
    continues where this search stopped.
    """
    found = find(source, session_id, query, limit=_HITS, cursor=cursor)
    document = {
        "query": query,
        "hits": [_hit(hit) for hit in found.hits],
        "said": _said(len(found.hits), found.covered, found.size, found.cursor),
        "coveredBytes": found.covered,
        "size": found.size,
    }
    return {**document, **({"cursor": found.cursor} if found.cursor else {})}


def _said(hits: int, covered: int, whole: int, cursor: str | None) -> str:
    where = f"the first {size(covered)} of {size(whole)}" if cursor else f"the whole session ({size(whole)})"
    return f"{count(hits, 'match', 'matches')} in {where}"


def _hit(hit: Any) -> dict[str, Any]:
    end = hit.start + hit.length
    shown = {
        "before": visible(hit.snippet[: hit.start]),
        "match": visible(hit.snippet[hit.start : end]),
        "after": visible(hit.snippet[end:]),
    }
    at = {"at": hit.at} if hit.at else {}
    return {"key": hit.key, "kind": hit.kind, "name": hit.kind, **at, **shown}
