"""Sessions that an agent made: left branches, selections, approvals, sub-agents and pictures, as pages show them."""

import re
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from conversations import branched, chosen, compacted, delegated
from payloads import PAYLOADS, Live

from harness.viewer import ledgers, local_viewer
from harness.viewer.seen import Seen, seen_by
from harness.viewer.shelf import found_in, key_of


@asynccontextmanager
async def opened(file: Path) -> AsyncIterator[tuple[httpx2.AsyncClient, str]]:
    transport = httpx2.ASGITransport(local_viewer([file], token=None))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:1") as client:
        yield client, f"/sessions/{key_of(found_in([file])[0])}"


async def test_a_left_branch_has_a_page_of_its_own(tmp_path: Path) -> None:
    async with opened(await branched(tmp_path)) as (client, path):
        ledger = (await client.get(f"{path}/ledger")).text
        [link] = re.findall(r'href="([^"]*/branches/[^"]*)">left: read it', ledger)
        page = (await client.get(link)).text
        origin = re.search(r'begins behind <a href="([^"]*)"', page)
        assert origin is not None
        before = (await client.get(origin[1])).text
    assert "This goes nowhere." in page
    assert "Left behind." in page
    assert "This goes on." not in page
    assert "it is kept, and the model does not see it" in page
    assert "Hello." in before


async def test_the_twin_of_a_branch_has_its_turns(tmp_path: Path) -> None:
    async with opened(await branched(tmp_path)) as (client, path):
        pieces = (await client.get(f"/api{path}/ledger")).json()["branches"]
        [left] = [piece for piece in pieces if not piece["active"]]
        found = (await client.get(f"/api{path}/branches/{left['id']}")).json()
    said = [
        block["text"] for turn in found["turns"] for block in turn["content"] if turn["kind"] in ("prompt", "answer")
    ]
    assert said == ["This goes nowhere.", "Left behind."]
    assert [turn for turn in found["turns"] if "aside" in turn] == []


@pytest.mark.parametrize("below", ["/branches/01a22e3c-0000-7000-8000-000000000000", "/branches/nothing"])
async def test_a_branch_that_is_not_there_is_not_found(tmp_path: Path, below: str) -> None:
    async with opened(await branched(tmp_path)) as (client, path):
        assert (await client.get(path + below)).status_code == 404


@pytest.mark.parametrize("start", ["-1", "x", "9" * 10, "²"])
async def test_a_place_in_a_branch_that_is_none_is_refused(tmp_path: Path, start: str) -> None:
    async with opened(await branched(tmp_path)) as (client, path):
        pieces = (await client.get(f"/api{path}/ledger")).json()["branches"]
        answer = await client.get(f"{path}/branches/{pieces[1]['id']}", params={"from": start})
    assert answer.status_code == 400


async def last_request(make: Callable[[Path], object], folder: Path) -> tuple[Path, Seen]:
    file = await make(folder)  # type: ignore[misc]
    ledger = ledgers.open_ledger(file)
    row = [row for row in ledgers.usage(ledger).rows if row.purpose == "execute"][-1]
    return file, seen_by(ledger, row.request)


async def test_a_selection_is_told_turn_by_turn(tmp_path: Path) -> None:
    _, seen = await last_request(chosen, tmp_path)
    assert seen.context.exact
    assert [choice.form for choice in seen.choices] == ["packet", "cards", "full", "whole"]
    packet, cards, full, whole = seen.choices
    assert packet.turns[0].number == 1
    assert "SUMMARY OF THE FIRST" in packet.text
    # A turn of the cards may be shown in full as well.
    shown = {turn.number for turn in (*packet.turns, *cards.turns, *full.turns, *whole.turns)}
    assert shown == set(range(1, 41))
    assert whole.turns[0].words.startswith("turn 40 ")


async def test_what_a_selection_sent_is_named_by_its_form(tmp_path: Path) -> None:
    _, seen = await last_request(chosen, tmp_path)
    assert [row.name for row in seen.sent][:2] == ["Summary of earlier turns", "Turns, a line each"]
    hows = {line.row.parts[0].text[:8]: line.how for line in seen.log if line.row.name == "You"}
    assert (hows["turn 1 p"], hows["turn 40 "]) == ("behind a summary", "")


