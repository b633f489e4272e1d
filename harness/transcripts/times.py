"""One form for the times of every format: RFC 3339, UTC, milliseconds, `Z`.

Formats write seconds, milliseconds and text, sometimes one in the place of another. A number is taken
for what gives a time that people live in; what gives none is unknown, and never 1970.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from harness.errors import ConfigError

__all__ = ["ZONE", "day_of", "moment_in", "moment_of", "stamp", "zone_named"]

ZONE = "HARNESS_ZONE"
"""The environment variable with the time zone in which people are shown times; without it, UTC."""

# 2001-09-09 to 2286-11-20 in seconds: the same digits in milliseconds begin in 1970 and end here.
_FIRST, _LAST = 1_000_000_000, 10_000_000_000
_MILLISECONDS = 1000
_PLAIN_LENGTH = len("2026-01-01T00:00:00.000Z")
_SECONDS_LENGTH = len("2026-01-01T00:00:00Z")
_read = datetime.fromisoformat
_FRACTION = re.compile(r"(\.\d{6})\d+")
_NUMBER = re.compile(r"\d{10,13}(?:\.\d+)?", re.ASCII)


def stamp(value: object) -> str | None:
    """The time a foreign value stands for, or None. Text without a zone is UTC."""
    if type(value) is str:
        try:
            # Already in the form, or all but; only whether it names a day that exists is left to ask.
            if len(value) == _PLAIN_LENGTH and value[4:20:3] == "--T::." and value[-1] == "Z":
                _read(value)
                return value
            if len(value) == _SECONDS_LENGTH and value[4::3] == "--T::Z":
                _read(value)
                return f"{value[:-1]}.000Z"
        except ValueError:
            return None
        return _from_text(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return _from_number(value)


def day_of(at: str, zone: str = "UTC") -> str:
    """The day, `YYYY-MM-DD`, on which a stamped time falls in a zone; each time by the offset of its own day."""
    local = moment_in(at, ZoneInfo(zone))
    return at[:10] if local is None else local.date().isoformat()


def zone_named(name: str) -> tzinfo:
    """The time zone of an IANA name. Raises `ConfigError` for a name nobody knows."""
    if name.upper() == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigError(f"time zone {name!r} is not known; use a name like Europe/Berlin, or UTC") from None


def moment_of(at: object) -> datetime | None:
    """The moment of a stamped time, None for what is no time. Text without a zone is UTC."""
    try:
        moment = datetime.fromisoformat(at if isinstance(at, str) else "")
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def moment_in(at: object, zone: tzinfo) -> datetime | None:
    """The moment of a stamped time in a zone, None for what is no time.

    Where the zone would lead out of the calendar, in its first and last hours, the moment as it was recorded.
    """
    moment = moment_of(at)
    try:
        return moment.astimezone(zone) if moment else None
    except OverflowError:
        return moment


def _from_text(value: str) -> str | None:
    if _NUMBER.fullmatch(value):
        return _from_number(float(value))
    try:
        moment = datetime.fromisoformat(_FRACTION.sub(r"\1", value))
    except ValueError:
        return None
    return _written(moment)


def _from_number(value: float) -> str | None:
    if not math.isfinite(value):
        return None
    seconds = value if value < _LAST else value / _MILLISECONDS
    if not _FIRST <= seconds < _LAST:
        return None
    return _written(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds))


def _written(moment: datetime) -> str | None:
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    try:
        utc = aware.astimezone(UTC)
    except OverflowError:
        return None
    # Not `strftime`, which leaves the noughts of an early year out.
    return f"{utc.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
