"""Standard streams that are not there: a command runs with any of the three closed."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Any, TextIO

__all__ = ["nowhere", "open_streams"]


class _Nowhere(io.BytesIO):
    """Takes everything and keeps nothing; there is nothing to read."""

    def write(self, data: Any, /) -> int:
        return len(data)


class _Closed(_Nowhere):
    """What is printed here is lost: whoever prints is told, as on a disk that is full."""

    def write(self, _data: Any, /) -> int:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


def nowhere() -> TextIO:
    """A stream that goes nowhere."""
    return io.TextIOWrapper(_Nowhere(), encoding="utf-8")


def open_streams() -> None:
    """Put a stream in the place of each that the caller closed, as `>&-` does.

    Input is at its end, and words for a person go nowhere. Output cannot be written: a command that is asked for
    some must not end as if it had given it.
    """
    sys.stdin, sys.stderr = (each or nowhere() for each in (sys.stdin, sys.stderr))
    sys.stdout = sys.stdout or io.TextIOWrapper(_Closed(), encoding="utf-8")
