"""Taking a session away for good: its ledger first, so that half a deletion is a deletion."""

from __future__ import annotations

import re
from pathlib import Path

from harness.errors import FileMissing
from harness.filesystem import disk
from harness.sessions.anchor import Anchor, encode_anchor, read_anchor
from harness.sessions.blobs import blob_path
from harness.sessions.committing import blob_lock
from harness.sessions.entries import parse_line
from harness.sessions.layout import LEDGER_SUFFIX, SessionFiles
from harness.sessions.reading import read_first_line

__all__ = ["named_contents", "remove_session"]

_LOCK_SECONDS = 60.0
_SHA256 = re.compile(rb'"sha256":"([0-9a-f]{64})"')
_SHA256_BYTES = 80  # what may stand across two blocks


def remove_session(files: SessionFiles, session_id: str, *, remember: bool) -> bool:
    """Remove the files of a session whose lock is held, in a worker; whether there was a ledger.

    Contents in `files/` go with it unless another session names them. With `remember` an anchor
    stays that names the deleted ledger, so that a snapshot elsewhere cannot bring it back.
    """
    anchor = read_anchor(files.anchor)
    ledger_id = _ledger_id(files.ledger)
    named = named_contents(files.ledger, files.blobs)
    existed = disk.remove(files.ledger)
    for path in (files.context, files.anchor):
        disk.remove(path)
    _remove_set_aside(files)
    if named:
        _remove_contents(files, named)
    deleted = (*(anchor.deleted if anchor else ()), *([ledger_id] if ledger_id else []))
    if remember and deleted:
        block = encode_anchor(Anchor(deleted[-1], session_id, 0, 0, "", "", deleted=deleted))
        disk.write_block(files.anchor, block, sync=True)
    if disk.mark(files.folder):
        disk.sync_folder(files.folder)
    return existed


def _ledger_id(path: Path) -> str | None:
    try:
        header = parse_line(read_first_line(path))
    except FileMissing:
        return None
    return str(header["ledgerId"]) if header and "ledgerId" in header else None


def named_contents(ledger: Path, blobs: Path) -> set[str]:
    """The contents a ledger names that are in files; texts of bindings have digests too, but no file."""
    names: set[str] = set()
    rest = b""
    try:
        for block in disk.read_blocks(ledger):
            names |= {found.decode() for found in _SHA256.findall(rest + block)}
            rest = block[-_SHA256_BYTES:]
    except FileMissing:
        return set()
    return {name for name in names if disk.mark(blob_path(blobs, name))}


def _remove_contents(files: SessionFiles, named: set[str]) -> None:
    with blob_lock(files.blobs).hold(_LOCK_SECONDS):
        for item in disk.list_folder(files.folder):
            if named and item.name.endswith(LEDGER_SUFFIX) and not item.is_dir:
                named = named - named_contents(files.folder / item.name, files.blobs)
        for name in named:
            disk.remove(blob_path(files.blobs, name))


def _remove_set_aside(files: SessionFiles) -> None:
    ours = tuple(f"{path.name}.damaged-" for path in (files.ledger, files.context, files.anchor))
    for item in disk.list_folder(files.folder):
        if item.name.startswith(ours):
            disk.remove(files.folder / item.name)
