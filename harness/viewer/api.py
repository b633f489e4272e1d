"""The JSON twins of the pages, for embedders and for the pages' own script. Keys camelCase, absent, never null."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from harness.errors import ConfigError, SessionNotFound, TranscriptRefused
from harness.filesystem import pool
from harness.viewer import ledgers
from harness.viewer.branches import branches, piece_of, turns_at
from harness.viewer.desk import MAX_CURSOR, NO_PLACE, Child, Desk, asked_for, json_answer, turns_of
from harness.viewer.searching import MAX_QUERY, search
from harness.viewer.seen import seen_by
from harness.viewer.shelf import Item

__all__ = ["api_routes"]


_OUTLINED = 5_000
"""Prompts that a page lists, the newest ones."""
_CONTEXT = ("request", "purpose", "provider", "model", "options", "system", "tools", "messages", "exact")


class _Api:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def sessions(self, request: Request) -> Response:
        shelf = await self._desk.shelf(request)
        listed = [self._listed(item) for item in await shelf.items()]
        return json_answer({"sessions": listed, **({"note": shelf.note} if shelf.note else {})})

    async def session(self, request: Request) -> Response:
        opened = await self._desk.opened(request)
        found = await self._desk.overview(opened.item)
        children = await self._desk.children(opened, found["head"])
        shown = [{name: value for name, value in child._asdict().items() if value} for child in children]
        if not request.query_params.get("html"):
            return json_answer({"key": opened.item.key, "title": opened.item.title, **found, "children": shown})
        # The page's script needs no more than where the turns are: of a long session the rest is many megabytes.
        prompts = [{"key": prompt["key"]} for prompt in found["outline"]["prompts"]]
        outline = {"keys": found["outline"]["keys"], "prompts": prompts}
        html = await self._summary(request, opened.item, found, children)
        return json_answer({"outline": outline, "children": shown, "html": html})

    async def turns(self, request: Request) -> Response:
        opened = await self._desk.opened(request)
        where, cursor = asked_for(request)
        found = await self._desk.page(opened.item, where, cursor)
        if not request.query_params.get("html"):
            return json_answer(found.to_dict())
        turns = turns_of(found)
        pieces = await self._desk.pieces(request, opened, turns)
        paging = {name: value for name, value in found.to_dict().items() if name != "turns"}
        shown = [{"key": turn["key"], "html": html} for turn, html in zip(turns, pieces, strict=True)]
        return json_answer({**paging, "turns": shown})

    async def search(self, request: Request) -> Response:
        opened = await self._desk.opened(request)
        query = request.query_params.get("q", "").strip()
        if not query or len(query) > MAX_QUERY:
            raise HTTPException(400)
        cursor = request.query_params.get("cursor") or None
        if len(cursor or "") > MAX_CURSOR:
            raise HTTPException(400, NO_PLACE)
        try:
            found = await self._desk.whole(search, opened.item.source, opened.item.session_id, query, cursor)
        except TranscriptRefused:
            raise
        except ConfigError as error:
            raise HTTPException(400, NO_PLACE) from error
        return json_answer(found)

    async def ledger(self, request: Request) -> Response:
        ledger = await self._ledger(request)
        return json_answer(
            {
                "ok": ledger.ok,
                "findings": [finding.to_dict() for finding in ledger.findings],
                "usage": ledgers.usage(ledger).to_dict(rows=True),
                "events": ledgers.events(ledger),
                "branches": [piece.to_dict() for piece in branches(ledger)],
            }
        )

    async def branch(self, request: Request) -> Response:
        item = (await self._desk.opened(request)).item
        piece = piece_of(await self._ledger(request), request.path_params["branch"])
        lines = frozenset(entry.offset for entry in piece.entries)
        return json_answer(
            {**piece.to_dict(), "turns": await self._desk.whole(turns_at, item.source, item.session_id, lines)}
        )

    async def request(self, request: Request) -> Response:
        ledger = await self._ledger(request)
        seen = await pool.run(seen_by, ledger, request.path_params["request"])
        return json_answer(
            {
                "at": seen.at,
                "policy": seen.policy,
                **{name: getattr(seen.context, name) for name in _CONTEXT},
                "log": [{"key": line.row.key, "sent": line.sent} for line in seen.log],
                **({"selection": [choice.to_dict() for choice in seen.choices]} if seen.choices else {}),
            }
        )

    async def _ledger(self, request: Request) -> ledgers.Ledger:
        item = (await self._desk.opened(request)).item
        if not item.is_ours:
            raise SessionNotFound("this session is of another harness and has no ledger; its turns are all there is")
        return await pool.run(ledgers.open_ledger, item.source)

    async def _summary(self, request: Request, item: Item, found: dict[str, Any], children: Sequence[Child]) -> str:
        return await self._desk.piece(
            request,
            "summary.html",
            key=item.key,
            head=found["head"],
            stats=found["stats"],
            warnings=found["warnings"],
            prompts=found["outline"]["prompts"][-_OUTLINED:],
            earlier=max(0, len(found["outline"]["prompts"]) - _OUTLINED),
            files=found["head"].get("files", ()),
            cost=found.get("cost"),
            children=children,
        )

    def _listed(self, item: Item) -> dict[str, Any]:
        fields = item.candidate.to_dict()
        if not self._desk.names_places:
            fields.pop("path", None)
        return {"key": item.key, **fields}


def api_routes(desk: Desk) -> list[Route]:
    """The routes below `/api`."""
    api = _Api(desk)
    return [
        Route("/api/sessions", api.sessions),
        Route("/api/sessions/{key}", api.session),
        Route("/api/sessions/{key}/turns", api.turns),
        Route("/api/sessions/{key}/search", api.search),
        Route("/api/sessions/{key}/ledger", api.ledger),
        Route("/api/sessions/{key}/requests/{request}", api.request),
        Route("/api/sessions/{key}/branches/{branch}", api.branch),
    ]
