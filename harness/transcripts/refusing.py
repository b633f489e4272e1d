"""One file that no reader was made for costs itself, and not the list or the page that it stands in."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import HarnessError, TranscriptRefused

__all__ = ["path_text", "refusing"]

_SHOWN = 200
_log = logging.getLogger("harness.transcripts")


def path_text(path: str | os.PathLike[str]) -> str:
    r"""A path as text that can be stored and sent; bytes of a name that are no UTF-8 are shown as `\xff`."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


@contextmanager
def refusing(path: Path) -> Iterator[None]:
    """Whatever the block raises that is no error of this library becomes the refusal of a file, and is logged.

    Raises `TranscriptRefused` with the code `unreadable`.
    """
    try:
        yield
    except HarnessError:
        raise
    except Exception as error:  # anything may stand in a file, and one must not take the others away
        name, what = path_text(path), f"{type(error).__name__}: {str(error)[:_SHOWN]}"
        _log.warning("the reader failed at %s: %s", name, what)
        _log.debug("where it failed", exc_info=True)
        raise TranscriptRefused("unreadable", f"{name} cannot be read: {what}; report it with the file") from error
