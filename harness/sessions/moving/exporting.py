"""Putting one session into a file, byte for byte, to keep it or to take it elsewhere."""

from __future__ import annotations

from pathlib import Path

from harness.errors import FileMissing
from harness.filesystem import disk
from harness.filesystem.archives import ArchiveWriter, Member, new_archive
from harness.sessions.checking.line_table import LineTable
from harness.sessions.checking.strict import gone_is_not_found
from harness.sessions.ledger.deleting import named_contents
from harness.sessions.ledger.reading import read_identity
from harness.sessions.lines.anchor import encode_anchor, read_anchor
from harness.sessions.lines.blobs import blob_path
from harness.sessions.lines.layout import Owner, SessionFiles
from harness.sessions.moving.bundle import ANCHOR, CONTEXT, LEDGER, MANIFEST, Bundle, encode_manifest

__all__ = ["export_session"]


def export_session(files: SessionFiles, owner: Owner, target: Path) -> Bundle:
    """Write a session's bundle, in a worker; what a running call adds meanwhile is not in it.

    Takes no lock and changes nothing. Raises `SessionNotFound` if there is no ledger, `FileExists` if the target is
    there, `SessionDamaged` for a ledger of somebody else, and `NewerFormat`. A damaged session is exported as it is.
    """
    with gone_is_not_found(files, owner.session):
        return _export(files, owner, target)


def _export(files: SessionFiles, owner: Owner, target: Path) -> Bundle:
    ledger_id = read_identity(files, owner)
    # Before the ledger: an anchor names no line that is not there yet.
    anchor = _anchor(files)
    end = disk.mark(files.ledger)
    if end is None:
        raise FileMissing(f"there is no ledger {files.ledger}; check the session's id")
    # What is added from here on names contents that a reader of the bundle would look for in vain.
    named = named_contents(files.ledger, files.blobs, end.size)
    missing = sorted(set(LineTable().read(disk.read_blocks(files.ledger, length=end.size)).named) - named)
    with new_archive(target) as archive:
        members = [archive.add(LEDGER, disk.read_blocks(files.ledger, length=end.size))]
        members += _context(archive, files)
        members += [archive.add(ANCHOR, [anchor])] if anchor else []
        members += [
            archive.add(f"files/{n[:2]}/{n}", disk.read_blocks(blob_path(files.blobs, n))) for n in sorted(named)
        ]
        archive.add(MANIFEST, [encode_manifest(owner, ledger_id, members)])
    return Bundle(target, owner, ledger_id, tuple(members), tuple(missing))


def _anchor(files: SessionFiles) -> bytes | None:
    anchor = read_anchor(files.anchor)
    return encode_anchor(anchor) if anchor and anchor.count else None


def _context(archive: ArchiveWriter, files: SessionFiles) -> list[Member]:
    try:
        return [archive.add(CONTEXT, [disk.read(files.context)])]
    except FileMissing:
        return []
