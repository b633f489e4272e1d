"""A session in a real browser: reading, jumping, searching, following, with few turns in the document."""

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from browserkit import Tab, claude_lines, serious_faults, served
from conversations import compacted

from harness.viewer import local_viewer
from harness.viewer.shelf import found_in, key_of

LONG = 10_000
LIMIT = 60


@pytest.fixture
def serve() -> Iterator[Callable[[Path], str]]:
    """Serve a file and give the address of its session; the servers stop after the tabs have closed."""
    with ExitStack() as servers:

        def start(file: Path) -> str:
            return session_url(servers.enter_context(served(local_viewer([file], token=None))), file)

        yield start


@pytest.fixture
def tab(browser: Any, serve: Callable[[Path], str]) -> Iterator[Tab]:
    page = browser.new_page(viewport={"width": 1200, "height": 800})
    made = Tab(page)
    yield made
    faults = made.faults
    page.close()
    assert faults == []


@pytest.fixture(scope="module")
def long_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("long") / "long.jsonl"
    file.write_bytes(claude_lines(0, LONG))
    return file


@pytest.fixture(scope="module")
def long_url(long_file: Path) -> Iterator[str]:
    with served(local_viewer([long_file], token=None)) as base:
        yield session_url(base, long_file)


# Up by less than a screen, until it was painted.
SCROLL_UP = """() => new Promise((painted) => {
    document.getElementById('scroller').scrollTop -= 700;
    requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(painted)));
})"""


def session_url(base: str, file: Path) -> str:
    return f"{base}/sessions/{key_of(found_in([file])[0])}"


def scroll_to(tab: Tab, share: float) -> None:
    tab.page.evaluate(
        "(share) => { const s = document.getElementById('scroller'); s.scrollTop = share * s.scrollHeight; }", share
    )


def test_the_address_with_the_token_opens_and_the_token_leaves_the_address(tab: Tab, long_file: Path) -> None:
    with served(local_viewer([long_file], token="opens-it")) as base:
        tab.page.goto(f"{base}/#token=opens-it")
        tab.page.locator(".cards a").first.click()
        tab.until("() => document.documentElement.dataset.ready === '1'")
        assert "token" not in tab.page.url
        tab.page.goto("about:blank")  # it asks for nothing more before the server stops


def test_a_long_session_opens_at_its_end_with_few_turns(tab: Tab, long_url: str) -> None:
    tab.open(long_url)
    tab.wait_until_on_screen("answer 9999.")
    assert 0 < tab.turns() < LIMIT
    tab.whole()
    assert "5,000 prompts" in tab.page.locator("#summary").inner_text()
    assert tab.turns() < LIMIT


def test_to_the_beginning_and_back_by_keys(tab: Tab, long_url: str) -> None:
    tab.open(long_url)
    tab.whole()
    tab.page.locator("#scroller").press("Home")
    tab.wait_until_on_screen("prompt 0.")
    assert tab.turns() < LIMIT
    tab.page.locator("#scroller").press("End")
    tab.wait_until_on_screen("answer 9999.")
    assert tab.turns() < LIMIT


def test_to_the_beginning_and_back_by_the_scroll_bar(tab: Tab, long_url: str) -> None:
    tab.open(long_url)
    tab.whole()
    most = tab.turns()
    for share in (0.75, 0.5, 0.2, 0.0):
        scroll_to(tab, share)
        tab.until("(least) => document.querySelectorAll('article.turn').length > least", 5)
        most = max(most, tab.turns())
    tab.wait_until_on_screen("prompt 0.")
    tab.drag_to_the_end("answer 9999.")
    assert max(most, tab.turns()) < LIMIT


def test_who_scrolls_on_while_a_page_is_on_its_way_is_not_taken_back(tab: Tab, long_url: str) -> None:
    tab.open(long_url)
    tab.whole()
    for share in (0.75, 0.5, 0.2, 0.0):
        scroll_to(tab, share)
        tab.page.evaluate("() => new Promise(requestAnimationFrame)")
    tab.wait_until_on_screen("prompt 0.")


