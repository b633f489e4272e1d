"""The JSON twins of the pages, for embedders and for the pages' own script. Keys camelCase, absent, never null."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from harness.viewer import audits
from harness.viewer.branches import turns_at
from harness.viewer.desk import (
    NO_LEDGER,
    Child,
    Desk,
    Opened,
    asked_for,
    block_asked_for,
    json_answer,
    number_asked_for,
    words_asked_for,
)
from harness.viewer.rows import row_of
from harness.viewer.shelf import Item
from harness.viewer.shown import cut, printed
from harness.viewer.window import rest

__all__ = ["api_routes"]


_OUTLINED = 5_000
"""Prompts that a page lists, the newest ones."""
_MARKED = 200
"""Lines in front of a request that are told at a time."""
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
        outline = {**found["outline"], "prompts": prompts}
        html = await self._summary(request, opened.item, found, children)
        named = [{name: str(printed(value)) for name, value in _told(child).items()} for child in children]
        return json_answer({"outline": outline, "children": named, "html": html})

    async def counting(self, request: Request) -> Response:
        opened = await self._desk.opened(request)
        found = self._desk.counting(opened)
        return json_answer({} if found is None else {"done": found[0], "total": found[1]})

    async def turns(self, request: Request) -> Response:
        opened = await self._desk.opened(request)
        where, cursor = asked_for(request)
        found = await self._desk.window(opened, where, cursor)
        if not request.query_params.get("html"):
            return json_answer(found)
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
        opened, start = await self._own(request), number_asked_for(request)
        audit = await self._desk.whole(opened, audits.audit, start)
        if request.query_params.get("html"):
            shown = {"key": opened.item.key, "audit": audit, "start": start}
            html = await self._desk.piece(request, "audit.html", **shown)
            return json_answer({"html": html, "decisions": await self._desk.piece(request, "decisions.html", **shown)})
        found = await self._desk.read(opened, audits.requests, "tail", None)
        return json_answer({**audit, "usage": {**audit["usage"], **found}})

    async def requests(self, request: Request) -> Response:
        opened = await self._own(request)
        return json_answer(await self._desk.read(opened, audits.requests, *asked_for(request)))

    async def branch(self, request: Request) -> Response:
        opened = await self._own(request)
        piece, lines, _ = await self._desk.whole(opened, audits.branch, request.path_params["branch"])
        return json_answer({**piece, "turns": await self._desk.whole(opened, turns_at, lines)})

    async def request(self, request: Request) -> Response:
        opened, start = await self._own(request), number_asked_for(request)
        seen = await self._desk.whole(opened, audits.seen, request.path_params["request"], start, 0, _MARKED)
        left_out = max(0, seen.counts[1] - start - len(seen.marks))
        return json_answer(
            {
                "at": seen.at,
                "policy": seen.policy,
                **{name: getattr(seen.context, name) for name in _CONTEXT},
                "log": [{"key": key, "sent": sent} for key, sent in seen.marks],
                **({"logLeftOut": left_out} if left_out else {}),
                **({"selection": [choice.to_dict() for choice in seen.choices]} if seen.choices else {}),
            }
        )

    async def _own(self, request: Request) -> Opened:
        opened = await self._desk.opened(request)
        if not opened.item.is_ours:
            raise HTTPException(404, NO_LEDGER)
        return opened

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
        Route("/api/sessions/{key}/counting", api.counting),
        Route("/api/sessions/{key}/turns", api.turns),
        Route("/api/sessions/{key}/turns/{turn}", api.turn),
        Route("/api/sessions/{key}/search", api.search),
        Route("/api/sessions/{key}/ledger", api.ledger),
        Route("/api/sessions/{key}/requests", api.requests),
        Route("/api/sessions/{key}/requests/{request}", api.request),
        Route("/api/sessions/{key}/branches/{branch}", api.branch),
    ]


def _told(child: Child) -> dict[str, str]:
    return {name: cut(value) for name, value in child._asdict().items() if value}


def _without_places(head: dict[str, Any]) -> dict[str, Any]:
    """A head that says which sub-agents there are, and not where on this machine."""
    agents = [{name: value for name, value in agent.items() if name != "source"} for agent in head["subagents"]]
    return {**head, "subagents": agents}
