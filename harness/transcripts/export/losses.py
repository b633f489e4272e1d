"""What a form cannot hold of a session, by one rule for all of them: what it does not hold is counted and told.

A target names what of these it `holds`. What else is lost in the writing of a single block it counts itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping

from harness.transcripts.export.base import unplaced_usage
from harness.transcripts.reader import Transcript
from harness.transcripts.turns import Turn

__all__ = ["FEATURES", "losses"]

_ENDED = frozenset({"stop", "end_turn", "stop_sequence", "toolUse", "tool_use", "tool_calls", "tool-calls"})


def losses(transcript: Transcript, holds: Collection[str]) -> dict[str, int]:
    """How much there is of each thing that a target does not hold; turns that it leaves out whole are not looked at."""
    turns = [turn for turn in transcript.turns if turn.aside is None or turn.aside in holds]
    found: Counter[str] = Counter()
    for name, count in _OF_TURNS.items():
        if name not in holds:
            found[name] = sum(map(count, turns))
    for name, count_all in _OF_SESSIONS.items():
        if name not in holds:
            found[name] = count_all(transcript)
    return dict(+found)


def _is_cut_short(turn: Turn) -> bool:
    return turn.message.get("stop") is not None and turn.message["stop"] not in _ENDED


def _sealed(turn: Turn) -> int:
    return sum("opaque" in block or not block["text"].strip() for block in turn.of_type("thinking"))


_OF_TURNS: Mapping[str, Callable[[Turn], int]] = {
    "queued marks": lambda turn: turn.kind == "queued",
    "compaction marks": lambda turn: turn.kind == "compaction",
    "harness marks": lambda turn: turn.kind == "meta",
    "interrupted marks": lambda turn: turn.message.get("partial") is True,
    "stop reasons": _is_cut_short,
    "message usage": lambda turn: any(turn.message.get("usage", {}).values()),
    "sealed reasoning": _sealed,
    "exit codes": lambda turn: sum("exitCode" in block for block in turn.of_type("toolResult")),
}
_OF_SESSIONS: Mapping[str, Callable[[Transcript], int]] = {
    "session usage": lambda transcript: len(unplaced_usage(transcript)),
    "title": lambda transcript: bool(transcript.about.title or transcript.about.weak_title),
    "branch": lambda transcript: bool(transcript.head.branch),
    "parent session": lambda transcript: bool(transcript.head.parent or transcript.head.forked_from),
    "sub-agents": lambda transcript: len(transcript.head.subagents),
    "findings": lambda transcript: len(transcript.warnings),
}
FEATURES = frozenset(_OF_TURNS) | frozenset(_OF_SESSIONS)
"""What a target can hold, beside `sidechain` and `abandoned` turns: names under which it is told."""
