"""Every route that works in a worker process does so in a place of its visitor's share, and one visitor has not all."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.requests import Request
from starlette.routing import Route

sys.path.insert(0, str(Path(__file__).parent))
from conversations import branched

from harness.transcripts import worker
from harness.viewer import Shelf, viewer_app
from harness.viewer.shelf import listed_in

USER: ContextVar[str] = ContextVar("user")
ROUTES = {
    "/": "/",
    "/sessions/{key}": "/sessions/{key}",
    "/sessions/{key}/turns/{turn}": "/sessions/{key}/turns/{turn}",
    "/sessions/{key}/search": "/sessions/{key}/search?q=alice",
    "/sessions/{key}/pictures": "/sessions/{key}/pictures",
    "/sessions/{key}/ledger": "/sessions/{key}/ledger",
    "/sessions/{key}/requests": "/sessions/{key}/requests",
    "/sessions/{key}/requests/{request}": "/sessions/{key}/requests/{request}",
    "/sessions/{key}/branches/{branch}": "/sessions/{key}/branches/{branch}",
    "/sessions/{key}/media": "/sessions/{key}/media?ref={turn}.0",
    "/api/sessions": "/api/sessions",
    "/api/sessions/{key}": "/api/sessions/{key}",
    "/api/sessions/{key}/turns": "/api/sessions/{key}/turns",
    "/api/sessions/{key}/turns/{turn}": "/api/sessions/{key}/turns/{turn}",
    "/api/sessions/{key}/search": "/api/sessions/{key}/search?q=alice",
    "/api/sessions/{key}/ledger": "/api/sessions/{key}/ledger",
    "/api/sessions/{key}/requests": "/api/sessions/{key}/requests",
    "/api/sessions/{key}/requests/{request}": "/api/sessions/{key}/requests/{request}",
    "/api/sessions/{key}/branches/{branch}": "/api/sessions/{key}/branches/{branch}",
}
"""The routes that ask a worker, each with an address at which it does."""
OTHERS = {"/sessions/{key}/raw", "/api/sessions/{key}/counting"}
"""Those that ask none, once the session was found."""


class Places:
    """A number of places, which says whether the task that asks is in one."""

    def __init__(self, inner: asyncio.Semaphore) -> None:
        self._inner = inner
        self.taken = 0

    async def __aenter__(self) -> None:
        await self._inner.acquire()
        self.taken += 1

    async def __aexit__(self, *_: object) -> None:
        self.taken -= 1
        self._inner.release()


class Service:
    """Users with a shelf each over the same folder; counts the jobs that are at a worker, and where they came from."""

    def __init__(self, folder: Path, *users: str) -> None:
        self.shelves = {user: Shelf(partial(listed_in, (folder,))) for user in users}
        for shelf in self.shelves.values():
            shelf.share.pages, shelf.share.whole = Places(shelf.share.pages), Places(shelf.share.whole)  # type: ignore[assignment]
        self.app = viewer_app(self._whose)
        self.asked: list[bool] = []
        self.at_work = dict.fromkeys(users, 0)
        self.gate = asyncio.Event()
        self.gate.set()

    async def _whose(self, request: Request) -> Shelf:
        USER.set(request.headers["x-user"])
        return self.shelves[request.headers["x-user"]]

    @contextmanager
    def watched(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx2.AsyncClient]:
        real: Callable[..., Any] = worker._worked

        async def work(job: object) -> Any:
            share = self.shelves[USER.get()].share
            self.asked.append(bool(share.pages.taken + share.whole.taken))  # type: ignore[attr-defined]
            self.at_work[USER.get()] += 1
            if USER.get() == "greedy":
                await self.gate.wait()
            self.at_work[USER.get()] -= 1
            return await real(job)

        monkeypatch.setattr(worker, "_worked", work)
        yield httpx2.AsyncClient(transport=httpx2.ASGITransport(self.app), base_url="http://service")


async def addresses(visitor: httpx2.AsyncClient, user: str) -> dict[str, str]:
    """An address for each route: its parts as the viewer itself names them."""
    who = {"x-user": user}
    key = (await visitor.get("/api/sessions", headers=who)).json()["sessions"][0]["key"]
    turn = (await visitor.get(f"/api/sessions/{key}/turns", headers=who)).json()["turns"][0]["key"]
    ledger = (await visitor.get(f"/api/sessions/{key}/ledger", headers=who)).json()
    request, branch = ledger["usage"]["requests"][0]["request"], ledger["branches"][0]["id"]
    parts = {"key": key, "turn": turn, "request": request, "branch": branch}
    return {route: address.format(**parts) for route, address in ROUTES.items()}


def test_each_route_is_known_here() -> None:
    routes = [route for route in viewer_app(lambda _: None).routes if isinstance(route, Route)]
    assert {route.path for route in routes} == {*ROUTES, *OTHERS}


async def test_each_route_works_in_a_place_of_its_visitors_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await branched(tmp_path)
    service = Service(tmp_path, "alice")
    with service.watched(monkeypatch) as visitor:
        where = await addresses(visitor, "alice")
        # Each route has to ask anew, also for what another one found.
        monkeypatch.setattr("harness.viewer.shelf._FRESH", -1.0)
        monkeypatch.setattr("harness.viewer.counts.Counts.known", nothing_known)
        for route, address in where.items():
            service.asked.clear()
            answer = await visitor.get(address, headers={"x-user": "alice"})
            assert (route, answer.status_code) == (route, 404 if "media" in route else 200)
            assert (route, set(service.asked)) == (route, {True})


async def nothing_known(*_: object) -> None:
    return None


async def test_one_visitor_leaves_a_worker_to_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await branched(tmp_path)
    service = Service(tmp_path, "greedy", "modest")
    with service.watched(monkeypatch) as visitor:
        where = await addresses(visitor, "greedy")
        service.gate.clear()
        flood = [asyncio.create_task(visitor.get(each, headers={"x-user": "greedy"})) for each in [*where.values()] * 4]
        while service.at_work["greedy"] < 5:
            await asyncio.sleep(0)
        modest = await visitor.get(where["/api/sessions/{key}/turns"], headers={"x-user": "modest"})
        assert (modest.status_code, service.at_work["greedy"]) == (200, 5)
        assert worker._THREADS > 5
        service.gate.set()
        assert {each.status_code for each in await asyncio.gather(*flood)} <= {200, 404}
