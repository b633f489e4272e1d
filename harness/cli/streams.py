"""Standard streams that are not there: a command runs with any of the three closed."""

from __future__ import annotations

import io
import sys
from typing import Any, TextIO

__all__ = ["nowhere", "open_streams"]


class _Nowhere(io.BytesIO):
    """Takes everything and keeps nothing; there is nothing to read."""

    def write(self, data: Any, /) -> int:
        return len(data)


def nowhere() -> TextIO:
    """A stream that goes nowhere."""
    return io.TextIOWrapper(_Nowhere(), encoding="utf-8")


def open_streams() -> None:
    """Put a stream that goes nowhere in the place of each that the caller closed, as `>&-` does."""
    sys.stdin, sys.stdout, sys.stderr = (each or nowhere() for each in (sys.stdin, sys.stdout, sys.stderr))
