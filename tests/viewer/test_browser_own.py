"""Sessions of our own that an agent made, in a real browser: what the model saw, left branches, sub-agents, pictures."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from browserkit import Tab, serious_faults, served
from conversations import branched, chosen, compacted, delegated

from harness.viewer import local_viewer
from harness.viewer.shelf import found_in, key_of


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[[Callable[[Path], Awaitable[Path]]], str]]:
    """Make a conversation, serve its folder, and give the address of its session."""
    with ExitStack() as servers:

        def start(make: Callable[[Path], Awaitable[Path]]) -> str:
            # The browser keeps a loop of its own running in this thread.
            with ThreadPoolExecutor(1) as another:
                file = another.submit(lambda: asyncio.run(make(tmp_path))).result()  # type: ignore[arg-type]
            [found] = [each for each in found_in([file.parent]) if each.session_id == "monday"]
            return f"{servers.enter_context(served(local_viewer([file.parent], token=None)))}/sessions/{key_of(found)}"

        yield start


@pytest.fixture
def tab(browser: Any, run: object) -> Iterator[Tab]:
    made = Tab(browser.new_page(viewport={"width": 1200, "height": 800}))
    yield made
    made.page.close()
    assert made.faults == []


def test_what_the_model_saw_is_told_turn_by_turn_and_leads_to_the_turns(tab: Tab, run: Callable[..., str]) -> None:
    tab.page.goto(f"{run(chosen)}/ledger")
    tab.page.get_by_role("link", name="show").last.click()
    assert "exactly what was sent" in tab.page.locator("main").inner_text()
    assert "behind a summary" in tab.page.locator(".choices").inner_text()
    assert serious_faults(tab) == []
    tab.page.locator(".choices > li > a").last.click()
    tab.until("() => document.activeElement?.textContent.includes('turn 40 please')")


def test_a_left_branch_is_read_from_the_tree(tab: Tab, run: Callable[..., str]) -> None:
    tab.page.goto(f"{run(branched)}/ledger")
    tab.page.get_by_role("link", name="left: read it").click()
    assert "Left behind." in tab.page.locator("main").inner_text()
    assert serious_faults(tab) == []
    tab.page.get_by_role("link", name="this turn", exact=True).click()
    tab.until("() => document.activeElement?.textContent.includes('Hello.')")


def test_a_sub_agent_of_our_own_is_opened_in_place_and_the_approval_is_a_row(tab: Tab, run: Callable[..., str]) -> None:
    tab.open(run(delegated))
    tab.whole()
    tab.page.keyboard.press("e")
    assert tab.page.get_by_text("Harness: approval").first.is_visible()
    tab.page.locator("a.child").click()
    tab.page.locator(".inside").get_by_text("There are 42.").wait_for()
    assert serious_faults(tab) == []


def test_the_pictures_of_a_run_are_drawn(tab: Tab, run: Callable[..., str]) -> None:
    tab.page.goto(f"{run(compacted)}/pictures")
    for lane in ("prompt", "request", "tool", "compaction"):
        assert tab.page.locator(f"svg rect.a-{lane}").count() > 0, lane
    assert tab.page.locator("svg .budget").count() > 0
    assert tab.page.locator("tbody tr").count() == 1
    assert serious_faults(tab) == []
