"""Mounted in a service: each user sees their own sessions, and nobody else's by any address."""

import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount

sys.path.insert(0, str(Path(__file__).parent))
from conversations import agent_in

from harness import HarnessAgent, RuntimeContext
from harness.errors import ConfigError, PersistenceError
from harness.transcripts.listing import Listing
from harness.viewer import agent_viewer, found_in, local_viewer, viewer_app
from harness.viewer.shelf import Item, Shelf, key_of, listed_in


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[HarnessAgent]:
    async with agent_in(tmp_path / "ws", "Hello Alice.", "Hello Bob.") as made:
        for user in ("alice", "bob"):
            await made.call(f"I am {user}, my word is {user}-fox.", RuntimeContext(session_id="monday", user_id=user))
        yield made


async def who(request: Request) -> RuntimeContext | None:
    user = request.headers.get("x-user")
    return RuntimeContext(user_id=user) if user else None


@pytest.fixture
async def service(agent: HarnessAgent) -> AsyncIterator[httpx2.AsyncClient]:
    app = Starlette(routes=[Mount("/traces", agent_viewer(agent, who))])
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="https://service.example") as client:
        yield client


async def listed(service: httpx2.AsyncClient, user: str) -> list[dict[str, object]]:
    return list((await service.get("/traces/api/sessions", headers={"x-user": user})).json()["sessions"])


async def test_a_list_has_the_visitors_own_sessions(service: httpx2.AsyncClient) -> None:
    alice, bob = await listed(service, "alice"), await listed(service, "bob")
    assert [len(alice), len(bob)] == [1, 1]
    assert alice[0]["key"] != bob[0]["key"]
    assert "alice-fox" in str(alice)
    assert "bob" not in str(alice)


async def test_no_place_on_the_server_is_named(service: httpx2.AsyncClient, tmp_path: Path) -> None:
    alice = await listed(service, "alice")
    page = await service.get(f"/traces/sessions/{alice[0]['key']}", headers={"x-user": "alice"})
    assert page.status_code == 200
    assert str(tmp_path) not in page.text + str(alice)


@pytest.mark.parametrize(
    "path",
    [
        "/sessions/{key}", "/sessions/{key}/pictures", "/sessions/{key}/ledger", "/sessions/{key}/raw",
        "/sessions/{key}/media?ref=0", "/sessions/{key}/requests/x", "/api/sessions/{key}", "/api/sessions/{key}/turns",
        "/api/sessions/{key}/search?q=fox", "/api/sessions/{key}/ledger", "/api/sessions/{key}/requests/x",
    ],
)  # fmt: skip
async def test_anothers_session_is_not_there_at_any_address(service: httpx2.AsyncClient, path: str) -> None:
    key = str((await listed(service, "bob"))[0]["key"])
    answer = await service.get("/traces" + path.format(key=key), headers={"x-user": "alice"})
    assert answer.status_code == 404
    assert "bob" not in answer.text


async def test_who_is_nobody_sees_nothing(service: httpx2.AsyncClient) -> None:
    for path in ("/traces/", "/traces/api/sessions", "/traces/sessions/0123456789abcdef"):
        assert (await service.get(path)).status_code == 403


async def test_a_user_without_sessions_has_an_empty_list(service: httpx2.AsyncClient) -> None:
    assert await listed(service, "carol") == []


