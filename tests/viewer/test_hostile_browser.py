"""Hostile sessions in a real browser: nothing runs, nothing is loaded."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from browserkit import Tab, served
from payloads import LITERAL, write

from harness.viewer import local_viewer
from harness.viewer.shelf import found_in, key_of


def touch_everything(tab: Tab) -> None:
    """Hover, focus and click all there is, as far as it leads nowhere else."""
    tab.page.evaluate(
        """() => {
            for (const each of document.querySelectorAll('body *')) {
                for (const kind of ['mouseover', 'mouseenter', 'focus', 'pointerdown', 'toggle', 'load', 'error'])
                    each.dispatchEvent(new Event(kind, { bubbles: true }));
                if (!each.closest('a, button, form')) each.click();
            }
        }"""
    )


def check(tab: Tab, base: str) -> None:
    assert tab.page.evaluate("() => window.__p") is None
    assert [url for url in tab.asked if not url.startswith(base)] == []
    assert (
        tab.page.evaluate(
            "() => document.querySelectorAll('#turns :is(script, style, iframe, img, math, a:not([href^=\"/\"]))').length"
        )
        == 0
    )


def test_in_a_browser_a_hostile_session_runs_nothing_and_loads_nothing(browser: Any, tmp_path: Path) -> None:
    file = write(tmp_path, " ".join(LITERAL), "<img src=x onerror=window.__p=99>.jsonl")
    tab = Tab(browser.new_page())
    with served(local_viewer([tmp_path], token=None)) as base:
        tab.page.goto(base)
        touch_everything(tab)
        check(tab, base)
        tab.open(f"{base}/sessions/{key_of(found_in([file])[0])}?q=script")
        tab.whole()
        tab.page.keyboard.press("Escape")
        tab.page.evaluate("() => document.getElementById('expand').click()")
        tab.page.locator("#to-start").click()
        touch_everything(tab)
        tab.page.wait_for_timeout(300)
        check(tab, base)
        shown = tab.page.locator("#turns").inner_text()
        for payload in LITERAL:
            assert payload in shown
    assert tab.faults == []
    tab.page.close()


def test_search_hits_show_a_payload_as_text(browser: Any, tmp_path: Path) -> None:
    file = write(tmp_path, LITERAL[0])
    tab = Tab(browser.new_page())
    with served(local_viewer([tmp_path], token=None)) as base:
        tab.open(f"{base}/sessions/{key_of(found_in([file])[0])}?q=%3Cscript%3Ewindow")
        tab.page.locator("#hits mark").first.wait_for()
        assert tab.page.locator("#hits mark").first.inner_text() == "<script>window"
        touch_everything(tab)
        check(tab, base)
        assert tab.page.locator("#hits script").count() == 0
    assert tab.faults == []
    tab.page.close()


def test_the_case_of_the_shared_corpus_runs_nothing(browser: Any, shared: Path) -> None:
    file = shared / "cases/B10/xss.jsonl"
    tab = Tab(browser.new_page())
    with served(local_viewer([file], token=None)) as base:
        tab.open(f"{base}/sessions/{key_of(found_in([file])[0])}")
        tab.whole()
        tab.page.evaluate("() => document.getElementById('expand').click()")
        touch_everything(tab)
        tab.page.wait_for_timeout(300)
        check(tab, base)
        assert "<script>window.__p=1</script>" in tab.page.locator("#turns").inner_text()
    assert tab.faults == []
    tab.page.close()
