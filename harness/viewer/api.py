"""The JSON twins of the pages, for embedders and for the pages' own script. Keys camelCase, absent, never null."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from harness.errors import SessionNotFound
from harness.filesystem import pool
from harness.transcripts import in_worker
from harness.viewer import ledgers
from harness.viewer.desk import Child, Desk, asked_for, json_answer, turns_of
from harness.viewer.searching import MAX_QUERY, search
from harness.viewer.seen import seen_by
from harness.viewer.shelf import Item

__all__ = ["api_routes"]


_CONTEXT = ("request", "purpose", "provider", "model", "options", "system", "tools", "messages", "exact")


class _Api:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def sessions(self, request: Request) -> Response:
        items = await (await self._desk.shelf(request)).items()
        return json_answer({"sessions": [self._listed(item) for item in items]})

    async def session(self, request: Request) -> Response:
        opened = await self._desk.opened(request)
        found = await self._desk.overview(opened.item)
        children = await self._desk.children(opened, found["head"])
        shown = [{name: value for name, value in child._asdict().items() if value} for child in children]
        document = {"key": opened.item.key, "title": opened.item.title, **found, "children": shown}
        if request.query_params.get("html"):
            document["html"] = await self._summary(request, opened.item, found, children)
        return json_answer(document)

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
        return json_answer(await in_worker(search, opened.item.source, opened.item.session_id, query, cursor))

    async def ledger(self, request: Request) -> Response:
        ledger = await self._ledger(request)
        return json_answer(
            {
                "ok": ledger.ok,
                "findings": [finding.to_dict() for finding in ledger.findings],
                "usage": ledgers.usage(ledger).to_dict(rows=True),
                "events": ledgers.events(ledger),
                "branches": ledgers.branches(ledger),
            }
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
            prompts=found["outline"]["prompts"],
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
    ]
