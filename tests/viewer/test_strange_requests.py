"""Requests that no page of ours would send, and visitors who do not wait."""

import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request

sys.path.insert(0, str(Path(__file__).parent))
from test_safety import LINE, TOKEN, client, key_of_the_session, raw

from harness.filesystem import pool
from harness.viewer import local_viewer
from harness.viewer.app import viewer_app
from harness.viewer.leaving import StopsWhenLeft
from harness.viewer.rendering import rendered
from harness.viewer.shelf import Shelf


@pytest.fixture
def app(tmp_path: Path) -> Starlette:
    file = tmp_path / "projects" / "s-1.jsonl"
    file.parent.mkdir()
    file.write_text(LINE)
    return local_viewer([file.parent], token=TOKEN)


@pytest.fixture
async def opened(app: Starlette) -> AsyncIterator[httpx2.AsyncClient]:
    async with client(app) as made:
        made.headers["authorization"] = f"Bearer {TOKEN}"
        yield made


@pytest.mark.parametrize(
    "other",
    ["a=b", 'prefs={"x":1}', "a[b]=c", 'x="unterminated', "$Version=1", "bare", "a=b c", "theme=dark,light", "é=1", ""],
)
async def test_cookies_of_other_programs_lock_nobody_out(app: Starlette, other: str) -> None:
    async with client(app) as visitor:
        traded = await visitor.post("/unlock", content=TOKEN, headers={"origin": "http://127.0.0.1:8000"})
        ours = traded.headers["set-cookie"].partition(";")[0]
        visitor.cookies.clear()
        for line in (f"{other}; {ours}", f"{ours};{other}"):
            answer = await visitor.get("/api/sessions", headers={"cookie": line.encode()})  # type: ignore[dict-item]
            assert answer.status_code == 200
        name = ours.partition("=")[0]
        for line in (f"{name}=wrong", f"x{ours}", f"x={ours}", other):
            answer = await visitor.get("/api/sessions", headers={"cookie": line.encode()})  # type: ignore[dict-item]
            assert answer.status_code == 401


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://127.0.0.1:8000", 204),
        ("https://127.0.0.1:8000", 204),
        ("x://127.0.0.1:8000", 403),
        ("file://127.0.0.1:8000", 403),
        ("http://127.0.0.1:8001", 403),
        ("http://127.0.0.1:8000/", 403),
        ("127.0.0.1:8000", 403),
    ],
)
async def test_the_token_is_traded_for_pages_of_this_server_only(app: Starlette, origin: str, status: int) -> None:
    async with client(app) as visitor:
        answer = await visitor.post("/unlock", content=TOKEN, headers={"origin": origin})
        assert answer.status_code == status


@pytest.mark.parametrize("hosts", [("127.0.0.1", "evil.invalid"), ("evil.invalid", "127.0.0.1")])
async def test_a_request_that_names_two_hosts_is_refused(app: Starlette, hosts: tuple[str, str]) -> None:
    async with client(app) as visitor:
        headers = [*(("host", host) for host in hosts), ("authorization", f"Bearer {TOKEN}")]
        assert (await visitor.get("/api/sessions", headers=headers)).status_code == 400


CURSORS = ["b²", "b٣", "r0", "b-1", "x", "b" + "9" * 400, "b1~p~x~y", "~" * 400, "b" * 501]


@pytest.mark.parametrize("cursor", CURSORS)
@pytest.mark.parametrize(
    "place", ["search?q=a&cursor={}", "turns?where=after&cursor={}", "turns?before={}", "turns?at={}"]
)
async def test_a_place_that_is_none_is_said_to_be_none(opened: httpx2.AsyncClient, place: str, cursor: str) -> None:
    key = await key_of_the_session(opened)
    answer = await opened.get(f"/api/sessions/{key}/{place.format(cursor)}")
    if (place, cursor) == ("turns?at={}", "r0"):
        assert answer.status_code == 200  # a key of a row is no cursor, and a key
        return
    assert (answer.status_code, set(answer.json())) == (400, {"error", "code"})


