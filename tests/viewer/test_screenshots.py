"""The pictures in docs/: each is made in one place, and can be made anew."""

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from browserkit import needs_browser
from screenshots import PICTURES, ROOT, make


def test_every_picture_in_docs_is_one_that_is_made_and_every_one_made_is_shown() -> None:
    shown = {
        name for page in (ROOT / "docs").glob("*.md") for name in re.findall(r"images/([^)\s]+)", page.read_text())
    }
    there = {path.name for path in (ROOT / "docs/images").iterdir()}
    assert shown == there == {f"{name}.png" for name in PICTURES}


@pytest.mark.slow
def test_the_pictures_can_be_made_anew_in_their_sizes(tmp_path: Path, shared: Path) -> None:
    needs_browser()
    made = make(tmp_path, PICTURES)
    assert [path.stem for path in made] == list(PICTURES)
    for path in made:
        head = path.read_bytes()[:24]
        size = (int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big"))
        assert (head[:8], size) == (b"\x89PNG\r\n\x1a\n", PICTURES[path.stem][1:3])