async def test_the_page_of_a_request_lists_what_it_chose(tmp_path: Path) -> None:
    file, seen = await last_request(chosen, tmp_path)
    async with opened(file) as (client, path):
        page = (await client.get(f"{path}/requests/{seen.context.request}")).text
        twin = (await client.get(f"/api{path}/requests/{seen.context.request}")).json()
        decisions = (await client.get(f"{path}/ledger")).text
    assert "What it chose" in page
    assert "turn 40 please" in page.partition("What it chose")[2]
    assert [choice["form"] for choice in twin["selection"]] == [choice.form for choice in seen.choices]
    assert '<span class="chip">packet</span>' in decisions


async def test_the_page_of_a_request_is_read_in_parts_from_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.viewer.pages._BESIDE", 3)
    async with opened(await compacted(tmp_path)) as (client, path):
        requests = (await client.get(f"/api{path}/ledger")).json()["usage"]["requests"]
        link, parts = f"{path}/requests/{requests[-1]['request']}", list[list[str]]()
        logged = len((await client.get(f"/api{link}")).json()["log"])
        while link:
            page = (await client.get(link)).text
            parts.insert(0, re.findall(r'id="l\d+-([^"]*)"', page.partition('id="log"')[2]))
            found = re.search(r'href="([^"]*)">Earlier messages', page)
            link = found[1] if found else ""
    assert len(parts) > 1
    assert len({key for part in parts for key in part}) == sum(map(len, parts)) == logged


async def test_the_twin_of_a_request_tells_its_lines_in_bounded_parts_from_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, seen = await last_request(chosen, tmp_path)
    expected = [{"key": key, "sent": sent} for key, sent in seen.marks]
    assert {each["sent"] for each in expected} == {True, False}
    monkeypatch.setattr("harness.viewer.api._MARKED", 20)
    parts, start = list[list[dict[str, Any]]](), 0
    async with opened(file) as (client, path):
        while True:
            link = f"/api{path}/requests/{seen.context.request}"
            twin = (await client.get(link, params={"from": start} if start else {})).json()
            parts.insert(0, twin["log"])
            start += len(twin["log"])
            assert twin.get("logLeftOut", 0) == len(expected) - start
            if "logLeftOut" not in twin:
                break
        beyond = (await client.get(link, params={"from": 10**8})).json()
        assert (await client.get(link, params={"from": "x"})).status_code == 400
    assert (beyond["log"], "logLeftOut" in beyond) == ([], False)
    assert [each for part in parts for each in part] == expected
    assert max(map(len, parts)) == 20


async def test_approvals_and_sub_agents_are_among_the_decisions_and_the_turns(tmp_path: Path) -> None:
    file = await delegated(tmp_path)
    async with opened(file.parent) as (client, _):
        sessions = (await client.get("/api/sessions")).json()["sessions"]
        path = f"/sessions/{next(one['key'] for one in sessions if one['sessionId'] == 'monday')}"
        decisions = (await client.get(f"{path}/ledger")).text
        page = (await client.get(path)).text
        children = (await client.get(f"/api{path}")).json()["children"]
    for kind in ("approval", "subagent"):
        assert f'<span class="chip">{kind}</span>' in decisions
        assert f"Harness: {kind}" in page
    assert "allowed by alice" in page
    assert [(child["title"], child["call"]) for child in children] == [("Count the files.", "call-1")]


async def test_the_pictures_of_a_run_show_its_requests_tools_and_the_window(tmp_path: Path) -> None:
    async with opened(await compacted(tmp_path)) as (client, path):
        page = (await client.get(f"{path}/pictures")).text
    for lane in ("prompt", "request", "tool", "wait", "compaction"):
        assert f'class="a-{lane}"' in page, lane
    assert "context window 8,000" in page
    assert "6 requests" in page


async def test_nothing_in_a_session_of_our_own_is_live_on_any_page(tmp_path: Path) -> None:
    async with opened(await branched(tmp_path, words="".join(PAYLOADS))) as (client, path):
        ledger = (await client.get(f"/api{path}/ledger")).json()
        below = [f"/branches/{piece['id']}" for piece in ledger["branches"]]
        below += [f"/requests/{row['request']}" for row in ledger["usage"]["requests"]]
        found = {
            name: Live((await client.get(path + name)).text).found for name in ("", "/ledger", "/pictures", *below)
        }
    assert len(found) == 9
    assert {name: live for name, live in found.items() if live} == {}
