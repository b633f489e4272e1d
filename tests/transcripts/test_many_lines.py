"""Very many lines that say nothing, blank or damaged: no page and no poll reads more of them than a limit."""

import json
import sys
from functools import partial
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from effort import lines_run

from harness.transcripts import Page, join, page, read, windows

MOST = 1_000
FILLERS = {"blank": b"\n", "spaces": b" \r\n", "damaged": b"{x\n", "no record": b"0\n"}


def said(number: int) -> bytes:
    message = {"role": "user", "content": f"q{number}"}
    return json.dumps({"type": "user", "uuid": f"u{number}", "sessionId": "s", "message": message}).encode() + b"\n"


@pytest.fixture(autouse=True)
def few_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "_MOST_LINES", MOST)


def all_pages(path: Path, window: int) -> list[list[Page]]:
    back = [page(path, window=window, min_turns=12)]
    while back[0].before is not None:
        back.insert(0, page(path, where="before", cursor=back[0].before, window=window, min_turns=12))
    forth = [page(path, where="head", window=window, min_turns=12)]
    while not forth[-1].at_end:
        forth.append(page(path, where="after", cursor=forth[-1].after, window=window, min_turns=12))
    return [back, forth]


@pytest.mark.parametrize("window", [4096, 1024 * 1024])
@pytest.mark.parametrize("filler", FILLERS)
def test_no_page_has_more_lines_than_a_limit_and_none_is_lost(tmp_path: Path, filler: str, window: int) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(said(0) + FILLERS[filler] * 10_000 + said(1))

    for pages in all_pages(path, window):
        # The smallest window is read whatever is in it.
        assert max(one.lines for one in pages) <= max(MOST, windows.FLOOR // len(FILLERS[filler]) + 1)
        assert sum(one.lines for one in pages) == 10_002
        assert join(pages) == read(path).turns


@pytest.mark.parametrize("filler", FILLERS)
def test_a_poll_reads_as_much_whatever_number_of_such_lines_stands_in_front(tmp_path: Path, filler: str) -> None:
    line = FILLERS[filler].removesuffix(b"\n") + b" " * 300 + b"\n"
    effort = []
    for count in (5_000, 20_000):
        path = tmp_path / f"{count}.jsonl"
        path.write_bytes(said(0) + line * count)
        seen = page(path, min_turns=12)
        with path.open("ab") as end:
            end.write(line)
        effort.append(lines_run(partial(page, path, where="after", cursor=seen.after, min_turns=12)))

    assert effort[1] < 2 * effort[0]


@pytest.mark.parametrize("filler", FILLERS)
def test_who_follows_behind_very_many_such_lines_gets_what_is_said_next(tmp_path: Path, filler: str) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(said(0) + FILLERS[filler] * 20_000)
    seen = page(path, window=4096)

    with path.open("ab") as end:
        end.write(said(1))
    next_one = page(path, where="after", cursor=seen.after, window=4096)

    assert [turn.text for turn in next_one.turns] == ["q1"]


@pytest.mark.parametrize("filler", FILLERS)
def test_a_follower_behind_by_more_lines_than_a_page_has_gets_the_end_and_is_told(tmp_path: Path, filler: str) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(said(0))
    seen = page(path)

    with path.open("ab") as end:
        end.write(FILLERS[filler] * 20_000 + said(1))
    late = page(path, where="after", cursor=seen.after)

    assert (late.gap, late.at_end, [turn.text for turn in late.turns]) == (True, True, ["q1"])
    assert late.lines <= windows.FLOOR