def test_scrolling_up_page_by_page_misses_no_turn(tab: Tab, long_url: str) -> None:
    tab.open(long_url)
    tab.wait_until_on_screen("answer 9999.")
    seen: set[str] = set()
    for _ in range(60):
        seen.update(
            tab.page.evaluate(
                "() => [...document.querySelectorAll('article.turn .text')].map((each) => each.textContent.trim())"
            )
        )
        tab.page.evaluate(SCROLL_UP)
        tab.until("() => document.getElementById('turns').getAttribute('aria-busy') === 'false'")
    numbers = sorted(int(text.rstrip(".").split()[-1]) for text in seen)
    assert numbers[-1] == 9999
    assert len(numbers) > 200
    assert numbers == list(range(numbers[0], 10_000))


def test_a_deep_link_opens_at_its_turn(tab: Tab, long_url: str) -> None:
    tab.open(long_url)
    tab.page.locator("#scroller").press("Home")
    tab.wait_until_on_screen("prompt 0.")
    key = tab.page.evaluate(
        "() => [...document.querySelectorAll('article.turn')].find((each) => /answer 9\\./.test(each.textContent)).dataset.key"
    )
    tab.open(f"{long_url}?at={key}")
    tab.wait_until_on_screen("answer 9.")
    assert not tab.on_screen("answer 9999.")


def test_prompts_are_jumped_to_before_their_page_is_loaded(tab: Tab, long_url: str) -> None:
    tab.open(long_url)
    tab.whole()
    tab.page.locator("#to-start").click()
    tab.wait_until_on_screen("prompt 0.")
    tab.page.locator("#prompt-down").click()
    tab.until("() => document.activeElement.textContent.includes('prompt 2.')")
    tab.page.keyboard.press("]")
    tab.until("() => document.activeElement.textContent.includes('prompt 4.')")
    tab.page.keyboard.press("[")
    tab.until("() => document.activeElement.textContent.includes('prompt 2.')")
    tab.page.evaluate("() => document.querySelector('.outline').open = true")
    tab.page.locator("[data-jump]", has_text="prompt 5000.").click()
    tab.wait_until_on_screen("prompt 5000.")


def test_search_covers_the_whole_session_and_leads_to_its_hit(tab: Tab, long_url: str) -> None:
    tab.open(long_url)
    tab.page.keyboard.press("/")
    tab.page.keyboard.type("ANSWER 4321.")
    tab.page.keyboard.press("Enter")
    tab.page.locator("#hits li button").first.click()
    tab.wait_until_on_screen("answer 4321.")
    assert "1 match in the whole session" in tab.page.locator("#hits").inner_text()
    assert tab.turns() < LIMIT


def test_a_growing_file_is_followed_at_the_end_and_nobody_is_pulled_down(
    tab: Tab, serve: Callable[[Path], str], tmp_path: Path
) -> None:
    file = tmp_path / "growing.jsonl"
    file.write_bytes(claude_lines(0, 100))
    url = serve(file)
    tab.open(url)
    tab.wait_until_on_screen("answer 99.")
    with file.open("ab") as end:
        end.write(claude_lines(100, 110))
    tab.wait_until_on_screen("answer 109.")
    scroll_to(tab, 0.0)
    tab.wait_until_on_screen("prompt 0.")
    with file.open("ab") as end:
        end.write(claude_lines(110, 120))
    tab.until("() => /new turns/.test(document.getElementById('state').textContent)")
    assert tab.on_screen("prompt 0.")
    tab.page.locator("#to-end").click()
    tab.wait_until_on_screen("answer 119.")


