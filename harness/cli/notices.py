"""Long work in words: what a notice of an agent is to a person at a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harness.cli.output import one_line
from harness.hooks import Notice

__all__ = ["BackgroundNews", "progress_line"]

_BACKGROUND = ("flush", "consolidation")


def progress_line(kind: str, details: Mapping[str, Any]) -> str | None:
    """One line for a notice; None for those that are nobody's business."""
    make = _LINES.get(kind)
    line = make(details) if make else None
    return f"· {line}" if line else None


def _begins_compaction(details: Mapping[str, Any]) -> str:
    what = f"{details['turns']} earlier turns" if details.get("turns") else "the steps so far"
    return f"{'leaving out' if details.get('mode') == 'discard' else 'summing up'} {what} …"


def _ends_compaction(details: Mapping[str, Any]) -> str:
    if details.get("status") == "completed":
        return f"the context is now about {details.get('tokensAfter')} tokens, it was {details.get('tokens')}"
    return f"not summed up: {_short(details, 'error') or 'nothing would be gained'}"


def _ends_flush(details: Mapping[str, Any]) -> str | None:
    return f"remembered in {_short(details, 'path')}" if details.get("path") else _not_kept(details)


def _tidies_up(details: Mapping[str, Any]) -> str:
    left = f", {details['left']} more to come" if details.get("left") else ""
    return f"tidying up the memory with {', '.join(map(one_line, details.get('files', ())))}{left} …"


def _not_kept(details: Mapping[str, Any]) -> str | None:
    return f"the memory was not updated: {_short(details, 'error')}" if details.get("status") == "failed" else None


def _short(details: Mapping[str, Any], key: str) -> str:
    return one_line(str(details.get(key) or ""), 200)


_LINES: Mapping[str, Callable[[Mapping[str, Any]], str | None]] = {
    "compaction_begin": _begins_compaction,
    "compaction_end": _ends_compaction,
    "consolidation_begin": _tidies_up,
    "consolidation_end": lambda details: _not_kept(details) or "the memory is up to date",
    "consolidation_progress": _tidies_up,
    "fallback": lambda details: f"going on with {_short(details, 'to')}",
    "flush_end": _ends_flush,
    "overflow": lambda _: "that was too long for the model; making room …",
    "packet_begin": lambda details: f"summing up turns 1 to {(details.get('turns') or [0])[-1]} …",
    "packet_failed": lambda details: f"not summed up: {_short(details, 'error')}",
    "retry": lambda details: f"trying again: {_short(details, 'error')}",
}


class BackgroundNews:
    """A hook that collects what goes on behind the replies, until somebody has time to read it."""

    priority = 990
    events = (Notice,)

    def __init__(self) -> None:
        self._lines: list[str] = []

    async def on_event(self, event: Notice) -> None:
        """Keep the line of a notice from behind a reply; the others are in the call's own events."""
        line = progress_line(event.kind, event.details) if event.kind.startswith(_BACKGROUND) else None
        if line is not None:
            self._lines.append(line)

    def take(self) -> list[str]:
        """What came since it was asked before."""
        taken, self._lines = self._lines, []
        return taken
