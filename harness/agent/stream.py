"""What a consumer of a call sees: events as plain values, ready for JSON and SSE."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from harness.hooks.events import Event

__all__ = ["StreamEvent", "stream_event"]


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event of a call.

    event       the hook event's name in snake_case: `reasoning_chunk`, `post_acting`, …
    id          `<requestId>/<n>`, or `<callId>/<n>` outside a request; n counts within the call. No two calls
                share an id, also where they wait for one turn
    source      the child sessions it comes from, outer first; empty for the call's own
    data        JSON; what is in it stands on each event class
    """

    event: str
    id: str
    session: str
    agent: str
    turn_id: str | None = None
    request_id: str | None = None
    source: tuple[str, ...] = ()
    data: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The event as JSON: camelCase keys, absent instead of null."""
        result: dict[str, Any] = {"event": self.event, "id": self.id, "session": self.session, "agent": self.agent}
        if self.turn_id:
            result["turnId"] = self.turn_id
        if self.request_id:
            result["requestId"] = self.request_id
        return {**result, "source": list(self.source), "data": self.data}


def stream_event(event: Event, call_id: str, number: int) -> StreamEvent:
    """The stream's form of a hook event, the `number`th of its call."""
    place = event.request_id or call_id
    return StreamEvent(
        event=event.event_name(),
        id=f"{place}/{number}",
        session=event.scope.session_id,
        agent=event.scope.agent_id,
        turn_id=event.turn_id,
        request_id=event.request_id,
        data=event.data(),
    )