def tools_file(folder: Path) -> Path:
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make test"}}
    lines: list[dict[str, Any]] = [
        {"type": "user", "uuid": "a", "sessionId": "s", "message": {"role": "user", "content": "run the tests"}},
        {"type": "assistant", "uuid": "b", "sessionId": "s", "message": {"id": "m", "role": "assistant", "model": "demo", "content": [{"type": "thinking", "thinking": "let me think"}, call]}},
        {"type": "user", "uuid": "c", "sessionId": "s", "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "3 failed, 5 passed", "is_error": True}]}},
    ]  # fmt: skip
    file = folder / "tools.jsonl"
    file.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines) + claude_lines(0, 400))
    return file


def test_tool_runs_are_folded_and_stay_open_once_opened(tab: Tab, serve: Callable[[Path], str], tmp_path: Path) -> None:
    file = tools_file(tmp_path)
    url = serve(file)
    tab.open(url)
    tab.page.locator("#to-start").click()
    tab.wait_until_on_screen("run the tests")
    result = tab.page.get_by_text("3 failed, 5 passed")
    assert not result.is_visible()
    tab.page.locator("details.tools > summary").click()
    tab.page.locator("details.call > summary").click()
    assert result.is_visible()
    tab.page.locator("#to-end").click()
    tab.wait_until_on_screen("answer 399.")
    assert result.count() == 0
    tab.page.locator("#to-start").click()
    tab.wait_until_on_screen("run the tests")
    assert result.is_visible()


def test_everything_can_be_opened_at_once(tab: Tab, serve: Callable[[Path], str], tmp_path: Path) -> None:
    file = tools_file(tmp_path)
    url = serve(file)
    tab.open(url)
    tab.page.locator("#to-start").click()
    tab.wait_until_on_screen("run the tests")
    tab.page.keyboard.press("e")
    for text in ("3 failed, 5 passed", "let me think"):
        assert tab.page.get_by_text(text).last.is_visible()
    assert tab.page.locator("#expand").get_attribute("aria-pressed") == "true"


def test_a_search_hit_inside_a_fold_opens_it(tab: Tab, serve: Callable[[Path], str], tmp_path: Path) -> None:
    file = tools_file(tmp_path)
    url = serve(file)
    tab.open(f"{url}?q=5+passed")
    tab.page.locator("#hits li button").first.click()
    tab.page.get_by_text("3 failed, 5 passed").last.wait_for(state="visible")


def with_subagent(folder: Path) -> Path:
    """A Claude Code session whose Task call started a sub-agent with a file of its own."""
    task = {"type": "tool_use", "id": "task1", "name": "Task", "input": {"description": "count files"}}
    done = {"type": "tool_result", "tool_use_id": "task1", "content": "42 files"}
    parent = [
        {"type": "user", "uuid": "a", "sessionId": "main", "message": {"role": "user", "content": "count them"}},
        {"type": "assistant", "uuid": "b", "sessionId": "main", "message": {"id": "m", "role": "assistant", "model": "demo", "content": [task]}},
        {"type": "user", "uuid": "c", "sessionId": "main", "message": {"role": "user", "content": [done]}},
    ]  # fmt: skip
    child = [
        {"type": "user", "uuid": "d", "sessionId": "main", "agentId": "a1b2", "isSidechain": True, "message": {"role": "user", "content": "You count files."}},
        {"type": "assistant", "uuid": "e", "sessionId": "main", "agentId": "a1b2", "isSidechain": True, "message": {"id": "n", "role": "assistant", "model": "demo", "content": [{"type": "text", "text": "There are 42."}]}},
    ]  # fmt: skip
    inside = folder / "main" / "subagents"
    inside.mkdir(parents=True)
    meta = {"agentType": "counter", "description": "count files", "toolUseId": "task1", "spawnDepth": 1}
    (inside / "agent-a1b2.meta.json").write_text(json.dumps(meta))
    (inside / "agent-a1b2.jsonl").write_text("".join(json.dumps(line) + "\n" for line in child))
    (folder / "main.jsonl").write_text("".join(json.dumps(line) + "\n" for line in parent))
    return folder


