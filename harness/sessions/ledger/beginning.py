"""A session that is made in one go is there whole or not at all, whatever fails on the way."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

from harness.errors import FileExists, FileMissing, PersistenceError
from harness.filesystem import disk
from harness.sessions.lines.anchor import ANCHOR_BYTES, read_anchor
from harness.sessions.lines.layout import SessionFiles

__all__ = ["put_block", "whole_or_nothing"]

_log = logging.getLogger("harness.sessions")


@contextlib.contextmanager
def whole_or_nothing(files: SessionFiles) -> Iterator[None]:
    """Make a session that is not there for the block, in a worker, while its lock is held.

    Where the block fails there is none again, and the anchor says what it said before. Where even that fails, the
    `PersistenceError` says that the session is there.
    """
    before = disk.read(files.anchor, 0, ANCHOR_BYTES) if read_anchor(files.anchor) else None
    try:
        yield
    except FileExists:
        raise  # somebody else's, who did not ask for the lock
    except BaseException as error:
        try:
            _take_away(files, before)
        except (FileMissing, PersistenceError) as second:
            _log.warning("what is left of the session in %s could not be removed: %s", files.ledger, second)
            if disk.has_file(files.ledger):
                raise PersistenceError(
                    f"{error}; the new session in {files.ledger} is there all the same, delete it before a second try"
                ) from error
        raise


def put_block(files: SessionFiles, block: bytes) -> None:
    """Replace the anchor at once; where the disk has no room for a second one, overwrite the one that is there."""
    try:
        disk.replace(files.anchor, block, sync=True)
    except PersistenceError:
        if not disk.overwrite(files.anchor, block, sync=True):
            raise


def _take_away(files: SessionFiles, before: bytes | None) -> None:
    disk.remove(files.ledger)  # first: from here on there is no session
    disk.remove(files.context)
    if before is None:
        disk.remove(files.anchor)
    else:
        put_block(files, before)
    disk.sync_folder(files.folder)
