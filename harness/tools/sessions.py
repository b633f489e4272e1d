"""The session tools: what was said in past conversations of this user with this agent.

They ask the `SessionCatalog` of the call, which belongs to one tenant and one agent; there is no
parameter by which a model could ask for another one's.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from harness.context import CallScope
from harness.errors import HarnessError, SessionBusy, SessionError, SessionNotFound, ToolError
from harness.messages import MessageDict
from harness.sessions.catalog.search import SearchHit
from harness.sessions.catalog.session_catalog import SessionCatalog
from harness.sessions.tree.session_tree import SessionTree
from harness.text import counted, dumps, loads
from harness.tools.base import Function
from harness.tools.bounds import MAX_CHARS, bounded_list, shortened
from harness.tools.function import tool
from harness.tools.injection import Inject
from harness.tools.queries import asked, echoed
from harness.tools.recall import recall

__all__ = ["SESSION_TOOLS", "session_history", "session_list", "session_search"]

_TIMEOUT = 60.0
_MAX_RESULTS = 100
_MAX_MESSAGES = 500
_MAX_MESSAGE = 2000
_MAX_PREVIEW = 200
_OF_ONE_TURN = 20
"""Hits more than are wanted: the turn that asks is taken out again."""

log = logging.getLogger("harness.tools")

Catalog = Annotated[SessionCatalog, Inject]


@tool(timeout=_TIMEOUT)
async def session_search(
    catalog: Catalog, scope: CallScope, query: str, max_results: int = 10, session_id: str = ""
) -> str:
    """Search everything that was said in this user's conversations, also what is no longer in view.

    Args:
        query: words to look for
        max_results: how many messages at most
        session_id: search only this conversation
    """
    words = asked(query)
    wanted = _given_id(session_id) or None
    try:
        most = _bounded(max_results, _MAX_RESULTS)
        found = await catalog.search(words, limit=most + _OF_ONE_TURN, session_id=wanted)
        hits = _without_newest(found, scope)[:most]
    except SessionError as error:
        raise _unreadable(error) from error
    if not hits:
        return f"No matching messages found for: {echoed(query)}"
    lines = (
        f"  [{_shown(hit.session_id, scope)}] {hit.entry_id} — [{hit.role.upper()}]: "
        f"{shortened(_one_line(hit.snippet), _MAX_PREVIEW)}"
        for hit in hits
    )
    return bounded_list(
        [f'Found {len(hits)} matches for "{echoed(query)}":', *lines], "there are more; add a word to the query"
    )


@tool(timeout=_TIMEOUT)
async def session_list(catalog: Catalog, scope: CallScope) -> str:
    """List this user's conversations with this agent, the latest first."""
    try:
        sessions = sorted(await catalog.list(), key=lambda info: info.updated_at, reverse=True)
    except (SessionError, SessionBusy) as error:
        raise _unreadable(error) from error
    if not sessions:
        return "No sessions found"
    lines = (
        f"  - {_shown(info.id, scope)}: {shortened(_one_line(info.title), _MAX_PREVIEW) or 'no title'} "
        f"({info.turns} turns, last {info.updated_at})"
        for info in sessions
    )
    first = f"{counted(len(sessions), 'session')}:"
    return bounded_list([first, *lines], "there are older ones; find them with session_search")


@tool(timeout=_TIMEOUT)
async def session_history(catalog: Catalog, scope: CallScope, session_id: str = "", last_n: int = 20) -> str:
    """Read the last messages of a conversation, also those that were summarised since.

    Args:
        session_id: the conversation; this one by default
        last_n: how many messages
    """
    wanted = _given_id(session_id) or scope.session_id
    try:
        messages = await catalog.history(wanted, _bounded(last_n, _MAX_MESSAGES))
    except SessionNotFound:
        if wanted != scope.session_id:
            raise ToolError(
                f"Error: Session not found: {echoed(wanted)}; session_list shows the ones there are"
            ) from None
        messages = []
    except SessionError as error:
        raise _unreadable(error) from error
    if not messages:
        return f"Session {_shown(wanted, scope)} has no messages yet"
    lines = _newest_that_fit([_message_line(message) for message in messages])
    head = f"Session {_shown(wanted, scope)} (the last {len(lines)} messages):"
    note = [] if len(lines) == len(messages) else ["[earlier ones do not fit; session_search finds them]"]
    return "\n".join([head, *note, *lines])


def _without_newest(hits: Sequence[SearchHit], scope: CallScope) -> list[SearchHit]:
    """Without the turn that asks: it is in view, and holds the words because it asks for them."""
    tree = scope.find(SessionTree)
    turn = tree.turn if tree else None
    return [hit for hit in hits if not turn or (hit.session_id, hit.turn_id) != (scope.session_id, turn)]


def _unreadable(error: HarnessError) -> ToolError:
    """The errors of sessions name places of the host: they are for the log, not for a model."""
    log.warning("a session tool could not read: %s", error)
    return ToolError("Error: the sessions cannot be read at the moment; go on without them")


def _bounded(number: int, most: int) -> int:
    return min(max(number, 1), most)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _shown(session_id: str, scope: CallScope) -> str:
    """An id so that it can be given back: as it is, or in quotes where a reader would misread it."""
    plain = session_id.isprintable() and session_id == session_id.strip() and not session_id.startswith('"')
    shown = session_id if plain else dumps(session_id).decode()
    return f"{shown} (current)" if session_id == scope.session_id else shown


def _given_id(text: str) -> str:
    if not text.startswith('"'):
        return text
    try:
        value = loads(text)
    except ValueError:
        return text
    return value if isinstance(value, str) else text


def _newest_that_fit(lines: Sequence[str]) -> list[str]:
    kept: list[str] = []
    size = 0
    for line in reversed(lines):
        size += len(line) + 1
        if kept and size > MAX_CHARS:
            break
        kept.append(line)
    return kept[::-1]


def _message_line(message: MessageDict) -> str:
    content = message.get("content") or []
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    texts = [_block_text(block) for block in blocks if isinstance(block, Mapping)]
    text = " ".join(text for text in texts if text)
    return f"[{str(message.get('role', '?')).upper()}]: {shortened(text, _MAX_MESSAGE)}"


def _block_text(block: Mapping[str, Any]) -> str:
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", ""))
    if kind == "thinking":
        return ""
    if kind == "toolUse":
        return f"(calls {block.get('name', '?')} with {dumps(block.get('input', {})).decode()})"
    if kind == "toolResult":
        inner = [_block_text(part) for part in block.get("content", ()) if isinstance(part, Mapping)]
        return f"(result of {block.get('name') or 'a tool'}: {' '.join(inner)})"
    return f"({kind})"


SESSION_TOOLS: tuple[Function, ...] = (session_search, session_list, session_history, recall)
"""Searching, listing and reading past conversations of the tenant with the agent, and reading this one back whole."""