def test_a_sub_agent_is_opened_in_the_place_where_it_was_started(tab: Tab, tmp_path: Path) -> None:
    folder = with_subagent(tmp_path)
    found = next(each for each in found_in([folder]) if each.subagent_of is None)
    with served(local_viewer([folder], token=None)) as base:
        tab.open(f"{base}/sessions/{key_of(found)}")
        tab.whole()
        tab.page.keyboard.press("e")
        tab.page.locator("a.child").click()
        tab.page.locator(".inside").get_by_text("There are 42.").wait_for()
        assert tab.page.locator(".inside a", has_text="whole session").count() == 1
        tab.page.goto("about:blank")


def test_the_next_turn_is_a_key_away(tab: Tab, long_url: str) -> None:
    tab.open(long_url)
    tab.page.locator("#scroller").press("Home")
    tab.wait_until_on_screen("prompt 0.")
    tab.page.keyboard.press("j")
    tab.until("() => document.activeElement.textContent.includes('answer 1.')")
    tab.page.keyboard.press("k")
    tab.until("() => document.activeElement.textContent.includes('prompt 0.')")


def test_the_place_of_the_last_visit_is_marked(browser: Any, serve: Callable[[Path], str], tmp_path: Path) -> None:
    file = tmp_path / "visited.jsonl"
    file.write_bytes(claude_lines(0, 20))
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    url = serve(file)
    first = Tab(context.new_page())
    first.open(url)
    first.wait_until_on_screen("answer 19.")
    first.page.goto(url.partition("/sessions")[0])
    with file.open("ab") as end:
        end.write(claude_lines(20, 24))
    first.open(url)
    first.wait_until_on_screen("answer 23.")
    assert "answer 19." in first.page.locator(".turn.seen").inner_text()
    context.close()
    assert first.faults == []


def test_on_a_phone_nothing_is_wider_than_the_screen(browser: Any, long_url: str) -> None:
    page = browser.new_page(viewport={"width": 360, "height": 640})
    tab = Tab(page)
    for url in (long_url, f"{long_url}/pictures", long_url.partition("/sessions")[0] + "/"):
        page.goto(url)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
    page.close()
    assert tab.faults == []


def test_dark_and_light_can_be_chosen_and_are_remembered(tab: Tab, long_url: str) -> None:
    tab.open(long_url)
    colour = "() => getComputedStyle(document.body).backgroundColor"
    light = tab.page.evaluate(colour)
    tab.page.locator("button.theme").click()
    dark = tab.page.evaluate(colour)
    tab.open(long_url)
    assert (tab.page.evaluate(colour), dark != light) == (dark, True)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_serious_fault(tab: Tab, serve: Callable[[Path], str], tmp_path: Path, theme: str) -> None:
    tab.page.emulate_media(color_scheme=theme)
    session = serve(tools_file(tmp_path))
    start = session.partition("/sessions")[0]
    tab.open(session)
    tab.whole()
    tab.page.keyboard.press("Home")
    tab.page.keyboard.press("e")
    assert serious_faults(tab) == []
    for url in (f"{session}/pictures", f"{start}/", f"{start}/nothing"):
        tab.page.goto(url)
        assert serious_faults(tab) == [], url
    tab.faults = [fault for fault in tab.faults if "404" not in fault]


def test_axe_finds_no_serious_fault_in_the_pages_of_our_own_sessions(
    tab: Tab, serve: Callable[[Path], str], tmp_path: Path
) -> None:
    # The browser keeps a loop of its own running in this thread.
    with ThreadPoolExecutor(1) as another:
        session = serve(another.submit(asyncio.run, compacted(tmp_path)).result())
    tab.open(session)
    assert serious_faults(tab) == []
    tab.page.get_by_role("link", name="Ledger").click()
    assert serious_faults(tab) == []
    tab.page.get_by_role("link", name="show").last.click()
    assert "exactly what was sent" in tab.page.locator("main").inner_text()
    assert serious_faults(tab) == []
