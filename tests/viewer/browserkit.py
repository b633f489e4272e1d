"""A real browser on a real server, for the tests that look at pages as people do."""

import json
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette

CHROMIUM = os.environ.get("HARNESS_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
STEADY = 4  # times that something has to be the same to be taken for settled
PATIENCE = 20_000  # milliseconds: a failsafe for a page that hangs, nothing that a test measures


def needs_browser() -> None:
    """Skip, and say what is missing."""
    pytest.importorskip("playwright", reason="the browser tests need the package playwright")
    if CHROMIUM is None:
        pytest.skip("the browser tests need chromium (Debian: apt-get install chromium), or HARNESS_CHROMIUM")


@contextmanager
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@contextmanager
def served(app: Starlette) -> Iterator[str]:
    """The app behind a real server in a thread; gives its address."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)
        listener.close()


class Tab:
    """A page, with everything it complained about and every address it asked for."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.faults: list[str] = []
        self.asked: list[str] = []
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda message: self._heard(message.type, message.text))
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))

    def _heard(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.faults.append(text)

    def until(self, expression: str, argument: object = None) -> None:
        """Wait until a function of the page says true. The page's own policy forbids Playwright's way of waiting."""
        for _ in range(PATIENCE // 25):
            if self.page.evaluate(expression, argument):
                return
            self.page.wait_for_timeout(25)
        raise AssertionError(f"never true: {expression} {argument}; faults: {self.faults}")

    def settled(self, expression: str) -> object:
        """What an expression gives once it gives the same again and again."""
        given: list[object] = []
        while len(given) < STEADY or len(set(given[-STEADY:])) > 1:
            assert len(given) < PATIENCE // 50, f"never the same: {expression}"
            given.append(self.page.evaluate(expression))
            self.page.wait_for_timeout(50)
        return given[-1]

    def open(self, url: str) -> None:
        """Open a session and wait until its script has taken over."""
        self.page.goto(url)
        self.until("() => document.documentElement.dataset.ready === '1'")

    def whole(self) -> None:
        """Wait until the totals of the whole session are there."""
        self.until("() => !/Totals follow|Counting/.test(document.getElementById('summary').textContent)")

    def turns(self) -> int:
        return int(self.page.evaluate("() => document.querySelectorAll('article.turn').length"))

    def keys(self) -> list[str]:
        return list(
            self.page.evaluate("() => [...document.querySelectorAll('article.turn')].map((each) => each.dataset.key)")
        )

    def on_screen(self, text: str) -> bool:
        """Whether a turn with this text is within the screen now."""
        return bool(self.page.evaluate(ON_SCREEN, text))

    def wait_until_on_screen(self, text: str) -> None:
        self.until(ON_SCREEN, text)

    def drag_to_the_end(self, text: str) -> None:
        """Hold the scroll bar at its end, which moves while pages come in, until the text is there."""
        self.hold_at(1.0, text)

    def hold_at(self, share: float, text: str) -> None:
        """Hold the scroll bar at a share of its length until the text is on the screen."""
        self.until(HELD_AT % ON_SCREEN, [share, text])


def serious_faults(tab: Tab) -> list[tuple[str, list[str]]]:
    """What axe finds on the page that keeps somebody from reading it."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs the package axe-playwright-python")
    found = axe.Axe().run(tab.page).response["violations"]
    serious = [fault for fault in found if fault["impact"] in ("serious", "critical")]
    return [(fault["id"], [node["html"][:120] for node in fault["nodes"][:3]]) for fault in serious]


HELD_AT = """([share, text]) => {
    const scroller = document.getElementById('scroller');
    scroller.scrollTop = share * scroller.scrollHeight;
    return (%s)(text);
}"""

ON_SCREEN = """(text) => [...document.querySelectorAll('article.turn')].some((each) => {
    const box = each.getBoundingClientRect();
    const scroller = document.getElementById('scroller').getBoundingClientRect();
    return each.textContent.includes(text) && box.bottom > scroller.top && box.top < scroller.bottom;
})"""


def claude_lines(start: int, end: int, *, prompt: str = "prompt", answer: str = "answer") -> bytes:
    """Lines of a Claude Code session: a prompt and an answer by turns, numbered; every tenth answer calls a tool."""
    return b"".join(_claude_line(number, prompt, answer) for number in range(start, end))


def _claude_line(number: int, prompt: str, answer: str) -> bytes:
    shared = {
        "uuid": f"u{number}",
        "sessionId": "long",
        "timestamp": f"2026-01-{1 + number // 3600 % 28:02}T{number // 60 % 24:02}:{number % 60:02}:00.000Z",
    }
    if number % 2 == 0:
        line = {"type": "user", **shared, "message": {"role": "user", "content": f"{prompt} {number}."}}
    else:
        content: list[dict[str, object]] = [{"type": "text", "text": f"{answer} {number}."}]
        message = {
            "id": f"m{number}",
            "role": "assistant",
            "model": "demo-model",
            "content": content,
            "usage": {"input_tokens": 5, "output_tokens": 7, "cache_read_input_tokens": 100},
        }
        line = {"type": "assistant", **shared, "message": message}
    return json.dumps(line).encode() + b"\n"
