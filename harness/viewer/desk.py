"""What all routes share: who asks, which session, reading it off the loop, and answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, ParamSpec, TypeAlias, TypeVar, cast

from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from harness.errors import ConfigError, TranscriptRefused
from harness.text import dumps
from harness.transcripts import Page, in_worker, page, stitched
from harness.transcripts.refusing import path_text
from harness.viewer.overview import overview
from harness.viewer.rendering import rendered
from harness.viewer.rows import Row, row_of
from harness.viewer.shelf import Item, Shelf
from harness.viewer.templates import Templates

__all__ = [
    "MAX_CURSOR",
    "NO_PLACE",
    "Access",
    "Child",
    "Desk",
    "Opened",
    "Where",
    "asked_for",
    "base_of",
    "json_answer",
    "turns_of",
]

Access: TypeAlias = Callable[[Request], Awaitable[Shelf | None]]
"""Whose sessions this request may see; None where it may see none."""

Where: TypeAlias = Literal["tail", "head", "before", "after", "around"]
_WHERE = frozenset({"tail", "head", "before", "after", "around"})
_WINDOW = 128 * 1024
NO_PLACE = "That place in the session is none; begin again at its end."
"""What is said of a cursor or key that leads nowhere."""
MAX_CURSOR = 500
"""Characters of a cursor."""
_WHOLE = 3
"""Sessions that are gone through as a whole at a time: workers are left for pages."""

P = ParamSpec("P")
T = TypeVar("T")


class Child(NamedTuple):
    """A sub-agent's session: its key and title, and the id of the call that started it where that is known."""

    key: str
    title: str
    call: str | None


@dataclass(frozen=True, slots=True)
class Opened:
    """A session for one request: the visitor's shelf, and the session on it."""

    shelf: Shelf
    item: Item


class Desk:
    """Serves any number of visitors; holds nothing of any of them."""

    def __init__(self, access: Access, templates: Templates, *, names_places: bool) -> None:
        self.names_places = names_places
        self._access = access
        self._templates = templates
        self.zone = templates.zone
        self._turnstile = asyncio.Semaphore(_WHOLE)

    async def shelf(self, request: Request) -> Shelf:
        """The visitor's sessions. Raises a 403 for who may see none."""
        shelf = await self._access(request)
        if shelf is None:
            raise HTTPException(403)
        return shelf

    async def opened(self, request: Request) -> Opened:
        """The session that the address names. Raises `SessionNotFound`."""
        shelf = await self.shelf(request)
        return Opened(shelf, await shelf.find(request.path_params["key"]))

    async def page(self, item: Item, where: Where, cursor: str | None, min_turns: int = 12) -> Page:
        """A window of a session, read in a worker process."""
        try:
            return await in_worker(
                page, item.source, item.session_id, where=where, cursor=cursor, window=_WINDOW, min_turns=min_turns
            )
        except TranscriptRefused:
            raise
        except ConfigError as error:
            raise HTTPException(400, NO_PLACE) from error

    async def overview(self, item: Item) -> dict[str, Any]:
        """The whole session in figures, read in a worker process."""
        return await self.whole(overview, item.source, item.session_id)

    async def whole(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """What goes through a whole session, in a worker process, few at a time."""
        async with self._turnstile:
            return await in_worker(fn, *args, **kwargs)

    async def html(self, request: Request, name: str, status: int = 200, **values: Any) -> Response:
        """A page, filled in off the loop."""
        text = await rendered(self._templates.render, name, base=base_of(request), **values)
        return HTMLResponse(text, status)

    async def pieces(self, request: Request, opened: Opened, turns: Sequence[Mapping[str, Any]]) -> list[Markup]:
        """Each turn as markup of its own."""
        shared = {"base": base_of(request), "key": opened.item.key}
        return await rendered(self._render_all, [row_of(turn) for turn in turns], shared)

    async def piece(self, request: Request, name: str, **values: Any) -> Markup:
        """A part of a page, for a script to put in its place."""
        return await rendered(self._templates.render, name, base=base_of(request), **values)

    async def children(self, opened: Opened, head: Mapping[str, Any]) -> list[Child]:
        """The sub-agents that a session started and that are on the same shelf."""
        items = [item for item in await opened.shelf.items() if item.key != opened.item.key]
        named = [(agent, _session_of(agent, items, opened.item.source.parent)) for agent in head.get("subagents", ())]
        started = [(agent, item) for agent, item in named if item is not None]
        known = {item.key for _, item in started}
        # Some harnesses name the parent in the child only.
        mine = [item for item in items if item.is_child_of(opened.item) and item.key not in known]
        return [
            *(Child(item.key, str(agent.get("title") or item.title), agent.get("call")) for agent, item in started),
            *(Child(item.key, item.title, None) for item in mine),
        ]

    def _render_all(self, rows: Sequence[Row], shared: Mapping[str, Any]) -> list[Markup]:
        return [self._templates.render("turns.html", row=row, **shared) for row in rows]


def _session_of(agent: Mapping[str, Any], items: Sequence[Item], folder: Path) -> Item | None:
    """A sub-agent's session: by its id, or as the only one of the file it is said to be in."""
    named = [item for item in items if item.session_id == agent.get("sessionId")]
    beside = [item for item in named if item.source.parent == folder]  # other agents may have one of that id
    found = beside or named or [item for item in items if path_text(item.source) == agent.get("source")]
    return found[0] if len(found) == 1 else None


def base_of(request: Request) -> str:
    """Where the viewer is mounted, for addresses in its pages."""
    return str(request.scope.get("root_path", "")).rstrip("/")


def asked_for(request: Request) -> tuple[Where, str | None]:
    """The window that the query names: `where` and `cursor`, or one of `before`, `after`, `at`."""
    query = request.query_params
    cursor = query.get("cursor") or None
    where = query.get("where", "tail")
    for short, means in (("before", "before"), ("after", "after"), ("at", "around")):
        if query.get(short):
            where, cursor = means, query[short]
    if where not in _WHERE or len(cursor or "") > MAX_CURSOR:
        raise HTTPException(400)
    return cast(Where, where), cursor


def turns_of(found: Page) -> list[dict[str, Any]]:
    """The turns of a window, results in their calls."""
    return list(stitched(found.turns))


def json_answer(document: Mapping[str, Any], status: int = 200) -> Response:
    """A JSON twin. Written so that it can do nothing even where somebody takes it for a page."""
    raw = dumps(document)
    for sign, safe in _RISKY:
        raw = raw.replace(sign, safe)
    return Response(raw, status, media_type="application/json")


_RISKY = (
    *((sign, b"\\u%04x" % ord(sign)) for sign in (b"<", b">", b"&")),
    *((sign.encode(), b"\\u%04x" % ord(sign)) for sign in ("\u2028", "\u2029")),
)
