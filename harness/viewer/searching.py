"""Search over a whole session: hits with their words around them, and what was covered."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

from harness.errors import ConfigError
from harness.transcripts import find
from harness.viewer.shown import count, size, visible

__all__ = ["MAX_QUERY", "search"]

MAX_QUERY = 400
"""Characters of a query."""
_HITS = 200
_PLACE = re.compile(r"(?P<hits>\d{1,12})\.(?P<covered>\d{1,18})\.(?P<cursor>.*)", re.ASCII | re.DOTALL)


class _So(NamedTuple):
    """How far a search has come: what it found and covered, and the place from which it goes on."""

    hits: int = 0
    covered: int = 0
    cursor: str | None = None

    def text(self) -> str:
        return f"{self.hits}.{self.covered}.{self.cursor}"

    @classmethod
    def of(cls, text: str) -> _So:
        found = _PLACE.fullmatch(text)
        if found is None:
            raise ConfigError("that is no cursor of a search; begin again without one")
        return cls(int(found["hits"]), int(found["covered"]), found["cursor"])


def search(source: Path, session_id: str, query: str, cursor: str | None) -> dict[str, Any]:
    """The hits of `query`, in the order of the session. Blocks: run it in a worker.

    `said` is one sentence about what was found in how much of the session, `coveredBytes` how much that is. A
    cursor in the result continues where this search stopped; both then tell of all that was searched so far.
    Raises `ConfigError` for a cursor that is none.
    """
    before = _So.of(cursor) if cursor else _So()
    found = find(source, session_id, query, limit=_HITS, cursor=before.cursor)
    so_far = _So(before.hits + len(found.hits), before.covered + found.covered, found.cursor)
    document = {
        "query": query,
        "hits": [_hit(hit) for hit in found.hits],
        "said": _said(so_far, found.size),
        "coveredBytes": so_far.covered,
        "size": found.size,
    }
    return {**document, **({"cursor": so_far.text()} if found.cursor else {})}


def _said(so_far: _So, whole: int) -> str:
    part = f"the first {size(so_far.covered)} of {size(whole)}"
    where = part if so_far.cursor else f"the whole session ({size(whole)})"
    return f"{count(so_far.hits, 'match', 'matches')} in {where}"


def _hit(hit: Any) -> dict[str, Any]:
    end = hit.start + hit.length
    shown = {
        "before": visible(hit.snippet[: hit.start]),
        "match": visible(hit.snippet[hit.start : end]),
        "after": visible(hit.snippet[end:]),
    }
    at = {"at": hit.at} if hit.at else {}
    return {"key": hit.key, "kind": hit.kind, "name": hit.kind, **at, **shown}