@pytest.mark.parametrize("ref", ["b" + "9" * 400 + ".0", "b1." + "9" * 400, "r1-" + "9" * 300 + ".1", "b٣.٣", "b0.0"])
async def test_a_picture_that_is_none_is_not_found(opened: httpx2.AsyncClient, ref: str) -> None:
    key = await key_of_the_session(opened)
    assert (await opened.get(f"/sessions/{key}/media", params={"ref": ref})).status_code == 404


@pytest.mark.parametrize("path", ["/", "/api/sessions"])
async def test_a_fault_of_ours_is_answered_as_safely_as_anything(path: str) -> None:
    async def broken(_: Request) -> Shelf | None:
        raise ZeroDivisionError("/srv/secret-place")

    transport = httpx2.ASGITransport(viewer_app(broken), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as visitor:
        answer = await visitor.get(path)
    assert answer.status_code == 500
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "secret-place" not in answer.text
    assert (path == "/") == answer.headers["content-type"].startswith("text/html")


async def test_what_was_begun_for_a_visitor_who_left_is_stopped() -> None:
    began, stopped, left = asyncio.Event(), asyncio.Event(), asyncio.Event()
    sent: list[object] = []

    async def slow(*_: object) -> None:
        began.set()
        try:
            await asyncio.sleep(600)
        finally:
            stopped.set()

    async def receive() -> dict[str, object]:
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: object) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET"}
    served = asyncio.create_task(StopsWhenLeft(slow)(scope, receive, send))  # type: ignore[arg-type]
    await began.wait()
    left.set()
    await asyncio.wait_for(served, 30)
    assert stopped.is_set()
    assert sent == []


async def test_searches_that_were_given_up_keep_nobody_waiting(tmp_path: Path) -> None:
    file = tmp_path / "s-1.jsonl"
    record = json.loads(LINE)
    file.write_text("".join(json.dumps({**record, "uuid": f"u{number}"}) + "\n" for number in range(60_000)))
    app = local_viewer([tmp_path], token=None)
    async with client(app) as visitor:
        key = await key_of_the_session(visitor)

        async def gone() -> dict[str, str]:
            await asyncio.sleep(0.05)
            return {"type": "http.disconnect"}

        async def unsent(_: object) -> None:
            raise AssertionError("nobody is there to be answered")

        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
            "path": f"/api/sessions/{key}/search", "raw_path": b"", "query_string": b"q=zz", "root_path": "",
            "headers": [(b"host", b"127.0.0.1:8000")], "client": ("127.0.0.1", 5), "server": ("127.0.0.1", 8000),
        }  # fmt: skip
        await asyncio.gather(*(app(dict(scope), gone, unsent) for _ in range(12)))  # type: ignore[arg-type]
        assert (await visitor.get(f"/sessions/{key}")).status_code == 200


async def test_pages_are_made_in_threads_of_their_own() -> None:
    done = threading.Event()
    pages = [asyncio.create_task(rendered(done.wait)) for _ in range(12)]
    await asyncio.sleep(0.1)
    try:
        assert await asyncio.wait_for(pool.run(len, "abc"), 30) == 3
    finally:
        done.set()
    assert await asyncio.gather(*pages) == [True] * 12


async def test_a_request_with_a_body_that_nobody_reads_is_answered(app: Starlette) -> None:
    status, _, _ = await raw(app, "GET", "/api/sessions", {"Host": "127.0.0.1", "Authorization": f"Bearer {TOKEN}"})
    assert status == 200


@pytest.mark.parametrize("below", ["ledger", "requests", "requests/r1", "branches/b1"])
async def test_what_only_a_ledger_has_is_refused_with_the_reason(opened: httpx2.AsyncClient, below: str) -> None:
    answer = await opened.get(f"/api/sessions/{await key_of_the_session(opened)}/{below}")
    assert answer.status_code == 404
    assert "has no ledger" in answer.json()["error"]


async def test_a_window_that_cannot_be_is_refused_with_those_that_can(opened: httpx2.AsyncClient) -> None:
    answer = await opened.get(f"/api/sessions/{await key_of_the_session(opened)}/turns", params={"where": "bogus"})
    assert answer.status_code == 400
    assert all(name in answer.json()["error"] for name in ("tail", "head", "before", "after", "around"))
