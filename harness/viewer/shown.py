"""Values as a person reads them on a page: text that steers nothing, times in one zone, sizes, counts.

Every string that a template prints passes `visible`, so no page can forget it.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

from markupsafe import Markup, escape

from harness.text import visible as visible_text
from harness.transcripts.times import moment_of

__all__ = ["LONGEST", "UNITS", "clock", "count", "cut", "day", "first_words", "printed", "size", "visible", "whole"]

UNITS = ("B", "KB", "MB", "GB", "TB")
LONGEST = 2_000
"""Characters of a name: strangers choose models, tools, folders and ids, and may make one of megabytes."""


def visible(text: object) -> object:
    """`text` without colour codes and with every other control character as a picture of itself.

    Values that are no plain text, and markup that was made safe before, come back as they are.
    """
    return text if not isinstance(text, str) or isinstance(text, Markup) else visible_text(text)


def printed(value: object) -> object:
    """What a page prints of a value: `visible`, and no more of it than `LONGEST`, for what is no text to be read."""
    if isinstance(value, str):
        return value if isinstance(value, Markup) else visible(cut(value))
    return visible(cut(str(value))) if isinstance(value, dict | list | tuple) else value


def whole(text: str) -> Markup:
    """A text to be read, `visible` and of any length."""
    return escape(visible(text))


def cut(text: str) -> str:
    """A name, with no more of it than `LONGEST`."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def first_words(text: str, width: int = 100) -> str:
    """One line of at most `width` characters for a folded row."""
    line = " ".join(text[: width * 4].split())
    return line if len(line) <= width else line[: width - 1] + "…"


def size(number: object) -> str:
    """Bytes in the unit that keeps the figure short; empty where the size is not known."""
    if not isinstance(number, int):
        return ""
    value, unit = float(number), 0
    while value >= 1000 and unit + 1 < len(UNITS):
        value, unit = value / 1000, unit + 1
    return f"{value:.0f} {UNITS[unit]}" if unit == 0 or value >= 100 else f"{value:.1f} {UNITS[unit]}"


def count(number: object, one: str = "", many: str = "") -> str:
    """A number with thousands marked, and the word that fits it; empty for what is no number."""
    if not isinstance(number, int):
        return ""
    word = one if number == 1 else many or f"{one}s"
    return f"{number:,} {word}".rstrip() if one else f"{number:,}"


def clock(stamp: object, zone: tzinfo = UTC, *, full: bool = True) -> str:
    """A recorded time in `zone`, with the offset that held on its own day; empty for what is no time."""
    local = _local(stamp, zone)
    if local is None:
        return ""
    offset = "UTC" if not local.utcoffset() else f"{local:%z}"
    return f"{local.date()} {local:%H:%M:%S} {offset}" if full else f"{local:%H:%M:%S}"


def day(stamp: object, zone: tzinfo = UTC) -> str:
    """The day on which a recorded time falls in `zone`, with its name; empty for what is no time."""
    local = _local(stamp, zone)
    return f"{local:%A}, {local.date()}" if local else ""


def _local(stamp: object, zone: tzinfo) -> datetime | None:
    """A recorded time in `zone`; as it was recorded where the zone would lead out of the calendar."""
    moment = moment_of(stamp)
    try:
        return moment.astimezone(zone) if moment else None
    except OverflowError:
        return moment
