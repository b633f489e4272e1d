"""The pages without a script: what they hold for a reader, and their JSON twins."""

import json
import sys
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from pathlib import Path

import httpx2
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from conversations import agent_in, compacted, ledger_in

from harness import RuntimeContext
from harness.viewer import local_viewer

VOID = {"meta", "link", "input", "br", "hr", "img", "rect", "line"}


class Balance(HTMLParser):
    """Complains of elements that are closed in the wrong order, and of ids that are there twice."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.faults: list[str] = []
        self.ids: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID and (not self.open or self.open.pop() != tag):
            self.faults.append(f"</{tag}> at {self.getpos()}")


@pytest.fixture
async def own(tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    ledger = await compacted(tmp_path / "ws")
    transport = httpx2.ASGITransport(local_viewer([ledger], token=None, zone="Europe/Berlin"))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:1") as client:
        yield client


async def key_of(client: httpx2.AsyncClient) -> str:
    return str((await client.get("/api/sessions")).json()["sessions"][0]["key"])


async def test_every_page_is_well_formed_and_its_ids_are_its_own(own: httpx2.AsyncClient) -> None:
    key = await key_of(own)
    request = (await own.get(f"/api/sessions/{key}/ledger")).json()["usage"]["requests"][-1]["request"]
    for path in ("", "/pictures", "/ledger", f"/requests/{request}"):
        answer = await own.get(f"/sessions/{key}{path}")
        assert answer.status_code == 200, path
        found = Balance(answer.text)
        assert (found.faults, found.open) == ([], [])
        assert len(found.ids) == len(set(found.ids)), path


async def test_a_session_is_read_without_a_script(own: httpx2.AsyncClient) -> None:
    page = (await own.get(f"/sessions/{await key_of(own)}")).text
    for words in (
        "I am Alice.",
        "Weather in Oslo?",
        "1 tool call (weather)",
        "sunny in Oslo",
        "ALICE TOLD US HER NAME",
    ):
        assert words in page


async def test_what_the_model_saw_stands_beside_the_log(own: httpx2.AsyncClient) -> None:
    key = await key_of(own)
    request = (await own.get(f"/api/sessions/{key}/ledger")).json()["usage"]["requests"][-1]["request"]
    page = (await own.get(f"/sessions/{key}/requests/{request}")).text
    sent, _, logged = page.partition('id="log"')
    assert "exactly what was sent" in sent
    assert "Weather in Oslo?" not in sent
    assert "Weather in Oslo?" in logged


async def test_the_ledger_page_and_its_twin_say_the_same(own: httpx2.AsyncClient) -> None:
    key = await key_of(own)
    twin = (await own.get(f"/api/sessions/{key}/ledger")).json()
    page = (await own.get(f"/sessions/{key}/ledger")).text
    assert (twin["ok"], twin["findings"]) == (True, [])
    assert "stands where and as it was written" in page
    assert page.count('">show</a>') == len(twin["usage"]["requests"]) == 6


async def test_the_twin_of_a_session_has_its_census(own: httpx2.AsyncClient) -> None:
    found = (await own.get(f"/api/sessions/{await key_of(own)}")).json()
    assert (found["stats"]["prompts"], found["stats"]["tool_calls"], found["stats"]["compactions"]) == (4, 1, 1)
    assert [prompt["words"] for prompt in found["outline"]["prompts"]] == [
        "I am Alice.", "Weather in Oslo?", "The word is blue-fox.", "Bye",
    ]  # fmt: skip


async def test_turns_are_paged_and_a_page_leads_to_the_next(own: httpx2.AsyncClient) -> None:
    key = await key_of(own)
    first = (await own.get(f"/api/sessions/{key}/turns")).json()
    later = (await own.get(f"/api/sessions/{key}/turns", params={"where": "after", "cursor": first["after"]})).json()
    assert first["atEnd"] is True
    assert later["turns"] == []


async def test_search_finds_what_a_compaction_took_from_the_models_view(own: httpx2.AsyncClient) -> None:
    found = (await own.get(f"/api/sessions/{await key_of(own)}/search", params={"q": "weather in oslo"})).json()
    assert [hit["match"] for hit in found["hits"]] == ["Weather in Oslo"]
    assert found["said"].startswith("1 match in the whole session (")


@pytest.mark.parametrize("query", ["", "x" * 401])
async def test_a_search_for_nothing_is_refused(own: httpx2.AsyncClient, query: str) -> None:
    assert (await own.get(f"/api/sessions/{await key_of(own)}/search", params={"q": query})).status_code == 400


async def test_times_are_in_the_zone_that_was_asked_for(own: httpx2.AsyncClient) -> None:
    assert "Times are Europe/Berlin." in (await own.get("/")).text


async def test_the_list_can_be_filtered(own: httpx2.AsyncClient) -> None:
    assert "I am Alice." in (await own.get("/?q=ALICE")).text
    assert "Nothing here fits the filter" in (await own.get("/?q=nobody")).text


async def test_the_raw_file_is_a_download_of_the_same_bytes(own: httpx2.AsyncClient, tmp_path: Path) -> None:
    answer = await own.get(f"/sessions/{await key_of(own)}/raw")
    assert answer.headers["content-disposition"] == 'attachment; filename="monday.log.jsonl"'
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.content == ledger_in(tmp_path).read_bytes()


async def test_a_database_is_never_given_out(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"hello"}}\n')
    transport = httpx2.ASGITransport(local_viewer([tmp_path], token=None))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:1") as client:
        key = await key_of(client)
        file.write_bytes(b"SQLite format 3\x00 and credentials")
        answer = await client.get(f"/sessions/{key}/raw")
    assert answer.status_code == 404
    assert "credentials" not in answer.text


async def test_a_session_of_another_harness_has_no_ledger(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"hello"}}\n'
    )
    transport = httpx2.ASGITransport(local_viewer([tmp_path], token=None))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:1") as client:
        key = await key_of(client)
        assert (await client.get(f"/sessions/{key}/ledger")).status_code == 404
        assert (await client.get(f"/api/sessions/{key}/ledger")).json()["code"] == "not found"


async def test_a_child_that_names_its_parent_is_listed_there_although_the_parent_does_not_say(tmp_path: Path) -> None:
    meta = {"id": "parent-1", "cwd": "/srv"}
    child = {"id": "child-1", "thread_source": "subagent", "parent_thread_id": "parent-1"}
    for name, payload in (("rollout-1.jsonl", meta), ("rollout-2.jsonl", child)):
        asked = [{"type": "input_text", "text": f"ask {payload['id']}"}]
        lines = [
            {"timestamp": "2026-03-01T09:00:00Z", "type": "session_meta", "payload": payload},
            {"timestamp": "2026-03-01T09:00:00Z", "type": "turn_context", "payload": {"model": "demo"}},
            {
                "timestamp": "2026-03-01T09:00:01Z",
                "type": "response_item",
                "payload": {"type": "message", "role": "user", "content": asked},
            },
        ]
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    transport = httpx2.ASGITransport(local_viewer([tmp_path], token=None))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:1") as client:
        listed = (await client.get("/api/sessions")).json()["sessions"]
        keys = {one["sessionId"]: one["key"] for one in listed}
        found = (await client.get(f"/api/sessions/{keys['parent-1']}")).json()
        page = (await client.get("/")).text
    assert found["children"] == [{"key": keys["child-1"], "title": "ask child-1"}]
    assert keys["child-1"] not in page


async def test_a_list_of_several_sessions_says_whose_they_are_and_which(tmp_path: Path) -> None:
    async with agent_in(tmp_path / "ws", "Hello.", "Hello.") as agent:
        for user in ("alice", "bob"):
            await agent.call("Hi.", RuntimeContext(session_id=f"of-{user}", user_id=user))
    transport = httpx2.ASGITransport(local_viewer([tmp_path / "ws"], token=None, zone="UTC"))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:1") as client:
        page = (await client.get("/")).text
        of_bob = (await client.get("/", params={"q": "bob"})).text
    for words in (">alice<", ">bob<", ">of-alice<", ">of-bob<", ">notes<"):
        assert words in page
    assert ">of-alice<" not in of_bob
