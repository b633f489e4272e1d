"""Files that are too large to be held: they open, scroll, search and close in bounded memory.

The file of 1 GB is made only where HARNESS_LARGE=1 asks for it; it needs that much disk.
"""

import base64
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from browserkit import Tab, claude_lines, served

from harness.viewer import local_viewer
from harness.viewer.shelf import found_in, key_of

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(30_000_000)
MOST = 400  # megabytes of a worker while it reads a line of 40 MB, twice in memory while it is parsed
LEAST_LARGE = 1_000_000_000


@pytest.fixture
def tab(browser: Any) -> Iterator[Tab]:
    made = Tab(browser.new_page(viewport={"width": 1200, "height": 800}))
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


def with_a_picture(file: Path) -> Path:
    """A session with a picture of 30 MB in the middle, 40 MB as a line."""
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PICTURE).decode()}
    content = [{"type": "text", "text": "look at this screen"}, {"type": "image", "source": source}]
    message = {"role": "user", "content": content}
    line = {
        "type": "user",
        "uuid": "picture",
        "sessionId": "long",
        "timestamp": "2026-01-02T00:00:00Z",
        "message": message,
    }
    file.write_bytes(claude_lines(0, 200) + json.dumps(line).encode() + b"\n" + claude_lines(200, 400))
    return file


def peak_of_workers() -> float:
    """The most memory, in megabytes, that one worker of this process ever held. Linux only."""
    peaks = [0.0]
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            told = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        except OSError:
            continue  # it ended meanwhile
        if told["PPid"].strip() == str(os.getpid()) and told["Name"].strip().startswith("python"):
            peaks.append(int(told["VmHWM"].split()[0]) / 1000)
    return max(peaks)


def test_a_line_of_40_mb_stops_nobody(tab: Tab, serve: Callable[[Path], str], tmp_path: Path) -> None:
    url = serve(with_a_picture(tmp_path / "picture.jsonl"))
    tab.open(url)
    tab.wait_until_on_screen("answer 399.")
    tab.whole()
    tab.hold_at(0.0, "prompt 0.")
    assert tab.turns() < 60
    tab.page.locator("#q").fill("answer 199.")
    tab.page.keyboard.press("Enter")
    tab.until("() => document.querySelector('#hits mark')?.textContent === 'answer 199.'")
    tab.page.locator("#hits li button").first.click()
    tab.until("() => document.activeElement.innerText.includes('answer 199.')")
    tab.page.keyboard.press("End")
    tab.wait_until_on_screen("answer 399.")
    assert tab.page.evaluate("() => document.documentElement.outerHTML.length") < 1_000_000
    if Path("/proc/self/status").exists():
        assert peak_of_workers() < MOST


@pytest.fixture(scope="module")
def large_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    if os.environ.get("HARNESS_LARGE") != "1":
        pytest.skip("the file of 1 GB is opt-in: HARNESS_LARGE=1")
    file = tmp_path_factory.mktemp("large") / "large.jsonl"
    number = 0
    with file.open("wb") as out:
        while out.tell() < LEAST_LARGE:
            out.write(claude_lines(number, number + 2_000, prompt="prompt " + "so much to say " * 200))
            number += 2_000
        out.write(claude_lines(number, number + 20, answer="last answer"))
    yield file
    file.unlink()


def test_a_file_of_1_gb_opens_and_is_read_in_bounded_memory(
    tab: Tab, serve: Callable[[Path], str], large_file: Path
) -> None:
    tab.open(serve(large_file))
    tab.wait_until_on_screen("last answer")
    tab.until("() => /totals are not known yet/.test(document.getElementById('summary').textContent)")
    tab.page.keyboard.press("Home")
    tab.wait_until_on_screen("answer 1.")
    tab.page.keyboard.press("]")
    tab.page.locator("#q").fill("ANSWER 3.")
    tab.page.keyboard.press("Enter")
    tab.until("() => document.querySelector('#hits mark')?.textContent === 'answer 3.'")
    tab.page.locator("#to-end").click()
    tab.wait_until_on_screen("last answer")
    assert 0 < tab.turns() < 60
    if Path("/proc/self/status").exists():
        assert peak_of_workers() < MOST
