"""Who may ask, from where, and what a browser may do with the answer."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from harness.viewer import local_viewer

TOKEN = "a-token-for-tests"
LINE = (
    '{"type":"user","uuid":"u1","sessionId":"s-1","timestamp":"2026-03-02T09:00:00.000Z","cwd":"/srv/secret-place",'
    '"message":{"role":"user","content":"the secret prompt"}}\n'
)


@pytest.fixture
def session(tmp_path: Path) -> Path:
    file = tmp_path / "projects" / "s-1.jsonl"
    file.parent.mkdir()
    file.write_text(LINE * 1)
    return file


def link_to(link: Path, outside: Path, text: str) -> None:
    outside.write_text(text)
    link.symlink_to(outside)


def rewrite(file: Path, text: str) -> None:
    file.write_text(text)


def remove(file: Path) -> None:
    file.unlink()


def contents(folder: Path) -> dict[str, str]:
    return {str(each.relative_to(folder)): each.read_text() for each in folder.rglob("*")}


@asynccontextmanager
async def client(app: Starlette, base: str = "http://127.0.0.1:8000") -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=base) as made:
        yield made


@pytest.fixture
async def opened(session: Path) -> AsyncIterator[httpx2.AsyncClient]:
    async with client(local_viewer([session.parent], token=TOKEN)) as made:
        made.headers["authorization"] = f"Bearer {TOKEN}"
        yield made


async def key_of_the_session(opened: httpx2.AsyncClient) -> str:
    return str((await opened.get("/api/sessions")).json()["sessions"][0]["key"])


async def test_a_stranger_sees_a_door_and_no_session(session: Path) -> None:
    async with client(local_viewer([session.parent], token=TOKEN)) as stranger:
        start = await stranger.get("/")
        listing = await stranger.get("/api/sessions")
        page = await stranger.get("/sessions/0123456789abcdef")
    assert (start.status_code, listing.status_code, page.status_code) == (200, 401, 401)
    assert "secret" not in start.text + listing.text + page.text


async def test_the_token_is_traded_for_a_cookie_that_scripts_cannot_read(session: Path) -> None:
    async with client(local_viewer([session.parent], token=TOKEN)) as visitor:
        traded = await visitor.post("/unlock", content=TOKEN, headers={"origin": "http://127.0.0.1:8000"})
        cookie = traded.headers["set-cookie"]
        assert (traded.status_code, "HttpOnly" in cookie, "SameSite=strict" in cookie) == (204, True, True)
        assert "the secret prompt" in (await visitor.get("/")).text


@pytest.mark.parametrize("given", ["wrong", "", TOKEN + "x", "x" * 10_000])
async def test_another_token_opens_nothing(session: Path, given: str) -> None:
    async with client(local_viewer([session.parent], token=TOKEN)) as visitor:
        traded = await visitor.post("/unlock", content=given, headers={"origin": "http://127.0.0.1:8000"})
        assert (traded.status_code, traded.headers.get("set-cookie")) == (403, None)
        visitor.headers["authorization"] = f"Bearer {given}".strip()
        assert (await visitor.get("/api/sessions")).status_code == 401


async def test_the_token_of_a_foreign_page_is_not_traded(session: Path) -> None:
    async with client(local_viewer([session.parent], token=TOKEN)) as visitor:
        for headers in ({"origin": "https://evil.invalid"}, {"origin": "null"}, {}):
            assert (await visitor.post("/unlock", content=TOKEN, headers=headers)).status_code == 403


@pytest.mark.parametrize("typed", [TOKEN, f" {TOKEN} ", f"http://127.0.0.1:8000/#token={TOKEN}"])
async def test_the_token_is_traded_by_a_form_for_who_has_no_script(session: Path, typed: str) -> None:
    async with client(local_viewer([session.parent], token=TOKEN)) as visitor:
        door = await visitor.get("/")
        # Without it a browser names no origin with the form.
        assert door.headers["referrer-policy"] == "same-origin"
        assert '<form class="find" method="post" action="/unlock">' in door.text
        headers = {"origin": "http://127.0.0.1:8000"}
        traded = await visitor.post("/unlock", data={"token": typed}, headers=headers)
        assert (traded.status_code, traded.headers["location"]) == (303, "/")
        assert "HttpOnly" in traded.headers["set-cookie"]
        assert "the secret prompt" in (await visitor.get("/")).text


async def test_a_form_with_another_token_is_told_so_and_one_of_a_foreign_page_is_refused(session: Path) -> None:
    async with client(local_viewer([session.parent], token=TOKEN)) as visitor:
        headers = {"origin": "http://127.0.0.1:8000"}
        wrong = await visitor.post("/unlock", data={"token": "another"}, headers=headers)
        foreign = await visitor.post("/unlock", data={"token": TOKEN}, headers={"origin": "https://evil.invalid"})
    assert (wrong.status_code, "set-cookie" in wrong.headers) == (403, False)
    assert "That is not the token of the running server." in wrong.text
    assert (foreign.status_code, "set-cookie" in foreign.headers) == (403, False)


async def test_every_answer_keeps_the_browser_from_running_or_loading_anything(opened: httpx2.AsyncClient) -> None:
    key = await key_of_the_session(opened)
    paths = ("/", f"/sessions/{key}", f"/api/sessions/{key}", "/nothing", f"/sessions/{key}/raw", "/static/rows.js")
    for path in paths:
        headers = (await opened.get(path)).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers


async def test_pages_hold_no_inline_script_and_no_inline_style(opened: httpx2.AsyncClient) -> None:
    key = await key_of_the_session(opened)
    for path in ("/", f"/sessions/{key}", f"/sessions/{key}/pictures"):
        text = (await opened.get(path)).text
        assert "<style" not in text
        assert " style=" not in text
        assert "<script>" not in text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
async def test_the_viewer_changes_nothing(opened: httpx2.AsyncClient, session: Path, method: str) -> None:
    key = await key_of_the_session(opened)
    for path in ("/", f"/sessions/{key}", f"/api/sessions/{key}", f"/api/sessions/{key}/delete"):
        answer = await opened.request(method, path, headers={"origin": "http://127.0.0.1:8000"})
        assert answer.status_code in (404, 405)
    assert contents(session.parent) == {"s-1.jsonl": LINE}


async def test_reading_leaves_every_file_as_it_was(opened: httpx2.AsyncClient, session: Path) -> None:
    key = await key_of_the_session(opened)
    for path in ("/", f"/sessions/{key}", f"/api/sessions/{key}", f"/api/sessions/{key}/turns", f"/sessions/{key}/raw"):
        assert (await opened.get(path)).status_code == 200
    assert contents(session.parent) == {"s-1.jsonl": LINE}


async def test_a_link_does_not_lead_out_of_the_opened_place(tmp_path: Path, session: Path) -> None:
    link_to(session.parent / "linked.jsonl", tmp_path / "outside.jsonl", LINE.replace("the secret", "somebody else's"))
    async with client(local_viewer([session.parent], token=None)) as visitor:
        assert "somebody else" not in (await visitor.get("/")).text


async def test_errors_name_no_place_on_this_machine(opened: httpx2.AsyncClient, session: Path) -> None:
    key = await key_of_the_session(opened)
    remove(session)
    for path in (f"/sessions/{key}", f"/api/sessions/{key}", f"/sessions/{key}/raw", f"/api/sessions/{key}/turns"):
        answer = await opened.get(path)
        assert 400 <= answer.status_code < 500
        assert str(session.parent) not in answer.text


async def test_json_can_do_nothing_even_as_a_page(opened: httpx2.AsyncClient, session: Path) -> None:
    rewrite(session, LINE.replace("the secret prompt", "</script><script>x&y\u2028"))
    answer = await opened.get(f"/api/sessions/{await key_of_the_session(opened)}/turns")
    assert not {"<", ">", "&", "\u2028"} & set(answer.text)
    assert answer.json()["turns"][0]["content"][0]["text"] == "</script><script>x&y\u2028"


@pytest.mark.parametrize("query", ["where=nowhere", "where=after&cursor=" + "x" * 600])
async def test_an_odd_query_is_refused_in_a_sentence(opened: httpx2.AsyncClient, query: str) -> None:
    answer = await opened.get(f"/api/sessions/{await key_of_the_session(opened)}/turns?{query}")
    assert answer.status_code == 400
    assert answer.json()["error"].endswith(".")


async def test_mounted_below_another_path_addresses_and_cookies_stay_there(session: Path) -> None:
    app = Starlette(routes=[Mount("/traces", local_viewer([session.parent], token=TOKEN))])
    async with client(app) as visitor:
        assert "Locked" in (await visitor.get("/traces/")).text
        traded = await visitor.post("/traces/unlock", content=TOKEN, headers={"origin": "http://127.0.0.1:8000"})
        assert "Path=/traces/" in traded.headers["set-cookie"]
        page = (await visitor.get("/traces/")).text
        assert 'href="/traces/sessions/' in page
        assert (await visitor.get("/traces/static/viewer.css")).status_code == 200


REFUSED = frozenset(range(400, 500))
WANTED = {
    "ok": {200},
    "ok-or-refuse": {200} | REFUSED,
    "refuse": REFUSED,
    "ok-without-CORS-grant": {200},
    "no-CORS-grant": {200, 204} | REFUSED,
    "not-found": {404},
    "not-found, id escaped": {404},
}


@pytest.mark.parametrize("with_token", [True, False])
async def test_the_requests_of_foreign_pages_get_what_the_case_says(
    shared: Path, session: Path, with_token: bool
) -> None:
    app = local_viewer([session.parent], token=TOKEN)
    answers = []
    for case in json.loads((shared / "cases/B36/requests.json").read_text()):
        headers = {name: value.replace("{PORT}", "8000") for name, value in case["h"].items()}
        if with_token:
            headers["Authorization"] = f"Bearer {TOKEN}"
        status, sent, body = await raw(app, case["m"], case["p"], headers)
        shown = "secret" in body and not (with_token and case["right"].startswith("ok"))
        granted = "access-control-allow-origin" in sent
        echoed = "<script>window.__p" in body
        answers.append((case["p"], status in WANTED[case["right"]], shown, granted, echoed))
    assert [answer for answer in answers if answer[1:] != (True, False, False, False)] == []
    assert len(answers) == 14


async def raw(app: Starlette, method: str, path: str, headers: dict[str, str]) -> tuple[int, dict[str, str], str]:
    """A request as the server hands it on: also without `Host`, and with a path that no client would send."""
    from urllib.parse import unquote

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": unquote(path), "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 5), "server": ("127.0.0.1", 8000),
    }  # fmt: skip
    sent: list[dict[str, object]] = []

    async def receive() -> dict[str, object]:
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    body = b"".join(bytes(message.get("body", b"")) for message in sent)  # type: ignore[call-overload]
    fields = {name.decode(): value.decode() for name, value in sent[0]["headers"]}  # type: ignore[union-attr]
    return int(sent[0]["status"]), fields, body.decode()  # type: ignore[call-overload]
