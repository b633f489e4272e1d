"""One journey through a session of each format in a real browser, and each format's file while it grows."""

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from browserkit import Tab, chromium, needs_browser, served
from conversations import compacted

from harness.transcripts import Candidate, candidates, read, stitched
from harness.viewer import local_viewer
from harness.viewer.shelf import found_in, key_of

FORMATS = ["claude", "codex", "gemini", "harness", "hermes", "openclaw", "opencode", "penguin", "pi", "sts", "vak"]
GROWING = ["claude", "codex", "harness", "openclaw", "pi", "vak"]
LIMIT = 60


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    needs_browser()
    with chromium() as opened:
        yield opened


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


@pytest.fixture(scope="module")
def samples(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Candidate]:
    """The session with the most to see of each format: the shared corpus, our own data, and one made now."""
    own = tmp_path_factory.mktemp("own")
    # The browser keeps a loop of its own running in this thread.
    with ThreadPoolExecutor(1) as another:
        another.submit(asyncio.run, compacted(own)).result()
    shared = Path(os.environ.get("HARNESS_SHARED") or root.parent / "shared")
    found = [
        each
        for folder in (shared / "traces", root / "tests" / "data", own)
        if folder.exists()
        for each in candidates(folder)
    ]
    # The corpus may be missing; what it has of a format is larger than what we made ourselves.
    small = sorted((each for each in found if each.size < 4_000_000), key=turns_in)
    return {each.format: each for each in small}


def turns_in(sample: Candidate) -> int:
    return len(read(sample.path, sample.session_id).turns)


@pytest.fixture(params=FORMATS)
def sample(request: pytest.FixtureRequest, samples: dict[str, Candidate]) -> Candidate:
    if request.param not in samples:
        pytest.skip(f"there is no sample of {request.param}")
    return samples[request.param]


def test_a_session_can_be_opened_scrolled_searched_and_linked_to(
    tab: Tab, serve: Callable[[Path], str], sample: Candidate
) -> None:
    turns = stitched(read(sample.path, sample.session_id).turns)
    url = f"{serve(sample.path)}/sessions/{key_of(sample)}"
    tab.open(url)
    tab.whole()
    shown = "(key) => Boolean(document.querySelector(`article.turn[data-key='${key}']`))"
    tab.until(shown, turns[-1]["key"])
    tab.page.locator("#to-start").click()
    tab.until(shown, turns[0]["key"])
    tab.page.keyboard.press("e")
    assert 0 < tab.turns() < LIMIT
    tab.page.locator("#to-end").click()
    tab.until(shown, turns[-1]["key"])
    spoken = next(turn for turn in turns if turn["kind"] == "prompt" and words_of(turn))
    tab.page.locator("#q").fill(words_of(spoken))
    tab.page.keyboard.press("Enter")
    tab.page.locator("#hits li button").first.click()
    tab.until("() => document.activeElement.matches('article.turn')")
    middle = turns[len(turns) // 2]["key"]
    tab.open(f"{url}?at={middle}")
    tab.until("(key) => document.activeElement.dataset.key === key", middle)
    assert 0 < tab.turns() < LIMIT


def words_of(turn: dict[str, Any]) -> str:
    text = " ".join(block["text"] for block in turn["content"] if block["type"] == "text")
    return next((word for word in text.split() if word.isalpha() and len(word) > 3), "")


@pytest.mark.parametrize("name", GROWING)
def test_a_file_of_each_format_is_followed_while_it_grows(
    tab: Tab, serve: Callable[[Path], str], samples: dict[str, Candidate], tmp_path: Path, name: str
) -> None:
    if name not in samples:
        pytest.skip(f"there is no sample of {name}")
    raw = samples[name].path.read_bytes()
    lines = [line + b"\n" for line in raw.split(b"\n") if line]
    file = tmp_path / samples[name].path.name
    half = len(lines) // 2
    file.write_bytes(b"".join(lines[:half]))
    found = found_in([file])[0]
    tab.open(f"{serve(file)}/sessions/{key_of(found)}")
    with file.open("ab") as end:
        end.write(b"".join(lines[half:]))
    last = stitched(read(file).turns)[-1]["key"]
    tab.until("(key) => Boolean(document.querySelector(`article.turn[data-key='${key}']`))", last)
