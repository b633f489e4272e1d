"""The viewer in a browser that runs no script: every turn can be reached by links alone."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from browserkit import Tab, chromium, claude_lines, needs_browser, served

from harness.viewer import local_viewer
from harness.viewer.shelf import found_in, key_of

LINES = 2_000


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("plain") / "long.jsonl"
    file.write_bytes(claude_lines(0, LINES))
    return file


@pytest.fixture
def tab() -> Iterator[Tab]:
    needs_browser()
    with chromium() as browser:
        context: Any = browser.new_context(java_script_enabled=False)
        made = Tab(context.new_page())
        yield made
        assert made.faults == []


def numbers_in(html: str) -> list[int]:
    return [int(number) for number in re.findall(r"<p>(?:prompt|answer) (\d+)\.</p>", html)]


def test_all_turns_are_read_by_going_back_from_page_to_page(tab: Tab, file: Path) -> None:
    with served(local_viewer([file], token=None)) as base:
        tab.page.goto(f"{base}/")
        tab.page.locator(".cards a").first.click()
        read = _shown(tab)
        assert read[-1] == LINES - 1
        while tab.page.get_by_text("Earlier turns", exact=True).count():
            tab.page.get_by_text("Earlier turns", exact=True).click()
            read = [*_shown(tab), *read]
        tab.page.get_by_text("Later turns", exact=True).click()
        later = _shown(tab)
    assert read == list(range(LINES))
    assert later[0] == read.index(later[0]) > 0


def test_the_door_is_opened_and_a_session_searched_without_a_script(tab: Tab, file: Path) -> None:
    with served(local_viewer([file], token="opens-it")) as base:
        tab.page.goto(f"{base}/#token=opens-it")
        tab.page.locator("#token").fill(f"{base}/#token=opens-it")
        tab.page.get_by_role("button", name="Unlock").click()
        tab.page.locator(".cards a").first.click()
        tab.page.locator("#q").fill("answer 321.")
        tab.page.locator("#q").press("Enter")
        assert tab.page.locator(".said").inner_text().startswith("1 match in the whole session")
        tab.page.locator("main ol a").click()
        assert 321 in _shown(tab)
        tab.page.goto("about:blank")


def _shown(tab: Tab) -> list[int]:
    texts = tab.page.locator("article.turn .text").all_inner_texts()
    return [int(text.rstrip(".").split()[-1]) for text in texts]


async def test_pages_that_are_linked_abut(file: Path) -> None:
    transport = httpx2.ASGITransport(local_viewer([file], token=None))
    path = f"/sessions/{key_of(found_in([file])[0])}"
    pages: list[list[int]] = []
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:1") as client:
        link: str | None = path
        while link is not None:
            html = (await client.get(link)).text
            pages.insert(0, numbers_in(html))
            found = re.search(r'href="([^"]*\?before=[^"]*)">Earlier turns', html)
            link = found[1].replace("&amp;", "&") if found else None
    assert len(pages) > 2
    assert [number for page in pages for number in page] == list(range(LINES))
