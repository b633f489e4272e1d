"""One zone for every time that the command prints."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "transcripts"))
from driver import harness
from sample_session import write

from harness.cli.clock import told
from harness.errors import ConfigError


@pytest.mark.parametrize(
    ("zone", "stamp", "shown"),
    [
        (None, "2026-03-08T04:59:59Z", "2026-03-08T04:59:59"),
        ("UTC", "2026-03-08T04:59:59.123456Z", "2026-03-08T04:59:59"),
        ("America/New_York", "2026-03-08T04:59:59Z", "2026-03-07T23:59:59-0500"),
        ("America/New_York", "2026-11-01T05:30:00Z", "2026-11-01T01:30:00-0400"),
        ("America/New_York", "2026-11-01T06:30:00Z", "2026-11-01T01:30:00-0500"),
        ("Asia/Kolkata", "2026-03-08T18:30:00Z", "2026-03-09T00:00:00+0530"),
        ("Asia/Kolkata", "", ""),
        ("Europe/Rome", "9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59"),
        ("America/New_York", "0001-01-01T00:00:00.000Z", "0001-01-01T00:00:00"),
        (None, "0001-01-01T00:00:00.000Z", "0001-01-01T00:00:00"),
    ],
)
def test_a_time_is_told_in_the_zone_of_the_setting(
    monkeypatch: pytest.MonkeyPatch, zone: str | None, stamp: str, shown: str
) -> None:
    monkeypatch.delenv("HARNESS_ZONE", raising=False)
    if zone is not None:
        monkeypatch.setenv("HARNESS_ZONE", zone)
    assert told(stamp) == shown


def test_a_zone_that_nobody_knows_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_ZONE", "Middle/Earth")
    with pytest.raises(ConfigError, match="use a name like Europe/Berlin"):
        told("2026-03-08T04:59:59Z")


def test_list_and_show_use_the_zone(tmp_path: Path) -> None:
    path = write(tmp_path)
    listed = harness("transcripts", "list", ".", cwd=tmp_path, HARNESS_ZONE="Europe/Berlin").stdout
    shown = harness("transcripts", "show", path.name, cwd=tmp_path, HARNESS_ZONE="Europe/Berlin").stdout
    assert "2026-03-01T11:00:13+0100" in listed
    assert "2026-03-01 11:00:02+0100" in shown