async def test_a_session_begun_later_is_found(
    service: httpx2.AsyncClient, agent: HarnessAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.viewer.shelf._FRESH", -1.0)  # every look is a new one
    assert await listed(service, "dave") == []
    async with agent_in(tmp_path / "ws", "Hello Dave.") as another:
        await another.call("I am dave.", RuntimeContext(session_id="friday", user_id="dave"))
    assert [each["sessionId"] for each in await listed(service, "dave")] == ["friday"]


async def test_an_unknown_zone_is_refused_when_the_app_is_made(agent: HarnessAgent) -> None:
    with pytest.raises(ConfigError, match="Middle/Earth"):
        agent_viewer(agent, who, zone="Middle/Earth")


async def test_a_folder_of_several_users_shows_each_ones_session_of_the_same_name(
    agent: HarnessAgent, tmp_path: Path
) -> None:
    assert agent is not None
    found = found_in([tmp_path / "ws"])
    assert sorted(each.title for each in found) == [
        "I am alice, my word is alice-fox.",
        "I am bob, my word is bob-fox.",
    ]
    assert len({key_of(each) for each in found}) == 2


async def test_a_ledger_that_says_it_is_anothers_is_not_listed(
    service: httpx2.AsyncClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.viewer.shelf._FRESH", -1.0)  # every look is a new one
    folders = {path.parts[-5]: path for path in (tmp_path / "ws").rglob("monday.log.jsonl")}
    [alice] = [path for name, path in folders.items() if "alice" in name]
    [bob] = [path for name, path in folders.items() if "bob" in name]
    (bob.parent / "copied.log.jsonl").write_bytes(alice.read_bytes())

    found = await listed(service, "bob")

    assert [each["sessionId"] for each in found] == ["monday"]
    assert "alice" not in str(found)


async def test_a_session_that_was_replaced_by_a_link_is_not_opened(service: httpx2.AsyncClient, tmp_path: Path) -> None:
    [found] = await listed(service, "alice")
    [ledger] = [
        path for path in (tmp_path / "ws").rglob("monday.log.jsonl") if "alice" in str(path.relative_to(tmp_path))
    ]
    (tmp_path / "elsewhere.log.jsonl").write_bytes(ledger.read_bytes())
    ledger.unlink()
    ledger.symlink_to(tmp_path / "elsewhere.log.jsonl")

    answer = await service.get(f"/traces/api/sessions/{found['key']}/turns", headers={"x-user": "alice"})

    assert answer.status_code == 404
    assert "alice-fox" not in answer.text


async def test_a_session_that_is_replaced_by_a_link_behind_the_look_at_it_is_not_read(
    service: httpx2.AsyncClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [found] = await listed(service, "alice")
    [ledger] = [
        path for path in (tmp_path / "ws").rglob("monday.log.jsonl") if "alice" in str(path.relative_to(tmp_path))
    ]
    find = Shelf.find

    async def found_then_replaced(shelf: Shelf, key: str) -> Item:
        item = await find(shelf, key)
        (tmp_path / "elsewhere.log.jsonl").write_bytes(ledger.read_bytes())
        ledger.unlink()
        ledger.symlink_to(tmp_path / "elsewhere.log.jsonl")
        return item

    monkeypatch.setattr(Shelf, "find", found_then_replaced)
    answer = await service.get(f"/traces/api/sessions/{found['key']}/turns", headers={"x-user": "alice"})

    assert answer.status_code >= 400
    assert "alice-fox" not in answer.text


async def test_a_list_says_how_many_files_it_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listing = Listing([], 12)
    monkeypatch.setattr(Shelf, "_refresh", lambda self, age: _noted(self, listing))
    app = local_viewer([tmp_path], token=None)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1") as client:
        page, told = await client.get("/"), (await client.get("/api/sessions")).json()
    assert "12 older files were not looked at" in page.text
    assert told["note"] == listing.note


async def _noted(shelf: Shelf, listing: Listing) -> None:
    shelf.note = listing.note


@pytest.mark.parametrize("authorise", [None, "alice", lambda: None])
async def test_a_viewer_that_could_ask_nobody_is_refused_where_it_is_made(
    agent: HarnessAgent, authorise: object
) -> None:
    with pytest.raises(ConfigError, match=r"agent_viewer: authorise .* give a function from a request to a context"):
        agent_viewer(agent, authorise)  # type: ignore[arg-type]


async def test_who_asks_may_be_found_out_by_a_plain_function(agent: HarnessAgent) -> None:
    def known(request: Request) -> RuntimeContext | None:
        user = request.headers.get("x-user")
        return RuntimeContext(user_id=user) if user else None

    app = Starlette(routes=[Mount("/traces", agent_viewer(agent, known))])
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="https://service.example") as client:
        assert "alice-fox" in str(await listed(client, "alice"))
        assert (await client.get("/traces/")).status_code == 403


async def test_no_place_of_a_sub_agent_is_named(shared: Path) -> None:
    shelf = Shelf(partial(listed_in, (shared / "traces/claude",)))
    transport = httpx2.ASGITransport(viewer_app(lambda _: shelf))
    async with httpx2.AsyncClient(transport=transport, base_url="http://service.example") as client:
        found = (await client.get("/api/sessions")).json()["sessions"]
        agents = []
        for each in found:
            answered = await client.get(f"/api/sessions/{each['key']}")
            assert str(shared) not in answered.text
            agents += answered.json()["head"]["subagents"]
    assert agents != []


async def test_a_fault_is_named_by_a_word_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class _Inner(PersistenceError):
        """One of ours that nobody else knows."""

    async def broken(*_: object) -> None:
        raise _Inner("a worker is gone")

    monkeypatch.setattr("harness.viewer.shelf.in_worker", broken)
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(local_viewer([tmp_path], token=None)), base_url="http://127.0.0.1"
    ) as client:
        answered = await client.get("/api/sessions")
    assert (answered.status_code, answered.json()["code"]) == (422, "PersistenceError")
