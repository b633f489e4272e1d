"""The pages, rendered on the server. They need no script to be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from harness.errors import SessionNotFound
from harness.filesystem import pool
from harness.transcripts import Page
from harness.transcripts.refusing import path_text
from harness.viewer import ledgers
from harness.viewer.branches import branches, key_of_end, piece_of, turns_at
from harness.viewer.days import days_of
from harness.viewer.desk import Desk, asked_for, turns_of
from harness.viewer.pictures import timeline, tokens
from harness.viewer.rows import Row, row_of
from harness.viewer.seen import seen_by
from harness.viewer.shelf import Item

__all__ = ["page_routes"]

SHOWN = 40
"""Turns that a page with a script holds as elements; the others of its window wait."""
_LISTED = 500
_MOST_DIGITS = 9
_BRANCH = 100
"""Turns on one page of a branch."""


class _Pages:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def sessions(self, request: Request) -> Response:
        shelf = await self._desk.shelf(request)
        items = await shelf.items()
        query = request.query_params.get("q", "").strip()
        chosen = [item for item in items if _fits(item, query) and not item.candidate.subagent_of]
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
        found = await self._desk.page(opened.item, where, cursor, min_turns=2)
        return await self._desk.html(
            request,
            "session.html",
            item=opened.item,
            page=_paging(found),
            query=request.query_params.get("q", ""),
            at=request.query_params.get("at", ""),
            place=path_text(opened.item.source) if self._desk.names_places else "",
            **_shown([row_of(turn) for turn in turns_of(found)], where, cursor),
        )

    async def pictures(self, request: Request) -> Response:
        opened = await self._desk.opened(request)
        found = await self._desk.overview(opened.item)
        requests, budget = found["requests"], None
        if opened.item.is_ours:
            ledger = await pool.run(ledgers.open_ledger, opened.item.source)
            requests = [{"usage": row.tokens} for row in ledgers.usage(ledger).rows]
            budget = ledgers.context_window(ledger)
        return await self._desk.html(
            request,
            "pictures.html",
            item=opened.item,
            timeline=timeline(found["moments"]),
            days=days_of(found["moments"], found["requests"], self._desk.zone),
            tokens=tokens(requests, budget),
        )

    async def ledger(self, request: Request) -> Response:
        item = await self._own(request)
        ledger = await pool.run(ledgers.open_ledger, item.source)
        return await self._desk.html(
            request,
            "ledger.html",
            item=item,
            ledger=ledger,
            usage=ledgers.usage(ledger),
            events=ledgers.events(ledger),
            branches=[piece.to_dict() for piece in branches(ledger)],
        )

    async def branch(self, request: Request) -> Response:
        item = await self._own(request)
        ledger = await pool.run(ledgers.open_ledger, item.source)
        piece = piece_of(ledger, request.path_params["branch"])
        lines = frozenset(entry.offset for entry in piece.entries)
        rows = [row_of(turn) for turn in await self._desk.whole(turns_at, item.source, item.session_id, lines)]
        start = _start(request, len(rows))
        return await self._desk.html(
            request,
            "branch.html",
            item=item,
            piece=piece.to_dict(),
            left_at=key_of_end(piece.left) if piece.left else None,
            rows=rows[start : start + _BRANCH],
            earlier=max(0, start - _BRANCH) if start else None,
            later=start + _BRANCH if start + _BRANCH < len(rows) else None,
        )

    async def request(self, request: Request) -> Response:
        item = await self._own(request)
        ledger = await pool.run(ledgers.open_ledger, item.source)
        seen = await pool.run(seen_by, ledger, request.path_params["request"])
        return await self._desk.html(request, "request.html", item=item, seen=seen)

    async def _own(self, request: Request) -> Item:
        item = (await self._desk.opened(request)).item
        if not item.is_ours:
            raise SessionNotFound("this session is of another harness and has no ledger; its turns are all there is")
        return item


def page_routes(desk: Desk) -> list[Route]:
    """The routes of the pages."""
    pages = _Pages(desk)
    return [
        Route("/", pages.sessions),
        Route("/sessions/{key}", pages.session),
        Route("/sessions/{key}/pictures", pages.pictures),
        Route("/sessions/{key}/ledger", pages.ledger),
        Route("/sessions/{key}/requests/{request}", pages.request),
        Route("/sessions/{key}/branches/{branch}", pages.branch),
    ]


def _fits(item: Item, query: str) -> bool:
    found = item.candidate
    named = (item.title, found.cwd, found.model, found.format, item.session_id, found.tenant, found.agent)
    text = " ".join(str(part or "") for part in named)
    return query.casefold() in text.casefold()


def _start(request: Request, count: int) -> int:
    """The first turn to show of `count`, as the query says. Raises a 400 for what is no number."""
    found = request.query_params.get("from", "0")
    if not found.isascii() or not found.isdigit() or len(found) > _MOST_DIGITS:
        raise HTTPException(400)
    return min(int(found), max(0, count - 1))


def _paging(found: Page) -> Mapping[str, Any]:
    return {"before": found.before, "after": found.after, "at_end": found.at_end}


def _shown(rows: Sequence[Row], where: str, cursor: str | None) -> dict[str, Any]:
    """The rows to show at first, around what was asked for, and those that wait before and behind."""
    if where == "around":
        middle = next((at for at, row in enumerate(rows) if row.key == cursor), 0)
        start = max(0, middle - SHOWN // 4)
    else:
        start = 0 if where in ("head", "after") else max(0, len(rows) - SHOWN)
    return {"lead": rows[:start], "rows": rows[start : start + SHOWN], "rest": rows[start + SHOWN :]}
