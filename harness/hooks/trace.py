"""Priority 0: one log line for each event, with the call's identity on the record."""

from __future__ import annotations

import logging
from typing import Any

from harness.hooks.events import (
    Error,
    Event,
    PostActing,
    PostCall,
    PostReasoning,
    PostSummary,
    PreActing,
    PreCall,
    PreReasoning,
    PreSummary,
)
from harness.text import error_text

__all__ = ["TraceHook"]

_PREVIEW = 200


class TraceHook:
    """Writes to the logger `harness.trace`: one line an event at INFO, texts and arguments at DEBUG.

    Each record has the attributes `harness_user`, `harness_agent`, `harness_session`, `harness_turn`
    and `harness_request`. Texts of the conversation are written at DEBUG only.
    """

    priority = 0
    events = (
        PreCall, PreReasoning, PostReasoning, PreActing, PostActing, PreSummary, PostSummary, PostCall, Error,
    )  # fmt: skip

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._log = logger or logging.getLogger("harness.trace")

    async def on_event(self, event: Event) -> None:
        """Write the line."""
        if not self._log.isEnabledFor(logging.INFO):
            return
        detail = f" {_detail(event)}" if self._log.isEnabledFor(logging.DEBUG) else ""
        self._log.info(
            "%s session=%s user=%s%s%s",
            event.event_name(),
            event.scope.session_id,
            event.scope.user_id,
            _facts(event),
            detail,
            extra=_identity(event),
        )


def _identity(event: Event) -> dict[str, Any]:
    return {
        "harness_user": event.scope.user_id,
        "harness_agent": event.scope.agent_id,
        "harness_session": event.scope.session_id,
        "harness_turn": event.turn_id,
        "harness_request": event.request_id,
    }


def _facts(event: Event) -> str:
    match event:
        case PreReasoning():
            return f" step={event.step} messages={len(event.messages)} tools={len(event.tools)}"
        case PostReasoning():
            calls = ",".join(use.name for use in event.message.tool_uses)
            return f" model={event.message.model} calls={calls or '-'}"
        case PreActing():
            return f" tool={event.tool_use.name} call={event.tool_use.id}"
        case PostActing():
            return f" tool={event.tool_use.name} call={event.tool_use.id} error={event.result.is_error}"
        case Error():
            return f" error={type(event.error).__name__}"
        case _:
            return ""


def _detail(event: Event) -> str:
    match event:
        case PreCall():
            return _preview(" ".join(message.text for message in event.messages))
        case PostReasoning() | PostSummary() | PostCall():
            return _preview(event.message.text)
        case PreActing():
            return _preview(str(event.tool_use.input))
        case PostActing():
            return _preview(event.result.text)
        case Error():
            return _preview(error_text(event.error))
        case _:
            return ""


def _preview(text: str) -> str:
    return repr(text if len(text) <= _PREVIEW else f"{text[:_PREVIEW]}… ({len(text)} characters)")
