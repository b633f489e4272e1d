"""Days break at the reader's midnight, each time by the offset of its own day (case B64)."""

import json
import re
from pathlib import Path

import httpx2
import pytest

from harness.viewer import local_viewer
from harness.viewer.shelf import found_in, key_of

ZONES = ["UTC", "America/New_York", "Asia/Kolkata", "Pacific/Apia"]


async def page(file: Path, zone: str, below: str = "") -> str:
    transport = httpx2.ASGITransport(local_viewer([file], token=None, zone=zone))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:1") as client:
        answer = await client.get(f"/sessions/{key_of(found_in([file])[0])}{below}")
    assert answer.status_code == 200
    return answer.text


@pytest.mark.parametrize("zone", ZONES)
async def test_messages_are_counted_on_the_day_of_the_zone(shared: Path, zone: str) -> None:
    expected = json.loads((shared / "cases/B64/expected.json").read_bytes())["read"]["days.jsonl"]["messages_per_day"]
    html = await page(shared / "cases/B64/days.jsonl", zone, "/pictures")
    rows = re.findall(r"<tr><td>\w+, (\d{4}-\d\d-\d\d)</td><td>(\d+)</td>", html)
    assert {name: int(number) for name, number in rows} == expected[zone]
    assert f"By the days of {zone}." in html


@pytest.mark.parametrize("zone", ZONES)
async def test_a_turn_stands_under_the_day_of_the_zone(shared: Path, zone: str) -> None:
    expected = json.loads((shared / "cases/B64/expected.json").read_bytes())["read"]["days.jsonl"]["messages_per_day"]
    html = await page(shared / "cases/B64/days.jsonl", zone)
    turns = re.findall(r'<article class="([^"]*)" data-day="\w+, ([\d-]+)"', html)
    assert {day: sum(one == day for _, one in turns) for _, day in turns} == expected[zone]
    changes = [day for at, (_, day) in enumerate(turns) if at == 0 or turns[at - 1][1] != day]
    assert [day for name, day in turns if "new-day" in name.split()] == changes


def own(folder: Path, *stamps: str) -> Path:
    lines = [
        {
            "type": "user",
            "uuid": f"u{at}",
            "sessionId": "s",
            "timestamp": stamp,
            "message": {"role": "user", "content": f"said {at}"},
        }
        for at, stamp in enumerate(stamps)
    ]
    file = folder / "s.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


async def test_the_evening_before_midnight_is_still_that_day(tmp_path: Path) -> None:
    html = await page(own(tmp_path, "2026-03-08T04:59:59Z", "2026-03-08T05:00:00Z"), "America/New_York", "/pictures")
    assert re.findall(r"<tr><td>([^<]*)</td><td>(\d+)</td>", html) == [
        ("Saturday, 2026-03-07", "1"),
        ("Sunday, 2026-03-08", "1"),
    ]


async def test_the_list_is_divided_by_the_days_of_the_zone(tmp_path: Path) -> None:
    file = own(tmp_path, "2026-03-08T04:59:59Z")
    transport = httpx2.ASGITransport(local_viewer([file], token=None, zone="America/New_York"))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:1") as client:
        html = (await client.get("/")).text
    assert '<li class="day"><h2>Saturday, 2026-03-07</h2></li>' in html
