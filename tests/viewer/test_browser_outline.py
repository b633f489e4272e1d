"""The prompts of a session that grows while somebody reads elsewhere in it: each is listed once, in order, and reached."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from browserkit import Tab, served
from lines import answer, append, prompt, text_of, write

from harness.viewer import local_viewer
from harness.viewer.shelf import found_in, key_of

LISTED = "() => [...document.querySelectorAll('.outline [data-jump]')].map((each) => each.textContent)"
FOCUSED = """(words) => document.activeElement.matches('article.turn')
    && document.activeElement.querySelector('.text')?.textContent.trim() === words"""
OLD, NEW, MORE = 60, 110, 170  # so many that what came last does not abut on the page that is read


def pairs(first: int, last: int) -> list[dict[str, Any]]:
    """Prompts with answers of some 3 KB: a page holds few of them."""
    return [
        line
        for number in range(first, last)
        for line in (prompt(f"prompt {number}", f"u{number}"), answer("and so on " * 300, f"a{number}"))
    ]


def words(first: int, last: int) -> list[str]:
    return [f"prompt {number}" for number in range(first, last)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "s.jsonl", pairs(0, OLD))


@pytest.fixture
def tab(browser: Any, file: Path) -> Iterator[Tab]:
    """A reader far above the end, of a session whose whole was read."""
    made = Tab(browser.new_page(viewport={"width": 1200, "height": 900}))
    made.page.clock.install()
    with served(local_viewer([file], token=None)) as base:
        made.page.goto(f"{base}/sessions/{key_of(found_in([file])[0])}?at=b0")
        made.until("() => document.documentElement.dataset.ready === '1'")
        made.page.clock.fast_forward(1_000)
        made.whole()
        assert made.page.evaluate(LISTED) == words(0, OLD)
        yield made
        made.page.close()
    assert made.faults == []


def walk(tab: Tab, key: str, expected: list[str]) -> None:
    """Press a key again and again: each of these prompts, and no other, is where it leads next."""
    for each in expected:
        tab.page.keyboard.press(key)
        tab.until(FOCUSED, each)


def first_of(tab: Tab, key: str) -> int:
    """The number of the prompt to which a key leads from where the reader is."""
    tab.page.keyboard.press(key)
    tab.until("() => document.activeElement.matches('article.prompt')")
    return int(tab.page.evaluate("() => document.activeElement.querySelector('.text').textContent.match(/\\d+/)[0]"))


def test_the_list_goes_on_while_somebody_reads_far_above_and_each_entry_leads_to_its_prompt(
    tab: Tab, file: Path
) -> None:
    append(file, *pairs(OLD, NEW))
    tab.page.clock.fast_forward(10_000)
    tab.until(f"() => ({LISTED})().length === {NEW}")
    assert tab.page.evaluate(LISTED) == words(0, NEW)
    assert tab.on_screen("prompt 0")
    tab.page.evaluate("() => document.querySelector('.outline').open = true")
    for number in (NEW - 1, OLD, OLD - 1, NEW - 20):
        tab.page.locator(".outline [data-jump]").nth(number).click()
        tab.until(FOCUSED, f"prompt {number}")
    assert tab.page.evaluate(LISTED) == words(0, NEW)


def test_the_key_for_the_next_prompt_leads_through_all_that_came_meanwhile(tab: Tab, file: Path) -> None:
    append(file, *pairs(OLD, OLD + 20))
    walk(tab, "]", words(1, OLD + 20))
    append(file, *pairs(OLD + 20, OLD + 25))
    walk(tab, "]", words(OLD + 20, OLD + 25))
    assert tab.page.evaluate(LISTED) == words(0, OLD + 25)
    tab.page.keyboard.press("]")
    tab.until("() => document.getElementById('state').textContent === 'No later prompt.'")


def test_who_goes_to_the_end_goes_back_through_all_that_lies_between(tab: Tab, file: Path) -> None:
    append(file, *pairs(OLD, MORE))
    tab.page.keyboard.press("End")
    tab.wait_until_on_screen(f"prompt {MORE - 1}")
    nearest = first_of(tab, "[")
    assert nearest > MORE - 5
    walk(tab, "[", words(OLD - 3, nearest)[::-1])
    assert tab.page.evaluate(LISTED) == words(0, MORE)


def test_prompts_that_were_taken_back_are_not_listed_any_more(tab: Tab, file: Path) -> None:
    file.write_text(text_of(pairs(500, 510)))
    tab.page.keyboard.press("End")
    tab.wait_until_on_screen("prompt 509")
    tab.page.clock.fast_forward(1_000)
    tab.until(f"() => ({LISTED})().length === 10")
    assert tab.page.evaluate(LISTED) == words(500, 510)
    walk(tab, "[", words(500, first_of(tab, "["))[::-1])


def test_the_first_prompts_of_a_session_without_any_begin_its_list(browser: Any, tmp_path: Path) -> None:
    file = write(tmp_path / "s.jsonl", [answer("hello", "a1")])
    tab = Tab(browser.new_page())
    tab.page.clock.install()
    with served(local_viewer([file], token=None)) as base:
        tab.page.goto(f"{base}/sessions/{key_of(found_in([file])[0])}")
        tab.until("() => document.documentElement.dataset.ready === '1'")
        tab.page.clock.fast_forward(1_000)
        tab.whole()
        assert not tab.page.locator("details.outline").is_visible()
        append(file, *pairs(0, 2))
        tab.page.clock.fast_forward(10_000)
        tab.until(f"() => ({LISTED})().length === 2")
        assert tab.page.locator("details.outline").is_visible()
        assert tab.page.evaluate(LISTED) == words(0, 2)
        tab.page.close()
    assert tab.faults == []
