"""Taking a session away for good, so that half a deletion is a deletion and no snapshot can bring it back.

The ledger gets another name first: from that moment on there is no session. What the new name stands for, the tombstone
in the anchor included, can be made from it, so whoever comes next finishes what was cut off.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from harness.errors import FileMissing, NewerFormat, PersistenceError
from harness.filesystem import disk, pool
from harness.filesystem.locks import FileLock
from harness.sessions.ledger.beginning import put_block
from harness.sessions.ledger.committing import BLOB_LOCK_SECONDS, blob_lock
from harness.sessions.lines.anchor import Anchor, encode_anchor, read_anchor
from harness.sessions.lines.blobs import blob_path
from harness.sessions.lines.entries import parse_line
from harness.sessions.lines.formats import is_known
from harness.sessions.lines.headers import nameless_id, read_first_line, require_owner
from harness.sessions.lines.layout import CONTEXT_SUFFIX, Owner, SessionFiles
from harness.sessions.lines.listed import names_in
from harness.sessions.lines.references import LOOK
from harness.sessions.lines.skimming import read_lines

__all__ = ["finish_removal", "mentioned_contents", "named_contents", "remove_session"]

_log = logging.getLogger("harness.sessions")
T = TypeVar("T")
_SHA256 = re.compile(rb'"sha256":"([0-9a-f]{64})"')
_SHA256_BYTES = 80  # what may stand across two blocks


async def remove_session(lock: FileLock, files: SessionFiles, owner: Owner) -> bool:
    """Remove the files of a session while its `lock` is held; whether there was a ledger.

    Contents in `files/` go with it unless another session names them. An anchor stays that names the deleted ledger.
    Raises, with nothing removed, `SessionDamaged` where the ledger is another owner's, and
    `SessionBusy` where the folder of the contents is kept too long; and `PersistenceError`, which says so where the
    session is gone nevertheless.
    """
    await pool.run(_require_own, files, owner)
    await finish_removal(lock, files, owner.session)
    return await _with_contents(lock, files, files.ledger, partial(_remove, files, owner.session))


def _require_own(files: SessionFiles, owner: Owner) -> None:
    """Raise `SessionDamaged` for a ledger that says it is another's; it need not be whole, nor understood."""
    try:
        require_owner(files, owner)
    except NewerFormat:
        owner.check(parse_line(read_first_line(files.ledger)) or {}, files.ledger)
    except PersistenceError as error:
        _log.warning("the ledger of session %r is deleted although nobody can read it: %s", owner.session, error)


async def finish_removal(lock: FileLock, files: SessionFiles, session_id: str) -> None:
    """Go on with a removal that was cut off, while the lock is held; nothing if there is none. Raises as above."""
    if await pool.run(disk.mark, files.removed):
        await _with_contents(lock, files, files.removed, partial(_remove_rest, files, session_id))


async def _with_contents(lock: FileLock, files: SessionFiles, ledger: Path, work: Callable[[bool], T]) -> T:
    """Do it in a worker, and tell it whether it may remove contents: it may while nobody can begin to name one.

    So it is asked before anything is removed whether there are any, and their lock is waited for.
    """
    contents = blob_lock(files.blobs)
    try:
        if named := await pool.run(named_contents, ledger, files.blobs):
            await contents.acquire(BLOB_LOCK_SECONDS)
    except PersistenceError as error:
        _log.warning("contents of a deleted session may stay in %s: %s", files.blobs, error)
        named = set()
    if not named:
        return await pool.run(lock.work, work, False)
    try:
        return await pool.run(lock.work, partial(contents.work, work, True))
    finally:
        contents.release()


def _remove(files: SessionFiles, session_id: str, contents: bool) -> bool:
    existed = disk.rename(files.ledger, files.removed)
    _remove_rest(files, session_id, contents)
    return existed


def _remove_rest(files: SessionFiles, session_id: str, contents: bool) -> None:
    """Everything but the ledger, which is not there any more under its own name."""
    try:
        _remove_all_else(files, session_id, contents)
    except (FileMissing, PersistenceError) as error:
        raise PersistenceError(
            f"session {session_id!r} is deleted, and some of its files are there still: {error}; delete it again"
        ) from error


def _remove_all_else(files: SessionFiles, session_id: str, contents: bool) -> None:
    """Each step can be done twice."""
    if disk.mark(files.removed):
        disk.sync_folder(files.folder)
    disk.remove_tree(files.context)  # first: on a full disk it may leave the room that the tombstone needs
    _write_tombstone(files, session_id)
    _remove_set_aside(files)
    if contents:
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
    """The contents the first `length` bytes of a ledger name and files hold."""
    there = mentioned_contents(ledger, blobs, length)
    names: set[str] = set()
    known = False
    for line in read_lines(ledger) if there else ():
        raw = (line.raw or b"")[: max(0, length - line.offset)]
        if line.seq == 1:
            known = is_known(parse_line(raw) or {"format": None})
        if LOOK in raw and not there.isdisjoint(found := _digests(raw)):
            entry = parse_line(raw) if known else None
            # What a line has named that nobody here can read may be wanted yet.
            names.update(found if entry is None else names_in(entry))
    return names & there


def mentioned_contents(ledger: Path, blobs: Path, length: int = sys.maxsize) -> set[str]:
    """The same, wherever in a line they are named: mostly there are none, and then no line has to be parsed."""
    digests: set[str] = set()
    rest = b""
    try:
        for block in disk.read_blocks(ledger, length=length):
            digests |= _digests(rest + block)
            rest = block[-_SHA256_BYTES:]
    except FileMissing:
        return set()
    return {name for name in digests if disk.has_file(blob_path(blobs, name))}


def _digests(raw: bytes) -> set[str]:
    return {found.decode() for found in _SHA256.findall(raw)}


def _remove_contents(files: SessionFiles) -> None:
    """The contents that the deleted ledger names and no other one does, while their lock is held."""
    try:
        for name in _named_here_alone(files):
            disk.remove_tree(place := blob_path(files.blobs, name))
            disk.sync_folder(place.parent)
    except PersistenceError as error:
        _log.warning("contents of a deleted session may stay in %s: %s", files.blobs, error)


def _named_here_alone(files: SessionFiles) -> set[str]:
    """Copies for the model, and what was set aside, are asked too: nothing else may tell what a lost ledger named."""
    named = named_contents(files.removed, files.blobs)
    for item in disk.list_folder(files.folder):
        if named and CONTEXT_SUFFIX in item.name and item.name != files.removed.name and not item.is_dir:
            named -= named_contents(files.folder / item.name, files.blobs)
    return named


def _remove_set_aside(files: SessionFiles) -> None:
    ours = tuple(f"{path.name}.damaged-" for path in (files.ledger, files.context, files.anchor))
    for item in disk.list_folder(files.folder):
        if item.name.startswith(ours):
            disk.remove_tree(files.folder / item.name)
