"""Times as a person at a terminal reads them: all in the one zone that `HARNESS_ZONE` names."""

from __future__ import annotations

import os
from datetime import UTC

from harness.transcripts.times import ZONE, moment_of, zone_named

__all__ = ["told"]


def told(stamp: object) -> str:
    """A recorded time to the second, with the offset of its own day where that is not UTC's; empty for none.

    Raises `ConfigError` for a zone that nobody knows.
    """
    moment = moment_of(stamp)
    if moment is None:
        return ""
    local = moment.astimezone(zone_named(os.environ.get(ZONE) or "UTC"))
    return f"{local:%Y-%m-%dT%H:%M:%S}" if local.tzinfo is UTC else f"{local:%Y-%m-%dT%H:%M:%S%z}"
