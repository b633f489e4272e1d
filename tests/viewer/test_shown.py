"""What pages print: characters that steer nothing, and times in one zone."""

import pytest
from markupsafe import Markup

from harness.errors import ConfigError
from harness.transcripts.times import zone_named
from harness.viewer.shown import clock, count, first_words, size, visible


def test_control_characters_are_shown_and_not_obeyed() -> None:
    assert visible("a\x1b[2Jb\x07c\x9bd") == "a␛[2Jb␇c⟨U+009B⟩d"


def test_colour_codes_are_dropped() -> None:
    assert visible("\x1b[31mred\x1b[0m") == "red"


def test_text_cannot_turn_its_own_direction_round() -> None:
    assert visible("\u202eevil\u202c") == "⟨U+202E⟩evil⟨U+202C⟩"


def test_tabs_and_line_ends_stay() -> None:
    assert visible("a\tb\nc\r\nd") == "a\tb\nc\nd"


def test_markup_is_not_touched_again() -> None:
    made = Markup("<b>x</b>")
    assert visible(made) is made


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("UTC", "2026-11-01 06:30:00 UTC"),
        ("America/New_York", "2026-11-01 01:30:00 -0500"),
        ("Asia/Kolkata", "2026-11-01 12:00:00 +0530"),
    ],
)
def test_a_time_is_shown_with_the_offset_of_its_own_day(zone: str, shown: str) -> None:
    assert clock("2026-11-01T06:30:00.000Z", zone_named(zone)) == shown


def test_the_hour_before_the_clock_change_has_the_other_offset() -> None:
    assert clock("2026-11-01T05:30:00Z", zone_named("America/New_York")) == "2026-11-01 01:30:00 -0400"


def test_what_is_no_time_is_shown_as_nothing() -> None:
    assert [clock(None), clock(""), clock("yesterday")] == ["", "", ""]


def test_an_unknown_zone_is_an_error_that_says_what_to_write() -> None:
    with pytest.raises(ConfigError, match="Europe/Berlin"):
        zone_named("Middle/Earth")


def test_figures_are_short() -> None:
    assert [size(999), size(3_470_000), size(1_000_000_000), size(None)] == ["999 B", "3.5 MB", "1.0 GB", ""]
    assert [count(1, "match", "matches"), count(1234, "turn"), count(1408)] == ["1 match", "1,234 turns", "1,408"]


def test_a_preview_is_one_line() -> None:
    assert first_words("a\n b   c", 10) == "a b c"
    assert first_words("x" * 50, 10) == "x" * 9 + "…"
