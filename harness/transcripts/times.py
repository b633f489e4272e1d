"""One form for the times of every format: RFC 3339, UTC, milliseconds, `Z`.

Formats write seconds, milliseconds and text, sometimes one in the place of another. A number is taken
for what gives a time that people live in; what gives none is unknown, and never 1970.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

__all__ = ["day_of", "stamp"]

# 2001-09-09 to 2286-11-20 in seconds: the same digits in milliseconds begin in 1970 and end here.
_FIRST, _LAST = 1_000_000_000, 10_000_000_000
_MILLISECONDS = 1000
_PLAIN_LENGTH = len("2026-01-01T00:00:00.000Z")
_FRACTION = re.compile(r"(\.\d{6})\d+")
_NUMBER = re.compile(r"\d{10,13}(?:\.\d+)?", re.ASCII)


def stamp(value: object) -> str | None:
    """The time a foreign value stands for, or None. Text without a zone is UTC."""
    if isinstance(value, str):
        if len(value) == _PLAIN_LENGTH and value[-1] == "Z" and value[10] == "T" and value[19] == ".":
            # Already in the form; only whether it names a day that exists is left to ask.
            try:
                datetime.fromisoformat(value)
            except ValueError:
                return None
            return value
        return _from_text(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return _from_number(value)


def day_of(at: str, zone: str = "UTC") -> str:
    """The day, `YYYY-MM-DD`, on which a stamped time falls in a zone; each time by the offset of its own day."""
    return f"{datetime.fromisoformat(at).astimezone(ZoneInfo(zone)):%Y-%m-%d}"


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
    return utc.strftime("%Y-%m-%dT%H:%M:%S.") + f"{utc.microsecond // 1000:03d}Z"
