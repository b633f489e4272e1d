"""Every transcript of the shared corpus, in every format: its pages open, and hold what the reader counted."""

import csv
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from payloads import Live

from harness.viewer import local_viewer


@pytest.fixture
async def corpus(shared: Path) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(local_viewer([shared / "traces"], token=None))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:1", timeout=120) as client:
        yield client


async def test_every_session_of_the_corpus_is_shown_and_nothing_in_it_is_live(corpus: httpx2.AsyncClient) -> None:
    sessions = (await corpus.get("/api/sessions")).json()["sessions"]
    faults: list[tuple[str, object]] = []
    for session in sessions:
        for path in ("", "/pictures"):
            answer = await corpus.get(f"/sessions/{session['key']}{path}")
            if answer.status_code != 200 or Live(answer.text).found:
                faults.append((session["path"], answer.status_code, Live(answer.text).found[:3]))
    assert faults == []
    assert {session["format"] for session in sessions} >= {
        "claude",
        "codex",
        "gemini",
        "hermes",
        "openclaw",
        "opencode",
        "pi",
        "sts",
    }


async def test_paging_through_a_session_gives_every_turn_of_its_outline(corpus: httpx2.AsyncClient) -> None:
    sessions = (await corpus.get("/api/sessions")).json()["sessions"]
    largest = {session["format"]: session for session in sorted(sessions, key=lambda each: each["size"])}
    for session in largest.values():
        outline = (await corpus.get(f"/api/sessions/{session['key']}")).json()["outline"]["keys"]
        assert await paged(corpus, session["key"]) == outline, session["path"]


async def paged(corpus: httpx2.AsyncClient, key: str) -> list[str]:
    """The keys of all turns, page by page from the end; a turn that comes again is the same turn."""
    where: str = "tail"
    cursor: str | None = ""
    seen: dict[str, None] = {}
    while cursor is not None:
        answer = await corpus.get(f"/api/sessions/{key}/turns", params={"where": where, "cursor": cursor})
        page = answer.json()
        seen = dict.fromkeys([*(turn["key"] for turn in page["turns"]), *seen])
        where, cursor = "before", page.get("before")
    return list(seen)


async def test_the_figures_of_a_session_are_those_of_the_census(corpus: httpx2.AsyncClient, shared: Path) -> None:
    rows = {row["file"]: row for row in manifest(shared)}
    checked = 0
    for session in (await corpus.get("/api/sessions")).json()["sessions"]:
        row = rows.get(str(Path(session["path"]).relative_to(shared / "traces")))
        if row is None or row.get("format") != session["format"] or session["size"] > 2_000_000:
            continue
        stats = (await corpus.get(f"/api/sessions/{session['key']}")).json()["stats"]
        wanted = {
            name: row[name]
            for name in ("prompts", "assistant_msgs", "tool_calls", "tool_results", "tok_out")
            if row.get(name)
        }
        assert {name: str(stats[name]) for name in wanted} == wanted, session["path"]
        checked += 1
    assert checked > 10


def manifest(shared: Path) -> Iterator[dict[str, Any]]:
    with (shared / "traces/MANIFEST.tsv").open() as file:
        yield from csv.DictReader(file, delimiter="\t")
