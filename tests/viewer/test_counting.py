"""How far a long session was counted: told in bytes to whoever waits for its totals, and to nobody else."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from browserkit import Tab, chromium, claude_lines, needs_browser, served
from lines import keys, visiting

from harness.viewer import local_viewer
from harness.viewer.overview import overview
from harness.viewer.shelf import found_in, key_of


def long_session(file: Path) -> Path:
    """Some 30 MB: it takes seconds to be counted."""
    file.write_bytes(claude_lines(0, 8_000, prompt="so much to say " * 500))
    return file


def test_an_overview_tells_of_both_ways_through_a_session(tmp_path: Path) -> None:
    file = tmp_path / "long.jsonl"
    file.write_bytes(claude_lines(0, 600, prompt="so much to say " * 500))
    said: list[tuple[int, int]] = []
    overview(file, "long", tell=lambda done, total: said.append((done, total)))
    size = file.stat().st_size
    assert said == sorted(said)
    assert {total for _, total in said} == {2 * size}
    assert (size, 2 * size) in said
    assert size < said[-1][0] < 2 * size


async def test_who_counts_is_told_how_far_it_has_come(tmp_path: Path) -> None:
    async with visiting(long_session(tmp_path / "long.jsonl")) as visitor:
        path = f"/api/sessions/{(await keys(visitor))['long']}"
        assert (await visitor.get(f"{path}/counting")).json() == {}
        whole = asyncio.ensure_future(visitor.get(path))
        told: list[tuple[int, int]] = []
        while not whole.done():
            found = (await visitor.get(f"{path}/counting")).json()
            told += [(found["done"], found["total"])] if found else []
        size = (tmp_path / "long.jsonl").stat().st_size
        assert whole.result().json()["stats"]["prompts"] == 4_000
        assert (await visitor.get(f"{path}/counting")).json() == {}
    assert told == sorted(told)
    assert {total for _, total in told} == {2 * size}
    assert told


def test_the_page_shows_the_share_that_was_counted(tmp_path: Path) -> None:
    needs_browser()
    file = tmp_path / "long.jsonl"
    file.write_bytes(claude_lines(0, 40))
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route)

    with chromium() as browser, served(local_viewer([file], token=None)) as base:
        tab = Tab(browser.new_page())
        tab.page.route("**/api/sessions/*?html=1", hold)
        tab.page.route("**/api/sessions/*/counting", lambda route: route.fulfill(json={"done": 379, "total": 1000}))
        tab.open(f"{base}/sessions/{key_of(found_in([file])[0])}")
        tab.until("() => document.getElementById('summary').textContent === 'Counting… 37 %'")
        held[0].continue_()
        tab.until("() => document.getElementById('summary').textContent.includes('20 prompts')")
        tab.page.close()
        assert tab.faults == []


@pytest.mark.parametrize("key", ["0" * 16, "x"])
async def test_of_no_session_nothing_is_told(tmp_path: Path, key: str) -> None:
    (tmp_path / "long.jsonl").write_bytes(claude_lines(0, 4))
    async with visiting(tmp_path) as visitor:
        assert (await visitor.get(f"/api/sessions/{key}/counting")).status_code == 404
