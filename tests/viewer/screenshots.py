"""Makes the pictures that docs/ shows: `make pictures`, or with a folder as the argument to have them there.

It takes a browser. Pictures of a long session show one of the folder `../shared`, and stay as they are without it.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from starlette.requests import Request

sys.path.insert(0, str(Path(__file__).parent))
from browserkit import Tab, chromium, served
from conversations import branched, chosen, compacted

from harness.transcripts import read
from harness.viewer import viewer_app
from harness.viewer.shelf import Shelf, found_in, key_of, listed_in

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("HARNESS_SHARED") or ROOT.parent / "shared")
LONG = SHARED / "traces/claude/a7da6a22-facc-4fcd-8bab-f83c87862004.jsonl"
LONG_AT = "New feature: we support .zip"
"""The words of the prompt at which the long session is shown."""

Make = Callable[[Path], Awaitable[Path]]


class Picture(NamedTuple):
    """A picture: what of, its size, and what a person does to see that on the page of the session."""

    of: Make | Path
    width: int
    height: int
    show: Callable[[Tab, str], None]
    dark: bool = False


def _ledger(tab: Tab, session: str) -> None:
    tab.page.goto(f"{session}/ledger?whole=1")


def _request(tab: Tab, session: str) -> None:
    _ledger(tab, session)
    tab.page.get_by_role("link", name="show", exact=True).last.click()
    tab.page.get_by_role("heading", name="What it chose").wait_for()


def _branch(tab: Tab, session: str) -> None:
    _ledger(tab, session)
    tab.page.get_by_role("link", name="left: read it").click()
    tab.page.get_by_role("heading", name="Branch:").wait_for()


def _session(tab: Tab, session: str) -> None:
    key = next(turn.key for turn in read(LONG).turns if turn.text.startswith(LONG_AT))
    tab.open(f"{session}?at={key}")
    tab.whole()
    tab.settled("() => document.getElementById('scroller').scrollTop")


def _pictures(tab: Tab, session: str) -> None:
    tab.page.goto(f"{session}/pictures")


PICTURES = {
    "viewer-session": Picture(LONG, 1100, 680, _session),
    "viewer-dark": Picture(LONG, 1100, 680, _session, dark=True),
    "viewer-phone": Picture(LONG, 390, 780, _session),
    "viewer-pictures": Picture(LONG, 1100, 900, _pictures),
    "viewer-ledger": Picture(compacted, 1100, 760, _ledger),
    "viewer-request": Picture(chosen, 1100, 760, _request),
    "viewer-branch": Picture(branched, 1100, 420, _branch),
}


def make(folder: Path, names: Iterable[str]) -> list[Path]:
    """Write these pictures into a folder; those that cannot be made here are left out. Gives the files."""
    wanted = [name for name in names if not isinstance(of := PICTURES[name].of, Path) or of.exists()]
    with chromium() as browser:
        return [_take(browser, PICTURES[name], folder / f"{name}.png") for name in wanted]


def _take(browser: Any, picture: Picture, place: Path) -> Path:
    size = {"width": picture.width, "height": picture.height}
    with _shown(picture.of) as session:
        page = browser.new_page(viewport=size, color_scheme="dark" if picture.dark else "light")
        tab = Tab(page)
        picture.show(tab, session)
        page.screenshot(path=place)
        page.close()
    assert tab.faults == [], tab.faults
    return place


@contextmanager
def _shown(of: Make | Path) -> Iterator[str]:
    """The address of a session, which is served meanwhile."""
    with TemporaryDirectory() as folder:
        file = of if isinstance(of, Path) else _made(of, Path(folder))
        shelf = Shelf(partial(listed_in, (file,)))

        async def everything(_request: Request) -> Shelf:
            return shelf

        with served(viewer_app(everything)) as address:  # which names no place on the machine
            yield f"{address}/sessions/{key_of(*found_in([file]))}"


def _made(of: Make, folder: Path) -> Path:
    # The browser keeps a loop of its own running in this thread.
    with ThreadPoolExecutor(1) as another:
        return another.submit(lambda: asyncio.run(of(folder))).result()  # type: ignore[arg-type]


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/images"
    for each in make(target, PICTURES):
        print(each)
