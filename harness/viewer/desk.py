"""What all routes share: who asks, which session, reading it off the loop, and answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeAlias, TypeVar, cast

from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from harness.errors import ConfigError, TranscriptRefused
from harness.filesystem import pool
from harness.filesystem.confined import inside
from harness.text import dumps
from harness.transcripts import in_worker
from harness.transcripts.formats import format_named
from harness.transcripts.refusing import path_text
from harness.transcripts.windows import Where
from harness.transcripts.worker import told_by_worker, unpacked
from harness.viewer.asking import Asked
from harness.viewer.counts import Count, Counts
from harness.viewer.overview import overview_in
from harness.viewer.rendering import rendered
from harness.viewer.rows import row_of
from harness.viewer.searching import MAX_QUERY, search
from harness.viewer.shares import Share
from harness.viewer.shelf import Item, Shelf
from harness.viewer.templates import Templates
from harness.viewer.window import window

__all__ = [
    "MAX_CURSOR",
    "NO_PLACE",
    "Access",
    "Child",
    "Desk",
    "Opened",
    "asked_for",
    "base_of",
    "block_asked_for",
    "json_answer",
    "number_asked_for",
    "words_asked_for",
]

Access: TypeAlias = Callable[[Request], Awaitable[Shelf | None] | Shelf | None]
"""Whose sessions this request may see; None where it may see none."""

_WHERE = frozenset({"tail", "head", "before", "after", "around"})
NO_PLACE = "That place in the session is none; begin again at its end."
"""What is said of a cursor or key that leads nowhere."""
NO_WINDOW = "where= is one of tail, head, before, after and around, and cursor= what an earlier answer gave."
"""What is said of a window that cannot be."""
NO_LEDGER = "This session is of another harness and has no ledger; its turns are all there is."
"""What is said to who asks for what only a ledger has."""
MAX_CURSOR = 500
"""Characters of a cursor."""
_WHOLE = 3
"""Sessions that are gone through as a whole at a time: workers are left for pages."""
_AT_ONCE = 8
"""Turns that are made in one go; between them the threads are others'."""
_MOST_DIGITS = 9
_SHARE = "harness.viewer.share"

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
    """Serves any number of visitors. What it keeps are sessions in figures, for whoever may open them."""

    def __init__(self, access: Access, templates: Templates, *, names_places: bool) -> None:
        self.names_places = names_places
        self._access = Asked("viewer_app: access", access, Shelf)
        self._templates = templates
        self.zone = templates.zone
        self._turnstile = asyncio.Semaphore(_WHOLE)
        self._counts = Counts()

    async def shelf(self, request: Request) -> Shelf:
        """The visitor's sessions. Raises a 403 for who may see none."""
        shelf = await self._access(request)
        if shelf is None:
            raise HTTPException(403)
        request.scope[_SHARE] = shelf.share
        return shelf

    async def opened(self, request: Request) -> Opened:
        """The session that the address names. Raises `SessionNotFound`."""
        shelf = await self.shelf(request)
        return Opened(shelf, await shelf.find(request.path_params["key"]))

    async def window(self, opened: Opened, where: Where, cursor: str | None, min_turns: int = 12) -> dict[str, Any]:
        """A page of a session in its JSON form, of each turn as much as is shown at once."""
        return await self.read(opened, window, where, cursor, min_turns)

    async def read(
        self, opened: Opened, work: Callable[Concatenate[Path, str, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What a worker process reads of a place in a session. Raises a 400 for a place that is none."""
        with _places():
            return await self.fetch(opened, work, *args, **kwargs)

    async def fetch(
        self, opened: Opened, work: Callable[Concatenate[Path, str, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The same, for what is no place; raises what the work raises."""
        async with opened.shelf.share.pages:
            return await self._worked(opened.item, work, *args, **kwargs)

    async def search(self, opened: Opened, query: str, cursor: str | None) -> dict[str, Any]:
        """What a search finds in a session, or on from a cursor of another. Raises a 400 for one that is none."""
        with _places():
            return await self.whole(opened, search, query, cursor)

    async def overview(self, opened: Opened) -> dict[str, Any]:
        """The whole session in figures. It is read once for all who ask, and again when it has changed."""
        item, share = opened.item, opened.shelf.share
        place = _place_of(item)
        state = await pool.run(format_named(item.candidate.format).marks, item.source)
        raw = await self._counts.known(place, state)
        if raw is None:
            async with share.whole:
                raw = await self._counts.known(place, state)  # who was in front of us may have asked for the same
                raw = await self._counts.begun(place, state, partial(self._counted, item)) if raw is None else raw
        async with share.made:
            return cast(dict[str, Any], await rendered(unpacked, raw))

    def counting(self, opened: Opened) -> tuple[int, int] | None:
        """How many bytes were read for an overview that somebody waits for, and of how many; None without one."""
        return self._counts.so_far(_place_of(opened.item))

    async def _counted(self, item: Item, count: Count) -> bytes:
        async with self._turnstile:
            return await told_by_worker(count.tell, overview_in, item.folder, item.source, item.session_id)

    async def whole(
        self, opened: Opened, work: Callable[Concatenate[Path, str, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What goes through a whole session, in a worker process, few at a time."""
        async with opened.shelf.share.whole, self._turnstile:
            return await self._worked(opened.item, work, *args, **kwargs)

    async def html(self, request: Request, name: str, status: int = 200, **values: Any) -> Response:
        """A page, filled in off the loop."""
        return HTMLResponse(await self.piece(request, name, **values), status)

    async def pieces(self, request: Request, item: Item, turns: Sequence[Mapping[str, Any]]) -> list[Markup]:
        """Each turn as markup of its own, a few at a time."""
        shared = {"base": base_of(request), "key": item.key}
        made: list[Markup] = []
        for start in range(0, len(turns), _AT_ONCE):
            before = turns[start - 1].get("at") if start else None
            some = turns[start : start + _AT_ONCE]
            made += await self._made(request, self._render_turns, some, before, shared)
        return made

    async def piece(self, request: Request, name: str, **values: Any) -> Markup:
        """A part of a page, for a script to put in its place."""
        return await self._made(request, self._templates.render, name, base=base_of(request), **values)

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

    async def _worked(
        self, item: Item, work: Callable[Concatenate[Path, str, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await in_worker(inside, item.folder, work, item.source, item.session_id, *args, **kwargs)

    async def _made(self, request: Request, make: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        share: Share | None = request.scope.get(_SHARE)
        if share is None:  # the door, and errors: nobody knows yet who asks
            return await rendered(make, *args, **kwargs)
        async with share.made:
            return await rendered(make, *args, **kwargs)

    def _render_turns(
        self, turns: Sequence[Mapping[str, Any]], before: object, shared: Mapping[str, Any]
    ) -> list[Markup]:
        times = [before, *(turn.get("at") for turn in turns)]
        return [
            self._templates.render("turns.html", row=row_of(turn), before=at, **shared)
            for turn, at in zip(turns, times, strict=False)
        ]


@contextmanager
def _places() -> Iterator[None]:
    """A cursor or key that leads nowhere is the visitor's fault, not a refusal to read."""
    try:
        yield
    except TranscriptRefused:
        raise
    except ConfigError as error:
        raise HTTPException(400, NO_PLACE) from error


def _place_of(item: Item) -> tuple[Path, Path, str]:
    return item.folder, item.source, item.session_id


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
        raise HTTPException(400, NO_WINDOW)
    return cast(Where, where), cursor


def block_asked_for(request: Request) -> tuple[str, int]:
    """The turn that the address names, and from which of its blocks on. Raises a 400 for what is none."""
    key = str(request.path_params["turn"])
    if len(key) > MAX_CURSOR:
        raise HTTPException(400)
    return key, number_asked_for(request)


def number_asked_for(request: Request) -> int:
    """The number that the query gives as `from`, 0 without one. Raises a 400 for what is no number."""
    found = request.query_params.get("from", "0")
    if not found.isascii() or not found.isdigit() or len(found) > _MOST_DIGITS:
        raise HTTPException(400)
    return int(found)


def words_asked_for(request: Request) -> tuple[str, str | None]:
    """What to look for, and the cursor to go on from. Raises a 400 for what is too long."""
    query, cursor = request.query_params.get("q", "").strip(), request.query_params.get("cursor") or None
    if len(query) > MAX_QUERY:
        raise HTTPException(400)
    if len(cursor or "") > MAX_CURSOR:
        raise HTTPException(400, NO_PLACE)
    return query, cursor


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
