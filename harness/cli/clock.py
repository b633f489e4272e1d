"""Times as a person at a terminal reads them: all in the one zone that `HARNESS_ZONE` names."""

from __future__ import annotations

import os
from datetime import UTC

from harness.transcripts.times import ZONE, moment_in, zone_named

__all__ = ["told"]


def told(stamp: object) -> str:
    """A recorded time to the second, with the offset of its own day where that is not UTC's; empty for none.

    Raises `ConfigError` for a zone that nobody knows.
    """
    local = moment_in(stamp, zone_named(os.environ.get(ZONE) or "UTC"))
    if local is None:
        return ""
    shown = local.replace(tzinfo=None).isoformat(timespec="seconds")
    return shown if local.tzinfo is UTC else f"{shown}{local:%z}"
