"""Who asks for much waits for it; who asks beside them does not."""

import asyncio
import sys
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.requests import Request

sys.path.insert(0, str(Path(__file__).parent))
from lines import answer, prompt, write

from harness.viewer import Shelf, viewer_app
from harness.viewer.shelf import Looked, found_in

USER: ContextVar[str] = ContextVar("user")


async def test_of_one_visitor_one_piece_of_a_page_is_made_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, begun = asyncio.Event(), list[str]()

    async def made(make: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        begun.append(USER.get())
        if USER.get() == "greedy":
            await gate.wait()
        return make(*args, **kwargs)

    monkeypatch.setattr("harness.viewer.desk.rendered", made)
    async with client(tmp_path, monkeypatch) as visitor:
        much = [asyncio.create_task(visitor.get("/", headers={"x-user": "greedy"})) for _ in range(6)]
        modest = await visitor.get("/", headers={"x-user": "modest"})
        await asyncio.sleep(0.05)
        assert (modest.status_code, begun.count("greedy")) == (200, 1)
        gate.set()
        assert [each.status_code for each in await asyncio.gather(*much)] == [200] * 6
    assert begun.count("greedy") == 6


def client(folder: Path, monkeypatch: pytest.MonkeyPatch) -> httpx2.AsyncClient:
    """Of a service with a shelf for each of two users."""

    def shelf(user: str) -> Shelf:
        write(folder / user / "s.jsonl", [prompt("hi"), answer("x")])
        return Shelf(lambda: Looked(found_in([folder / user])))

    shelves = {user: shelf(user) for user in ("greedy", "modest")}

    async def whose(request: Request) -> Shelf:
        USER.set(request.headers["x-user"])
        return shelves[request.headers["x-user"]]

    async def looked(look: Callable[[], Looked]) -> Looked:
        return look()

    monkeypatch.setattr("harness.viewer.shelf.in_worker", looked)
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(viewer_app(whose)), base_url="http://service")
