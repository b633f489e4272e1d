"""The service's own function that says who asks: one that hangs, or gives something else, shows and holds up nothing."""

import asyncio
import logging
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.requests import Request

sys.path.insert(0, str(Path(__file__).parent))
from browserkit import served
from conversations import agent_in

from harness import HarnessAgent, RuntimeContext
from harness.viewer import Shelf, agent_viewer, asking, viewer_app
from harness.viewer.shelf import Looked


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[HarnessAgent]:
    async with agent_in(tmp_path / "ws", "Hello Alice.") as made:
        await made.call("I am alice-fox.", RuntimeContext(session_id="monday", user_id="alice"))
        yield made


@pytest.fixture
def hanging() -> Iterator[threading.Event]:
    """Until when a function hangs: at the longest until the test has ended."""
    ended = threading.Event()
    yield ended
    ended.set()


def visitor_of(app: Any) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="https://service.example")


def hangs_for_mallory(ended: threading.Event) -> Callable[[Request], RuntimeContext]:
    def who(request: Request) -> RuntimeContext:
        if request.headers["x-user"] == "mallory":
            ended.wait()
        return RuntimeContext(user_id=request.headers["x-user"])

    return who


async def test_one_that_hangs_holds_up_nobody_else_and_not_the_services_own_threads(
    agent: HarnessAgent, hanging: threading.Event
) -> None:
    async with visitor_of(agent_viewer(agent, hangs_for_mallory(hanging))) as visitor:
        stuck = [asyncio.create_task(visitor.get("/api/sessions", headers={"x-user": "mallory"})) for _ in range(48)]
        mine = await visitor.get("/api/sessions", headers={"x-user": "alice"})
        assert await asyncio.to_thread(len, "abc") == 3
        assert ("alice-fox" in mine.text, [each.done() for each in stuck]) == (True, [False] * 48)
        hanging.set()
        assert {each.status_code for each in await asyncio.gather(*stuck)} == {200}


async def test_one_that_does_not_answer_is_a_503_and_is_named_in_the_log(
    agent: HarnessAgent, hanging: threading.Event, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(asking, "_PATIENCE", 0.05)
    async with visitor_of(agent_viewer(agent, hangs_for_mallory(hanging))) as visitor:
        answer = await visitor.get("/api/sessions", headers={"x-user": "mallory"})
    assert (answer.status_code, "in time" in answer.json()["error"]) == (503, True)
    [said] = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert said.startswith("agent_viewer: authorise (hangs_for_mallory.<locals>.who) did not answer within 0.05 s")


async def test_so_many_hang_at_a_time_and_no_more(
    agent: HarnessAgent, hanging: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "_PATIENCE", 0.05)
    monkeypatch.setattr(asking, "_AT_ONCE", 3)
    begun: list[str] = []

    def who(request: Request) -> None:
        begun.append(request.headers["x-user"])
        hanging.wait()

    async with visitor_of(agent_viewer(agent, who)) as visitor:
        answers = [await visitor.get("/", headers={"x-user": name}) for name in "abcde"]
    assert ({each.status_code for each in answers}, begun) == ({503}, ["a", "b", "c"])


async def test_a_time_out_of_its_own_is_a_fault_of_its_own(agent: HarnessAgent) -> None:
    def who(_request: Request) -> None:
        raise TimeoutError("the directory does not answer")

    async with visitor_of(agent_viewer(agent, who)) as visitor:
        with pytest.raises(TimeoutError, match="the directory does not answer"):
            await visitor.get("/")


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError(), GeneratorExit(), BaseException("away")])
@pytest.mark.parametrize("is_async", [False, True])
async def test_what_ends_a_program_ends_the_request_and_not_the_server(
    caplog: pytest.LogCaptureFixture, error: BaseException, is_async: bool
) -> None:
    def access(request: Request) -> None:
        if request.headers["x-user"] == "mallory":
            raise error

    async def later(request: Request) -> None:
        access(request)

    with served(viewer_app(later if is_async else access, hosts=None)) as base:
        async with httpx2.AsyncClient(base_url=base) as visitor:
            answers = [await visitor.get("/", headers={"x-user": name}) for name in ("alice", "mallory", "alice")]
    assert [each.status_code for each in answers] == [403, 500, 403]
    assert type(error).__name__ in caplog.text


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (True, "gave True"), (False, "gave False"), ("alice", "something of the type str"), (0, "of the type int"),
        ({"user_id": "alice"}, "of the type dict"), ((), "of the type tuple"),
        (RuntimeContext, "gave <class 'harness.context.RuntimeContext'>"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_async", [False, True])
async def test_what_is_no_context_shows_nothing_and_the_log_says_what_to_return(
    agent: HarnessAgent, caplog: pytest.LogCaptureFixture, given: Any, named: str, is_async: bool
) -> None:
    async def later(_request: Request) -> Any:
        return given

    async with visitor_of(agent_viewer(agent, later if is_async else lambda _: given)) as visitor:
        answers = [await visitor.get(path) for path in ("/", "/api/sessions", "/api/sessions/0123456789abcdef")]
    assert {each.status_code for each in answers} == {500}
    assert "alice" not in "".join(each.text for each in answers)
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(said) == 3
    assert named in said[0]
    assert said[0].endswith("return a RuntimeContext, or None for who may see nothing")


async def test_access_that_gives_no_shelf_shows_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def access(_request: Request) -> Any:
        return Looked([])

    async with visitor_of(viewer_app(access)) as visitor:
        assert (await visitor.get("/")).status_code == 500
    assert "viewer_app: access" in caplog.text
    assert f"return a {Shelf.__name__}" in caplog.text
