"""Times of strangers: whatever a file says, it is a time in the one form or none, and no zone leads out of the calendar."""

import pytest

from harness.transcripts.times import day_of, moment_in, stamp, zone_named


@pytest.mark.parametrize(
    ("value", "stamped"),
    [
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
        ("0999-07-01T12:00:00+02:00", "0999-07-01T10:00:00.000Z"),
        ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
        ("9999-12-31T23:59:59-14:00", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("2026-01-01T00:00:00.9999Z", "2026-01-01T00:00:00.999Z"),
        ("2026-02-24T10:00:03Z", "2026-02-24T10:00:03.000Z"),
        ("2026-02-30T10:00:03Z", None),
        ("2026-W09-2T10:00:03Z", "2026-02-24T10:00:03.000Z"),
        ("2026-W09-2T10:00:03.123Z", "2026-02-24T10:00:03.123Z"),
        ("2026-02-24T100003.1Z", "2026-02-24T10:00:03.100Z"),
    ],
)
def test_a_time_is_stamped_in_the_one_form_or_not_at_all(value: str, stamped: str | None) -> None:
    assert stamp(value) == stamped


@pytest.mark.parametrize(
    ("at", "zone", "shown"),
    [
        ("9999-12-31T23:59:59.999Z", "Europe/Rome", "9999-12-31T23:59:59.999000+00:00"),
        ("0001-01-01T00:00:00.000Z", "America/New_York", "0001-01-01T00:00:00+00:00"),
        ("2026-03-08T18:30:00.000Z", "Asia/Kolkata", "2026-03-09T00:00:00+05:30"),
    ],
)
def test_a_zone_that_leads_out_of_the_calendar_is_not_followed(at: str, zone: str, shown: str) -> None:
    found = moment_in(at, zone_named(zone))

    assert found is not None
    assert found.isoformat() == shown
    assert day_of(at, zone) == shown[:10]
