"""Taking a session away for good, so that half a deletion is a deletion and no snapshot can bring it back.

The ledger gets another name first: from that moment on there is no session. What the new name stands for, the tombstone
in the anchor included, can be made from it, so whoever comes next finishes what was cut off.
"""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path

from harness.errors import FileMissing, PersistenceError
from harness.filesystem import disk
from harness.sessions.ledger.beginning import put_block
from harness.sessions.ledger.committing import blob_lock
from harness.sessions.lines.anchor import Anchor, encode_anchor, read_anchor
from harness.sessions.lines.blobs import blob_path
from harness.sessions.lines.entries import parse_line
from harness.sessions.lines.headers import nameless_id, read_first_line
from harness.sessions.lines.layout import LEDGER_SUFFIX, SessionFiles

__all__ = ["finish_removal", "named_contents", "remove_session"]

_log = logging.getLogger("harness.sessions")
_LOCK_SECONDS = 60.0
_SHA256 = re.compile(rb'"sha256":"([0-9a-f]{64})"')
_SHA256_BYTES = 80  # what may stand across two blocks


def remove_session(files: SessionFiles, session_id: str) -> bool:
    """Remove the files of a session whose lock is held, in a worker; whether there was a ledger.

    Contents in `files/` go with it unless another session names them. An anchor stays that names the deleted ledger.
    Raises `PersistenceError`, which says so where the session is gone nevertheless.
    """
    finish_removal(files, session_id)
    existed = disk.rename(files.ledger, files.removed)
    try:
        if existed:
            disk.sync_folder(files.folder)
        _remove_rest(files, session_id)
    except (FileMissing, PersistenceError) as error:
        raise PersistenceError(
            f"session {session_id!r} is deleted, and some of its files are there still: {error}; delete it again"
        ) from error
    return existed


def finish_removal(files: SessionFiles, session_id: str) -> None:
    """Go on with a removal that was cut off, in a worker, while the lock is held; nothing if there is none."""
    if disk.mark(files.removed):
        _remove_rest(files, session_id)


def _remove_rest(files: SessionFiles, session_id: str) -> None:
    """Everything but the ledger, which is not there any more under its own name. Each step can be done twice."""
    disk.remove_tree(files.context)  # first: on a full disk it may leave the room that the tombstone needs
    _write_tombstone(files, session_id)
    _remove_set_aside(files)
    _remove_contents(files)
    if disk.mark(files.removed):
        disk.sync_folder(files.folder)  # nothing may be left of it once there is nothing to tell so
        disk.remove_tree(files.removed)
    if disk.mark(files.folder):
        disk.sync_folder(files.folder)


def _write_tombstone(files: SessionFiles, session_id: str) -> None:
    """Put an anchor there that knows no lines, only the ledgers that must not come back."""
    anchor = read_anchor(files.anchor)
    known = [*anchor.deleted, *([anchor.ledger_id] if anchor.count else [])] if anchor else []
    deleted = tuple(dict.fromkeys([*known, *_ledger_id(files.removed)]))
    if not deleted:
        disk.remove_tree(files.anchor)
    elif anchor is None or anchor.count or anchor.deleted != deleted:
        if not disk.is_file_or_nothing(files.anchor):
            disk.remove_tree(files.anchor)
        put_block(files, encode_anchor(Anchor(deleted[-1], session_id, 0, 0, "", "", deleted=deleted)))


def _ledger_id(path: Path) -> list[str]:
    """The id by which snapshots know a ledger; none where there is nothing to read."""
    try:
        first = read_first_line(path)
    except (FileMissing, PersistenceError):
        return []
    return [str((parse_line(first) or {}).get("ledgerId") or nameless_id(first))] if first else []


def named_contents(ledger: Path, blobs: Path, length: int = sys.maxsize) -> set[str]:
    """The contents the first `length` bytes of a ledger name and files hold.

    Texts of bindings have digests too, but no file.
    """
    names: set[str] = set()
    rest = b""
    try:
        for block in disk.read_blocks(ledger, length=length):
            names |= {found.decode() for found in _SHA256.findall(rest + block)}
            rest = block[-_SHA256_BYTES:]
    except FileMissing:
        return set()
    return {name for name in names if disk.has_file(blob_path(blobs, name))}


def _remove_contents(files: SessionFiles) -> None:
    """The contents that the deleted ledger names and no other one does."""
    try:
        if not named_contents(files.removed, files.blobs):
            return
        with blob_lock(files.blobs).hold(_LOCK_SECONDS):
            for name in _named_here_alone(files):
                disk.remove_tree(place := blob_path(files.blobs, name))
                disk.sync_folder(place.parent)
    except PersistenceError as error:
        _log.warning("contents of a deleted session may stay in %s: %s", files.blobs, error)


def _named_here_alone(files: SessionFiles) -> set[str]:
    named = named_contents(files.removed, files.blobs)
    for item in disk.list_folder(files.folder):
        if named and item.name.endswith(LEDGER_SUFFIX) and not item.is_dir:
            named -= named_contents(files.folder / item.name, files.blobs)
    return named


def _remove_set_aside(files: SessionFiles) -> None:
    ours = tuple(f"{path.name}.damaged-" for path in (files.ledger, files.context, files.anchor))
    for item in disk.list_folder(files.folder):
        if item.name.startswith(ours):
            disk.remove_tree(files.folder / item.name)
