"""Everything a reader does with a session, in a real browser, for each format; and every real session at hand."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "transcripts"))
from browserkit import Tab, served
from growing import KINDS, Growing

from harness.transcripts import Candidate, candidates, read, stitched
from harness.viewer import local_viewer
from harness.viewer.shelf import found_in, key_of

TURNS = 30
LIMIT = 60
REAL = ["claude", "codex", "gemini", "harness", "hermes", "openclaw", "opencode", "penguin", "pi", "sts", "vak"]


# How many turns there are, as a screen reader is told.
KNOWN = "() => Number(document.querySelector('article.turn').getAttribute('aria-setsize'))"
AT_TOP = """() => {
    const top = document.getElementById('scroller').getBoundingClientRect().top;
    return [...document.querySelectorAll('article.turn')].find((each) => each.getBoundingClientRect().bottom > top).dataset.key;
}"""


@pytest.fixture
def serve() -> Iterator[Callable[[Path], str]]:
    with ExitStack() as servers:
        yield lambda root: servers.enter_context(served(local_viewer([root], token=None)))


@pytest.fixture
def tab(browser: Any, serve: Callable[[Path], str]) -> Iterator[Tab]:
    made = Tab(browser.new_page(viewport={"width": 1200, "height": 800}))
    yield made
    made.page.close()
    assert made.faults == []


@pytest.fixture(scope="module", params=list(KINDS))
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Growing]:
    """A session of thirty turns in one format, whose writer is still at work."""
    made = KINDS[request.param](tmp_path_factory.mktemp("session"))
    made.say(TURNS)
    yield made
    made.close()


@pytest.fixture(scope="module")
def url(session: Growing) -> Iterator[str]:
    with served(local_viewer([session.path], token=None)) as base:
        yield f"{base}/sessions/{key_of(found_in([session.path])[0])}"


def test_it_is_opened_scrolled_and_folded(tab: Tab, url: str, session: Growing) -> None:
    tab.open(url)
    tab.wait_until_on_screen(f"answer {session.turns - 1}.")
    tab.whole()
    assert f"{session.turns} prompts" in tab.page.locator("#summary").inner_text()
    tab.hold_at(0.0, "prompt 0.")
    assert 0 < tab.turns() < LIMIT
    result = tab.page.get_by_text("result 0.", exact=True)
    run = tab.page.locator("details.tools > summary").first
    assert not result.is_visible()
    run.click()
    tab.page.locator("details.call > summary").first.click()
    assert result.is_visible()
    run.click()
    assert not result.is_visible()
    tab.hold_at(1.0, f"answer {session.turns - 1}.")
    assert 0 < tab.turns() < LIMIT


def test_it_is_searched_jumped_in_and_linked_to(tab: Tab, url: str, session: Growing) -> None:
    key = next(
        turn["key"] for turn in stitched(read(session.path).turns) if turn["content"][-1].get("text") == "answer 3."
    )
    tab.open(f"{url}?at={key}")
    tab.until("(key) => document.activeElement.dataset.key === key", key)
    tab.wait_until_on_screen("answer 3.")
    tab.whole()
    tab.page.keyboard.press("[")
    tab.until("() => document.activeElement.textContent.includes('prompt 3.')")
    tab.page.keyboard.press("]")
    tab.until("() => document.activeElement.textContent.includes('prompt 4.')")
    for words, shown in (
        ("PROMPT 7.", "prompt 7."),
        ("place 8", "look"),
        ("result 9.", "result 9."),
        ("answer 6.", "answer 6."),
    ):
        tab.page.locator("#q").fill(words)
        tab.page.keyboard.press("Enter")
        tab.until("(words) => document.querySelector('#hits mark')?.textContent === words", words.lower())
        tab.page.locator("#hits li button").first.click()
        tab.until("(text) => document.activeElement.innerText.includes(text)", shown)


def test_it_is_followed_as_it_grows_and_nobody_is_pulled_down(tab: Tab, url: str, session: Growing) -> None:
    tab.page.clock.install()
    tab.open(url)
    tab.wait_until_on_screen(f"answer {session.turns - 1}.")
    session.say(2)
    tab.page.clock.fast_forward(10_000)
    tab.wait_until_on_screen(f"answer {session.turns - 1}.")
    tab.page.evaluate("() => document.getElementById('scroller').scrollBy(0, -1000)")
    tab.until("() => document.getElementById('scroller').scrollTop > 0")
    place, before = tab.settled(AT_TOP), tab.page.evaluate(KNOWN)
    session.say()
    tab.page.clock.fast_forward(10_000)
    tab.until(f"(before) => ({KNOWN})() > before", before)
    assert tab.settled(AT_TOP) == place
    tab.page.keyboard.press("End")
    tab.wait_until_on_screen(f"answer {session.turns - 1}.")


@pytest.fixture(scope="module")
def real(shared: Path, root: Path) -> list[Candidate]:
    folders = [shared / "traces", root / "tests" / "data"]
    return [each for folder in folders for each in candidates(folder) if each.size < 4_000_000]


@pytest.mark.parametrize("name", REAL)
def test_every_real_session_is_read_from_end_to_end(
    tab: Tab, serve: Callable[[Path], str], real: list[Candidate], name: str
) -> None:
    chosen = [each for each in real if each.format == name]
    if not chosen:
        pytest.skip(f"there is no session of {name}")
    for sample in chosen:
        journey(tab, f"{serve(sample.path)}/sessions/{key_of(sample)}", sample)


def journey(tab: Tab, url: str, sample: Candidate) -> None:
    turns = stitched(read(sample.path, sample.session_id).turns)
    shown = "(key) => Boolean(document.querySelector(`article.turn[data-key='${key}']`))"
    tab.open(url)
    tab.whole()
    if not turns:
        return
    tab.until(shown, turns[-1]["key"])
    tab.page.locator("#to-start").click()
    tab.until(shown, turns[0]["key"])
    tab.page.keyboard.press("e")
    assert 0 < tab.turns() < LIMIT, sample.path
    tab.page.locator("#to-end").click()
    tab.until(shown, turns[-1]["key"])
    for words in filter(None, (words_of(turn) for turn in turns if turn["kind"] == "prompt")):
        tab.page.locator("#q").fill(words)
        tab.page.keyboard.press("Enter")
        tab.page.locator("#hits li button").first.click()
        tab.until("() => document.activeElement.matches('article.turn')")
        break
    middle = turns[len(turns) // 2]["key"]
    tab.open(f"{url}?at={middle}")
    tab.until("(key) => document.activeElement.dataset.key === key", middle)
    assert 0 < tab.turns() < LIMIT, sample.path


def words_of(turn: dict[str, Any]) -> str:
    text = " ".join(block["text"] for block in turn["content"] if block["type"] == "text")
    return next((word for word in text.split() if word.isalpha() and len(word) > 3), "")
