"""Priority 5: after a reply, what is worth remembering goes to the tenant's daily file, off the reply path."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from harness.context import CallScope
from harness.errors import ConfigError, ContextOverflow
from harness.filesystem import AbstractFilesystem
from harness.hooks.events import PostCall
from harness.hooks.gauge import side_room
from harness.hooks.side import Announcer, Background, Notices, Recollector
from harness.memory import (
    ExtractionPrompt,
    MemoryFiles,
    both_ends,
    clear_memory_paths,
    conversation_text,
    extraction_prompt,
    parse_extraction,
    within_budget,
)
from harness.messages import MessageDict
from harness.models.tokens import estimate_tokens
from harness.sessions import SessionTree
from harness.sessions.selection.sections import closed_turn
from harness.text import error_text

__all__ = ["MemoryFlushHook", "clear_and_tell"]

log = logging.getLogger("harness.memory")

_KNOWN_TOKENS = 2000
_CONVERSATION_TOKENS = 16_000
_AROUND_TOKENS = 400
"""What the rules and the tags cost."""
_MOST_TOKENS = 2 * _KNOWN_TOKENS + _CONVERSATION_TOKENS + _AROUND_TOKENS
_LEAST_TOKENS = 1_000
_RESULT_CHARS = (4_000, 1_000, 200)


class MemoryFlushHook:
    """Extracts facts from the turn that has just ended, and only from it, into `memory/YYYY-MM-DD.md`.

    The reply does not wait. A flush that fails costs a log line; the conversation is not affected.
    """

    priority = 5
    events = (PostCall,)

    async def on_event(self, event: PostCall) -> None:
        """Start the flush in the background."""
        scope = event.scope
        messages = _turn_messages(scope.get(SessionTree), event.turn_id)
        if not messages:
            return
        room = side_room(scope)
        runner = scope.find(Background)  # type: ignore[type-abstract]  # looked up by its protocol
        if runner is None:
            raise ConfigError("memory flush needs the background work of an agent; build the agent with memory_flush()")
        name = f"memory flush of {scope}"
        runner.start(name, lambda: _announced(scope, messages, room), lane=("memory", scope.namespace))


def _turn_messages(tree: SessionTree, turn_id: str | None) -> tuple[MessageDict, ...]:
    """All that was said in a turn, steps that a compaction took out of it included; nothing where it is not shown."""
    if not any(turn.id == turn_id for turn in tree.view().turns):
        return ()
    path = tree.path()
    begin = next((index for index, entry in enumerate(path) if entry.id == turn_id), None)
    turn = closed_turn(path[begin:]) if begin is not None else None
    return turn.messages if turn else ()


async def _announced(scope: CallScope, messages: tuple[MessageDict, ...], room: int | None) -> None:
    """The flush, and where it stands, for whoever listens."""
    announce = scope.get(Announcer).announce  # type: ignore[type-abstract]  # looked up by its protocol
    await announce("flush_begin", {"messages": len(messages)})
    try:
        path = await _flush(scope, messages, room)
    except BaseException as error:
        await announce("flush_end", {"status": "failed", "error": error_text(error)})
        raise
    await announce("flush_end", {"status": "completed", "path": path} if path else {"status": "nothing"})


async def _flush(scope: CallScope, messages: tuple[MessageDict, ...], room: int | None) -> str | None:
    model = scope.get(Recollector)  # type: ignore[type-abstract]  # looked up by its protocol
    place = model.guarded(scope.get(AbstractFilesystem))  # type: ignore[type-abstract]  # by its base class
    files = MemoryFiles(place)
    now = datetime.now(UTC)
    await clear_and_tell(scope, place, now)
    left = _MOST_TOKENS if room is None else min(room, _MOST_TOKENS)
    while True:
        prompt = await _prompt(files, now, messages, left)
        try:
            facts = parse_extraction(await model.recollect(prompt.system, prompt.user))
            break
        except ContextOverflow:
            left //= 2
            if left < _LEAST_TOKENS:
                raise
    path = await files.append_daily(facts, now) if facts is not None else None
    if path:
        log.info("session %r: facts were added to %s", scope.session_id, path)
    return path


async def clear_and_tell(scope: CallScope, files: AbstractFilesystem, now: datetime) -> list[str]:
    """Set aside what stands where the memory belongs, and say it to the caller, if he still looks."""
    told = await clear_memory_paths(files, now)
    notices = scope.find(Notices)  # type: ignore[type-abstract]  # looked up by its protocol
    if notices is not None:
        for text in told:
            notices.warn(text)
    return told


async def _prompt(
    files: MemoryFiles, now: datetime, messages: tuple[MessageDict, ...], tokens: int
) -> ExtractionPrompt:
    """The request for facts, in at most about so many tokens."""
    most = min(_KNOWN_TOKENS, tokens // 8)
    known = within_budget(await files.read_memory(), most, "MEMORY.md")
    today = within_budget(await files.read_daily(now), most, "today's file", keep="end")
    taken = estimate_tokens(known) + estimate_tokens(today) + _AROUND_TOKENS
    return extraction_prompt(known, today, _said(messages, min(_CONVERSATION_TOKENS, tokens - taken)))


def _said(messages: tuple[MessageDict, ...], tokens: int) -> str:
    """The turn as text. What tools gave is shortened first, then the middle is left out."""
    for chars in _RESULT_CHARS:
        text = conversation_text(messages, chars)
        if estimate_tokens(text) <= tokens:
            return text
    return both_ends(text, tokens, "the session")
