"""What hooks have changed, for the ledger: in which event, and which message or result.

What was there before is not kept, nor its digest: a hook may have taken it away because nobody
should see it, and what is left of it tells the rest to whoever can try all digests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.hooks.events import Event, PreCall

__all__ = ["replacements"]


def replacements(before: Event, after: Event) -> Iterator[dict[str, Any]]:
    """The data of a `replace` event for each message and result that is another one now."""
    if after is before:
        return
    if isinstance(before, PreCall) and isinstance(after, PreCall):
        kept = {id(message) for message in after.messages}
        for message in before.messages:
            if id(message) not in kept:
                yield {"event": before.event_name(), "message": message.id}
        return
    for name in ("message", "result"):
        now = getattr(after, name, None)
        if now is not None and now is not getattr(before, name, None):
            yield {"event": before.event_name(), name: now.id}
