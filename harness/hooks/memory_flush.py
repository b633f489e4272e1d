"""Priority 5: after a reply, what is worth remembering goes to the tenant's daily file, off the reply path."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from harness.context import CallScope
from harness.errors import ConfigError
from harness.filesystem import AbstractFilesystem
from harness.hooks.events import PostCall
from harness.hooks.side import Announcer, Background, Recollector
from harness.memory import MemoryFiles, conversation_text, extraction_prompt, parse_extraction, within_budget
from harness.messages import MessageDict
from harness.sessions import SessionTree

__all__ = ["MemoryFlushHook"]

log = logging.getLogger("harness.memory")

_KNOWN_TOKENS = 2000
_CONVERSATION_TOKENS = 16_000


class MemoryFlushHook:
    """Extracts facts from the turn that has just ended, and only from it, into `memory/YYYY-MM-DD.md`.

    The reply does not wait. A flush that fails costs a log line; the conversation is not affected.
    """

    priority = 5
    events = (PostCall,)

    async def on_event(self, event: PostCall) -> None:
        """Start the flush in the background."""
        scope = event.scope
        turns = scope.get(SessionTree).view().turns
        messages = next((turn.messages for turn in turns if turn.id == event.turn_id), ())
        if not messages:
            return
        runner = scope.find(Background)  # type: ignore[type-abstract]  # looked up by its protocol
        if runner is None:
            raise ConfigError("memory flush needs the background work of an agent; build the agent with memory_flush()")
        name = f"memory flush of session {scope.session_id!r}"
        runner.start(name, lambda: _announced(scope, messages), lane=("memory", scope.namespace))


async def _announced(scope: CallScope, messages: tuple[MessageDict, ...]) -> None:
    """The flush, and where it stands, for whoever listens."""
    announce = scope.get(Announcer).announce  # type: ignore[type-abstract]  # looked up by its protocol
    await announce("flush_begin", {"messages": len(messages)})
    try:
        path = await _flush(scope, messages)
    except BaseException as error:
        await announce("flush_end", {"status": "failed", "error": str(error)})
        raise
    await announce("flush_end", {"status": "completed", "path": path} if path else {"status": "nothing"})


async def _flush(scope: CallScope, messages: tuple[MessageDict, ...]) -> str | None:
    files = MemoryFiles(scope.get(AbstractFilesystem))  # type: ignore[type-abstract]  # looked up by its base class
    now = datetime.now(UTC)
    conversation = within_budget(conversation_text(messages), _CONVERSATION_TOKENS, "the session")
    known = within_budget(await files.read_memory(), _KNOWN_TOKENS, "MEMORY.md")
    today = within_budget(await files.read_daily(now), _KNOWN_TOKENS, "today's file", keep="end")
    prompt = extraction_prompt(known, today, conversation)
    model = scope.get(Recollector)  # type: ignore[type-abstract]  # looked up by its protocol
    facts = parse_extraction(await model.recollect(prompt.system, prompt.user))
    path = await files.append_daily(facts, now) if facts is not None else None
    if path:
        log.info("session %r: facts were added to %s", scope.session_id, path)
    return path
