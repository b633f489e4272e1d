"""The pages, rendered on the server. They need no script to be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from harness.filesystem import pool
from harness.transcripts.refusing import path_text
from harness.viewer import audits
from harness.viewer.bounds import fitted
from harness.viewer.branches import turns_at
from harness.viewer.days import days_of
from harness.viewer.desk import NO_LEDGER, Desk, Opened, asked_for, block_asked_for, number_asked_for, words_asked_for
from harness.viewer.files import is_database
from harness.viewer.pictures import timeline, tokens
from harness.viewer.rows import row_of
from harness.viewer.shelf import Item
from harness.viewer.window import rest

__all__ = ["page_routes"]

SHOWN = 40
"""Turns that a page with a script holds as elements; the others of its window wait."""
_LISTED = 500
_BRANCH = 100
"""Turns on one page of a branch."""
_AT_ONCE = 4_000_000
"""Bytes of a ledger up to which its page waits until the whole was read."""
_BESIDE = 200
"""Messages of a request, and lines of the log beside them, on one page."""


class _Pages:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def sessions(self, request: Request) -> Response:
        shelf = await self._desk.shelf(request)
        items = await shelf.items()
        query = request.query_params.get("q", "").strip()
        chosen = [item for item in _without_children(items) if _fits(item, query)]
        return await self._desk.html(
            request,
            "sessions.html",
            items=chosen[:_LISTED],
            total=len(items),
            left=len(chosen) - _LISTED,
            query=query,
            note=shelf.note,
        )

    async def session(self, request: Request) -> Response:
        opened = await self._desk.opened(request)
        where, cursor = asked_for(request)
        found = await self._desk.window(opened, where, cursor, min_turns=2)
        turns = await self._desk.pieces(request, opened.item, found["turns"])
        keys = [str(turn["key"]) for turn in found["turns"]]
        return await self._desk.html(
            request,
            "session.html",
            item=opened.item,
            page=found,
            is_file=not await pool.run(is_database, opened.item),
            query=request.query_params.get("q", ""),
            at=request.query_params.get("at", ""),
            place=path_text(opened.item.source) if self._desk.names_places else "",
            **_shown(turns, keys, where, cursor),
        )

    async def turn(self, request: Request) -> Response:
        opened = await self._desk.opened(request)
        key, start = block_asked_for(request)
        row = row_of(await self._desk.read(opened, rest, key, start))
        return await self._desk.html(request, "rest.html", item=opened.item, row=row, start=start)

    async def search(self, request: Request) -> Response:
        """For who has no script: with one, the session's own page shows what was found."""
        opened = await self._desk.opened(request)
        query, cursor = words_asked_for(request)
        found = await self._desk.search(opened, query, cursor) if query else None
        return await self._desk.html(request, "hits.html", item=opened.item, query=query, found=found)

    async def pictures(self, request: Request) -> Response:
        opened = await self._desk.opened(request)
        found = await self._desk.overview(opened)
        requests, budget = found["requests"], None
        if opened.item.is_ours:
            requests, budget = await self._desk.whole(opened, audits.spent)
        return await self._desk.html(
            request,
            "pictures.html",
            item=opened.item,
            timeline=timeline(found["moments"]),
            days=days_of(found["moments"], found["requests"], self._desk.zone),
            tokens=tokens(requests, budget),
        )

    async def ledger(self, request: Request) -> Response:
        opened, start = await self._own(request), number_asked_for(request)
        is_asked = bool({"whole", "from"} & set(request.query_params))
        is_short = (opened.item.candidate.size or 0) <= _AT_ONCE
        found = await self._desk.read(opened, audits.requests, "tail", None)
        audit = await self._desk.whole(opened, audits.audit, start) if is_short or is_asked else None
        return await self._desk.html(
            request, "ledger.html", item=opened.item, key=opened.item.key, found=found, audit=audit, start=start
        )

    async def requests(self, request: Request) -> Response:
        opened = await self._own(request)
        found = await self._desk.read(opened, audits.requests, *asked_for(request))
        at = request.query_params.get("at", "")
        return await self._desk.html(
            request, "requests.html", item=opened.item, key=opened.item.key, found=found, at=at
        )

    async def branch(self, request: Request) -> Response:
        opened = await self._own(request)
        item = opened.item
        piece, lines, left_at = await self._desk.whole(opened, audits.branch, request.path_params["branch"])
        turns = await self._desk.whole(opened, turns_at, lines)
        start = min(number_asked_for(request), max(0, len(turns) - 1))
        shown = await pool.run(fitted, turns[start : start + _BRANCH])
        return await self._desk.html(
            request,
            "branch.html",
            item=item,
            piece=piece,
            left_at=left_at,
            turns=await self._desk.pieces(request, item, shown),
            earlier=max(0, start - _BRANCH) if start else None,
            later=start + _BRANCH if start + _BRANCH < len(turns) else None,
        )

    async def request(self, request: Request) -> Response:
        opened, start = await self._own(request), number_asked_for(request)
        item = opened.item
        seen = await self._desk.whole(opened, audits.seen, request.path_params["request"], start, _BESIDE, 0)
        most = max(seen.counts)
        return await self._desk.html(
            request,
            "request.html",
            item=item,
            request_id=request.path_params["request"],
            seen=seen,
            newer=max(0, start - _BESIDE) if start else None,
            older=start + _BESIDE if start + _BESIDE < most else None,
        )

    async def _own(self, request: Request) -> Opened:
        opened = await self._desk.opened(request)
        if not opened.item.is_ours:
            raise HTTPException(404, NO_LEDGER)
        return opened


def page_routes(desk: Desk) -> list[Route]:
    """The routes of the pages."""
    pages = _Pages(desk)
    return [
        Route("/", pages.sessions),
        Route("/sessions/{key}", pages.session),
        Route("/sessions/{key}/turns/{turn}", pages.turn),
        Route("/sessions/{key}/search", pages.search),
        Route("/sessions/{key}/pictures", pages.pictures),
        Route("/sessions/{key}/ledger", pages.ledger),
        Route("/sessions/{key}/requests", pages.requests),
        Route("/sessions/{key}/requests/{request}", pages.request),
        Route("/sessions/{key}/branches/{branch}", pages.branch),
    ]


def _fits(item: Item, query: str) -> bool:
    found = item.candidate
    named = (item.title, found.cwd, found.model, found.format, item.session_id, found.tenant, found.agent)
    text = " ".join(str(part or "") for part in named)
    return query.casefold() in text.casefold()


def _without_children(items: Sequence[Item]) -> list[Item]:
    """Without the sub-agents that can be reached from the session that started them."""
    parents = {(item.candidate.format, item.session_id) for item in items}
    return [item for item in items if (item.candidate.format, item.candidate.subagent_of) not in parents]


def _shown(turns: Sequence[Markup], keys: Sequence[str], where: str, cursor: str | None) -> dict[str, Any]:
    """The turns to show at first, around what was asked for, and those that wait before and behind."""
    if where == "around":
        middle = keys.index(cursor) if cursor in keys else 0
        start = max(0, middle - SHOWN // 4)
    else:
        start = 0 if where in ("head", "after") else max(0, len(turns) - SHOWN)
    return {"lead": turns[:start], "turns": turns[start : start + SHOWN], "rest": turns[start + SHOWN :]}
