"""A session that is written while somebody reads it: what is taken back goes, what is new comes, the place stays."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from browserkit import Tab, served
from lines import answer, append, call, prompt, queue, result, text_of, write

from harness.viewer import local_viewer
from harness.viewer.shelf import found_in, key_of

SOON = "2099-01-01T00:00:00.000Z"  # whose last word is new is looked at more often
TURNS = """() => [...document.querySelectorAll('article.turn')].map((each) =>
    `${each.dataset.kind}: ${each.querySelector('.text, .preview')?.textContent.trim()}`)"""


@pytest.fixture
def tab(browser: Any, serve: object) -> Iterator[Tab]:
    made = Tab(browser.new_page(viewport={"width": 1200, "height": 700}))
    yield made
    made.page.close()
    assert made.faults == []


@pytest.fixture
def serve() -> Iterator[Callable[[Path], str]]:
    with ExitStack() as servers:

        def start(file: Path) -> str:
            base = servers.enter_context(served(local_viewer([file], token=None)))
            return f"{base}/sessions/{key_of(found_in([file])[0])}"

        yield start


def said(name: str, number: int) -> list[dict[str, Any]]:
    asked = prompt(f"{name} prompt {number}.", f"u{name}{number}")
    given = answer(f"{name} answer {number}. " + "and so on " * 40, f"a{name}{number}")
    return [{**line, "timestamp": SOON} for line in (asked, given)]


def claude(folder: Path) -> tuple[Path, Callable[[], None]]:
    """Sixty pairs, and how they become twenty others."""
    old = [line for number in range(60) for line in said("old", number)]
    new = [line for number in range(20) for line in said("new", number)]
    file = write(folder / "s.jsonl", old)
    return file, lambda: file.write_text(text_of(new)) and None


def gemini(folder: Path) -> tuple[Path, Callable[[], None]]:
    """Sixty pairs, and how the person goes back to the twentieth."""

    def message(number: int, kind: str, words: str) -> dict[str, Any]:
        return {"id": f"{kind}{number}", "timestamp": SOON, "type": kind, "content": words}

    head = {"sessionId": "g", "projectHash": "h", "startTime": SOON, "lastUpdated": SOON, "kind": "main"}
    lines = [head]
    for number in range(60):
        name = "new" if number < 20 else "old"
        lines += [message(number, "user", f"{name} prompt {number}."), message(number, "gemini", f"{name} answer {number}. " + "and so on " * 40)]  # fmt: skip
    file = write(folder / "session-1.jsonl", lines)
    return file, lambda: append(file, {"$rewindTo": "user20"})


@pytest.mark.parametrize("kind", [claude, gemini])
def test_who_follows_a_session_that_becomes_shorter_sees_its_new_end(
    tab: Tab, serve: Callable[[Path], str], tmp_path: Path, kind: Callable[[Path], tuple[Path, Callable[[], None]]]
) -> None:
    file, becomes_shorter = kind(tmp_path)
    tab.open(serve(file))
    tab.whole()
    tab.wait_until_on_screen("old answer 59.")
    becomes_shorter()
    tab.wait_until_on_screen("new answer 19.")
    tab.until("() => document.getElementById('summary').textContent.includes('20 prompts')")
    assert tab.on_screen("new answer 19.")
    tab.page.keyboard.press("[")
    tab.until(FOCUSED, "new prompt")


def test_who_reads_further_up_stays_and_is_led_to_the_new_end(
    tab: Tab, serve: Callable[[Path], str], tmp_path: Path
) -> None:
    file, becomes_shorter = claude(tmp_path)
    tab.open(serve(file))
    tab.whole()
    tab.page.keyboard.press("Home")
    tab.wait_until_on_screen("old prompt 0.")
    becomes_shorter()
    tab.until("() => /has changed: press End/.test(document.getElementById('state').textContent)")
    assert tab.on_screen("old prompt 0.")
    tab.page.keyboard.press("End")
    tab.wait_until_on_screen("new answer 19.")
    tab.page.keyboard.press("Home")
    tab.wait_until_on_screen("new prompt 0.")


def test_what_a_follower_has_is_what_a_reader_gets_who_opens_it_anew(
    tab: Tab, serve: Callable[[Path], str], tmp_path: Path
) -> None:
    file = write(tmp_path / "s.jsonl", [prompt("go", timestamp=SOON), answer([call(command="make")], timestamp=SOON)])
    tab.open(url := serve(file))
    tab.whole()
    append(file, {**queue("enqueue", "then the tests"), "timestamp": SOON})
    tab.wait_until_on_screen("then the tests")
    append(file, {**result("built"), "timestamp": SOON}, {**queue("dequeue"), "timestamp": SOON})
    append(file, prompt("then the tests", "u2", timestamp=SOON), answer("they pass", "a2", timestamp=SOON))
    tab.wait_until_on_screen("they pass")
    followed = tab.page.evaluate(TURNS)
    tab.open(url)
    assert followed == tab.page.evaluate(TURNS)
    assert followed == ["prompt: go", "answer: make", "prompt: then the tests", "answer: they pass"]


FOCUSED = """(words) => document.activeElement.dataset.kind === 'prompt'
    && document.activeElement.textContent.includes(words)"""
MARKED = "() => document.querySelector('.turn.seen .text')?.textContent.trim() ?? ''"


@pytest.fixture
def visited(browser: Any) -> Iterator[Any]:
    """A browser that keeps what it was told from one visit to the next."""
    context = browser.new_context(viewport={"width": 1200, "height": 700})
    yield context
    context.close()


def test_the_mark_is_where_the_reader_was_and_not_at_the_end_of_what_was_loaded(
    visited: Any, serve: Callable[[Path], str], tmp_path: Path
) -> None:
    file = write(tmp_path / "s.jsonl", [line for number in range(30) for line in said("old", number)])
    url = serve(file)
    tab = Tab(visited.new_page())
    tab.open(url)
    tab.page.keyboard.press("Home")
    tab.wait_until_on_screen("old prompt 0.")
    tab.page.goto(url.partition("/sessions")[0])
    tab.open(url)
    assert tab.page.evaluate(MARKED) == ""
    tab.page.keyboard.press("Home")
    tab.until("() => document.querySelector('.turn.seen') !== null")
    assert tab.page.evaluate(MARKED).startswith("old ")
    assert tab.page.evaluate("() => Number(document.querySelector('.turn.seen').getAttribute('aria-posinset'))") < 12
    tab.page.close()
    assert tab.faults == []


def test_the_mark_is_found_behind_more_than_a_page_of_what_is_new(
    visited: Any, serve: Callable[[Path], str], tmp_path: Path
) -> None:
    file = write(tmp_path / "s.jsonl", [line for number in range(3) for line in said("old", number)])
    url = serve(file)
    tab = Tab(visited.new_page())
    tab.open(url)
    tab.wait_until_on_screen("old answer 2.")
    tab.page.goto(url.partition("/sessions")[0])
    append(file, *(line for number in range(300) for line in said("new", number)))
    tab.open(url)
    tab.whole()
    assert tab.page.evaluate(MARKED) == ""
    tab.page.keyboard.press("Home")
    tab.until("() => document.querySelector('.turn.seen') !== null")
    assert tab.page.evaluate(MARKED).startswith("old answer 2.")
    tab.page.close()
    assert tab.faults == []


def test_the_rest_of_a_long_turn_comes_where_its_link_was(
    tab: Tab, serve: Callable[[Path], str], tmp_path: Path
) -> None:
    calls = [call(call_id=f"t{number}", command=f"run number {number}") for number in range(150)]
    tab.open(serve(write(tmp_path / "s.jsonl", [prompt("hi"), answer(calls)])))
    tab.page.keyboard.press("e")
    for shown in (120, 150):
        tab.page.locator("a.rest").last.click()
        tab.until("(shown) => document.querySelectorAll('.turn .call').length === shown", shown)
    assert tab.page.locator("a.rest").count() == 0
    assert tab.page.get_by_text("run number 149").last.is_visible()


def test_an_answer_that_quotes_the_pages_own_markup_is_no_prompt(
    tab: Tab, serve: Callable[[Path], str], tmp_path: Path
) -> None:
    lines = [each for number in range(9) for each in (prompt(f"real {number}.", f"u{number}"), answer('data-kind="prompt" ' * 90, f"a{number}"))]  # fmt: skip
    url = serve(write(tmp_path / "s.jsonl", lines))
    tab.page.route("**/api/sessions/*?html=1", lambda route: route.abort())  # as for one too large to be read whole
    tab.open(url)
    for _ in range(4):
        tab.page.keyboard.press("[")
        tab.until(FOCUSED, "real")
    tab.faults = [fault for fault in tab.faults if "ERR_FAILED" not in fault]


def test_a_link_within_a_sub_agent_leads_to_the_sub_agents_own_page(tab: Tab, tmp_path: Path) -> None:
    inside = tmp_path / "s" / "subagents"
    child = prompt("You count.", agentId="a1b2", isSidechain=True)
    write(inside / "agent-a1b2.jsonl", [child, answer("There are 42.", agentId="a1b2", isSidechain=True)])
    meta = {"agentType": "counter", "description": "count", "toolUseId": "t1", "spawnDepth": 1}
    (inside / "agent-a1b2.meta.json").write_text(json.dumps(meta))
    write(tmp_path / "s.jsonl", [prompt("count"), answer([call("Task")]), result("42")])
    found = {each.subagent_of is None: key_of(each) for each in found_in([tmp_path])}
    with served(local_viewer([tmp_path], token=None)) as base:
        tab.open(f"{base}/sessions/{found[True]}")
        tab.whole()
        tab.page.keyboard.press("e")
        tab.page.locator("a.child").click()
        tab.page.locator(".inner a.link").last.click()
        tab.until("(key) => location.pathname.endsWith(key)", found[False])
        tab.until("() => document.documentElement.dataset.ready === '1'")
        assert tab.on_screen("There are 42.")
        tab.page.goto("about:blank")
