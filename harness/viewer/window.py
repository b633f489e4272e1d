"""Pieces of a session as a page wants them, put together in a worker process: the loop only sends them on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.errors import SessionNotFound
from harness.transcripts import page, stitched
from harness.transcripts.windows import Where
from harness.viewer.bounds import bounded, fitted

__all__ = ["MOST_WARNINGS", "rest", "window"]

MOST_WARNINGS = 200
"""Warnings that are told one by one; of a file with more it is said how many there are."""
_BYTES = 128 * 1024


def window(source: Path, session_id: str, where: Where, cursor: str | None, min_turns: int) -> dict[str, Any]:
    """A page in its JSON form, with the first warnings only, and of its turns as much as is shown at once.

    Blocks: run it in a worker. Raises what `page` raises.
    """
    found = page(source, session_id, where=where, cursor=cursor, window=_BYTES, min_turns=min_turns)
    blocked, left_out = found.blocked, len(found.warnings) - MOST_WARNINGS
    found.warnings = found.warnings[:MOST_WARNINGS]
    made = {**found.to_dict(), "blocked": blocked}
    if left_out > 0:
        made["warningsLeftOut"] = left_out
    return {**made, "turns": fitted(made["turns"])}


def rest(source: Path, session_id: str, key: str, start: int) -> dict[str, Any]:
    """One turn, from its block of that number on, as much as is shown at once.

    Blocks: run it in a worker. Raises what `page` raises, and `SessionNotFound` for a turn that is not there.
    """
    found = page(source, session_id, where="around", cursor=key, window=_BYTES)
    turn = next((each for each in stitched(found.turns) if each["key"] == key), None)
    if turn is None:
        raise SessionNotFound("there is no such turn in this session; open the session to see those there are")
    return bounded(turn, min(start, len(turn["content"])))
