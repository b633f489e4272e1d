"""The list of sessions: its order, its days, and what stands in it whatever else is opened."""

import os
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from lines import answer, keys, prompt, visiting, write

from harness.errors import TranscriptRefused
from harness.viewer.shelf import found_in

LINKS = r'<li><a href="/sessions/'


async def test_the_newest_word_comes_first_and_each_day_once_whenever_files_were_copied(tmp_path: Path) -> None:
    for number, day in enumerate(["05", "09", "06", "09", "05"]):
        line = prompt(f"day {day}", sessionId=f"s{number}", timestamp=f"2026-01-{day}T10:0{number}:00.000Z")
        os.utime(write(tmp_path / f"s{number}.jsonl", [line]), (1_780_000_000 + number, 1_780_000_000 + number))
    async with visiting(tmp_path) as visitor:
        page, twin = (await visitor.get("/")).text, (await visitor.get("/api/sessions")).json()["sessions"]
    days = ["Friday, 2026-01-09", "Tuesday, 2026-01-06", "Monday, 2026-01-05"]
    assert re.findall(r'class="day"><h2>([^<]*)', page) == days
    assert [each["sessionId"] for each in twin] == ["s3", "s1", "s2", "s4", "s0"]


def with_child(folder: Path) -> Path:
    write(folder / "main.jsonl", [prompt("count them", sessionId="main")])
    child = prompt("You count.", sessionId="main", agentId="a1b2", isSidechain=True)
    return write(folder / "main" / "subagents" / "agent-a1b2.jsonl", [child, answer("42", sessionId="main")])


async def test_a_sub_agent_stands_in_the_list_where_its_parent_does_not(tmp_path: Path) -> None:
    child = with_child(tmp_path)
    async with visiting(tmp_path) as visitor:
        assert len(re.findall(LINKS, (await visitor.get("/")).text)) == 1
    async with visiting(child) as visitor:
        page = (await visitor.get("/")).text
    assert ("1 session." in page, len(re.findall(LINKS, page))) == (True, 1)


async def test_a_place_that_holds_no_session_any_more_takes_no_others_away_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.viewer.shelf._FRESH", -1.0)  # every look is a new one
    good, other = write(tmp_path / "good.jsonl", [prompt("hi")]), write(tmp_path / "other.jsonl", [prompt("hi")])
    async with visiting(good, other) as visitor:
        assert len((await visitor.get("/api/sessions")).json()["sessions"]) == 2
        other.write_text("no session")
        listed, page = (await visitor.get("/api/sessions")).json(), (await visitor.get("/")).text
    assert len(listed["sessions"]) == 1
    assert listed["note"] == "other.jsonl holds no session that can be read"
    assert "other.jsonl holds no session that can be read." in page


def test_what_is_no_session_is_refused_to_who_names_it(tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_text("no session")
    with pytest.raises(TranscriptRefused):
        found_in([tmp_path / "notes.jsonl"])


@pytest.mark.parametrize("stamp", ["9999-12-31T23:59:59.999Z", "0001-01-01T00:00:00.000Z"])
@pytest.mark.parametrize("zone", ["Europe/Rome", "America/New_York"])
async def test_a_time_at_the_end_of_the_calendar_takes_no_page_away(tmp_path: Path, stamp: str, zone: str) -> None:
    write(tmp_path / "odd.jsonl", [prompt("hi", sessionId="odd", timestamp=stamp), {**answer("x"), "timestamp": stamp}])
    async with visiting(tmp_path, zone=zone) as visitor:
        key = (await keys(visitor))["odd"]
        for path in ("/", f"/sessions/{key}", f"/sessions/{key}/pictures", f"/api/sessions/{key}?html=1"):
            answered = await visitor.get(path)
            assert (path, answered.status_code) == (path, 200)
        assert stamp[:4] in (await visitor.get("/")).text


async def test_the_raw_file_is_offered_where_there_is_one(shared: Path, tmp_path: Path) -> None:
    write(tmp_path / "s.jsonl", [prompt("hi")])
    database = shared / "traces/opencode/opencode-1.18.33-small.db"
    async with visiting(tmp_path, database) as visitor:
        listed = (await visitor.get("/api/sessions")).json()["sessions"]
        offered = {
            each["format"]: "Raw file" in (await visitor.get(f"/sessions/{each['key']}")).text for each in listed
        }
    assert offered == {"claude": True, "opencode": False}
