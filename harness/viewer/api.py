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
from harness.filesystem.confined import inside
from harness.viewer import ledgers
from harness.viewer.branches import branches, piece_of, turns_at
from harness.viewer.desk import Child, Desk, asked_for, block_asked_for, json_answer, words_asked_for
from harness.viewer.rows import row_of
from harness.viewer.seen import seen_by
from harness.viewer.shelf import Item
from harness.viewer.shown import cut, printed
from harness.viewer.window import rest

__all__ = ["api_routes"]


_OUTLINED = 5_000
"""Prompts that a page lists, the newest ones."""
_OF_A_TURN = ("key", "kind", "at")
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
        found = await self._desk.overview(opened)
        children = await self._desk.children(opened, found["head"])
        if not self._desk.names_places:
            found["head"] = _without_places(found["head"])
        if not request.query_params.get("html"):
            shown = [_told(child) for child in children]
            return json_answer({"key": opened.item.key, "title": cut(opened.item.title), **found, "children": shown})
        # The page's script needs no more than where the turns are: of a long session the rest is many megabytes.
        prompts = [{"key": prompt["key"]} for prompt in found["outline"]["prompts"]]
        outline = {"keys": found["outline"]["keys"], "prompts": prompts}
        html = await self._summary(request, opened.item, found, children)
        named = [{name: str(printed(value)) for name, value in _told(child).items()} for child in children]
        return json_answer({"outline": outline, "children": named, "html": html})

    async def turns(self, request: Request) -> Response:
        opened = await self._desk.opened(request)
        where, cursor = asked_for(request)
        if not request.query_params.get("html"):
            return json_answer(await self._desk.window(opened, where, cursor, whole=True))
        found = await self._desk.window(opened, where, cursor)
        pieces = await self._desk.pieces(request, opened.item, found["turns"])
        shown = [
            {**{name: turn[name] for name in _OF_A_TURN if name in turn}, "html": html}
            for turn, html in zip(found["turns"], pieces, strict=True)
        ]
        # Ids and faults are as the file has them: what a script puts into a page is only what is made for one.
        paging = {name: value for name, value in found.items() if name not in ("sessionId", "warnings")}
        return json_answer({**paging, "turns": shown})

    async def turn(self, request: Request) -> Response:
        opened = await self._desk.opened(request)
        found = await self._desk.read(opened, rest, *block_asked_for(request))
        if not request.query_params.get("html"):
            return json_answer(found)
        row = row_of(found)
        html = await self._desk.piece(request, "parts.html", row=row, key=opened.item.key)
        return json_answer({"html": html})

    async def search(self, request: Request) -> Response:
        opened = await self._desk.opened(request)
        query, cursor = words_asked_for(request)
        if not query:
            raise HTTPException(400)
        return json_answer(await self._desk.search(opened, query, cursor))

    async def ledger(self, request: Request) -> Response:
        ledger = await self._ledger(request)
        return json_answer(
            {
                "ok": ledger.report.ok,
                "findings": [finding.to_dict() for finding in ledger.report.findings],
                "usage": ledgers.usage(ledger).to_dict(rows=True),
                "events": ledgers.events(ledger),
                "branches": [piece.to_dict() for piece in branches(ledger)],
            }
        )

    async def branch(self, request: Request) -> Response:
        opened = await self._desk.opened(request)
        piece = piece_of(await self._ledger(request), request.path_params["branch"])
        lines = frozenset(entry.offset for entry in piece.entries)
        return json_answer({**piece.to_dict(), "turns": await self._desk.whole(opened, turns_at, lines)})

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
        return await pool.run(inside, item.folder, ledgers.open_ledger, item.source)

    async def _summary(self, request: Request, item: Item, found: dict[str, Any], children: Sequence[Child]) -> str:
        return await self._desk.piece(
            request,
            "summary.html",
            key=item.key,
            head=found["head"],
            stats=found["stats"],
            warnings=found["warnings"],
            warned=len(found["warnings"]) + found.get("warningsLeftOut", 0),
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
        short = {name: cut(value) if isinstance(value, str) else value for name, value in fields.items()}
        return {"key": item.key, **short}


def api_routes(desk: Desk) -> list[Route]:
    """The routes below `/api`."""
    api = _Api(desk)
    return [
        Route("/api/sessions", api.sessions),
        Route("/api/sessions/{key}", api.session),
        Route("/api/sessions/{key}/turns", api.turns),
        Route("/api/sessions/{key}/turns/{turn}", api.turn),
        Route("/api/sessions/{key}/search", api.search),
        Route("/api/sessions/{key}/ledger", api.ledger),
        Route("/api/sessions/{key}/requests/{request}", api.request),
        Route("/api/sessions/{key}/branches/{branch}", api.branch),
    ]


def _told(child: Child) -> dict[str, str]:
    return {name: cut(value) for name, value in child._asdict().items() if value}


def _without_places(head: dict[str, Any]) -> dict[str, Any]:
    """A head that says which sub-agents there are, and not where on this machine."""
    agents = [{name: value for name, value in agent.items() if name != "source"} for agent in head["subagents"]]
    return {**head, "subagents": agents}
