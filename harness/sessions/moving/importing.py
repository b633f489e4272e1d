"""Taking a session out of a bundle: all of it, checked, or nothing.

Everything is unpacked beside the sessions first, under names that no reader looks at, and checked there. Then the files
get their names, the ledger last: a session is there from that moment on.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import FileMissing, SessionDamaged, SessionExists
from harness.filesystem import disk, pool
from harness.filesystem.archives import ArchiveReader, Member, move_into_place, open_archive, write_blocks
from harness.filesystem.locks import FileLock
from harness.filesystem.lowlevel import temporary_name
from harness.sessions.checking.verify import verify_session
from harness.sessions.ledger.beginning import whole_or_nothing
from harness.sessions.ledger.committing import BLOB_LOCK_SECONDS, blob_lock
from harness.sessions.ledger.deleting import mentioned_contents
from harness.sessions.ledger.reading import Loaded, read_session
from harness.sessions.lines.anchor import Anchor, encode_anchor, new_ledger_id, read_anchor
from harness.sessions.lines.entries import MAX_LINE, Tail, digest, parse_line
from harness.sessions.lines.formats import check_format
from harness.sessions.lines.headers import checked_header, read_first_line
from harness.sessions.lines.layout import Owner, SessionFiles
from harness.sessions.moving.bundle import CONTENTS, CONTEXT, LEDGER, MAX_BYTES, Bundle, place_of, read_manifest
from harness.sessions.moving.rechain import rechained

__all__ = [
    "Unpacked",
    "admit",
    "place_beside",
    "read_bundle",
    "refuse_existing",
    "remove_abandoned",
    "settle",
    "unpack",
]

_ABANDONED_NS = 24 * 3600 * 10**9
_log = logging.getLogger("harness.sessions")


@dataclass(frozen=True, slots=True)
class Unpacked:
    """A checked session under names that nobody looks at; `admit` gives it its own, `discard` removes it."""

    files: SessionFiles
    owner: Owner

    def discard(self) -> None:
        """Remove what is left."""
        disk.remove_tree(self.files.folder)


def read_bundle(path: Path, max_bytes: int = MAX_BYTES) -> Bundle:
    """What a bundle says of itself, in a worker. Raises `FileMissing`, `SessionDamaged`."""
    with open_archive(path) as archive:
        return read_manifest(archive, path, max_bytes)


def place_beside(files: SessionFiles, owner: Owner) -> Unpacked:
    """Where a session is unpacked, beside its own place. Touches nothing."""
    return Unpacked(SessionFiles(files.folder / temporary_name(), files.name), owner)


def unpack(
    path: Path, unpacked: Unpacked, files: SessionFiles, max_bytes: int = MAX_BYTES, *, take_over: bool = False
) -> None:
    """Unpack a bundle beside the place of a session, `files`, and check every byte, in a worker.

    The ledger stays byte for byte where `owner` is the one it names. For another one it is written anew: its lines keep
    their ids and content, its header names the new owner and, as `importedFrom`, the ledger it was made from.
    Where `owner` has a key for anchors, what was not signed with it is refused or, with `take_over`, written anew too,
    and the header says so.
    Raises `SessionDamaged` naming the first thing that is not as it must be, and `NewerFormat`. Whoever asked for it
    discards what there is, however it ends.
    """
    remove_abandoned(files.folder)
    owner = unpacked.owner
    with open_archive(path) as archive:
        bundle = read_manifest(archive, path, max_bytes)
        for member in _worth_unpacking(bundle):
            _unpack_member(archive, member, place_of(member.path, unpacked.files), path)
    _check(unpacked.files, bundle)
    signed = _is_signed(unpacked.files, owner.anchor_key)
    if not signed and not take_over:
        raise SessionDamaged(
            f"{path} was not signed with the anchor key of this agent, or not to its end: all of it may have been "
            "written by somebody else; take it over if you trust where it comes from"
        )
    if bundle.owner != owner or not signed:
        _take_over(unpacked.files, bundle, owner, _deleted(files), signed=signed)
    _write_anchor(unpacked.files, owner, files)


def refuse_existing(files: SessionFiles, session_id: str) -> None:
    """Raise `SessionExists` if there is a ledger."""
    if disk.mark(files.ledger):
        raise SessionExists(f"there is a session {session_id!r} already; import under another id, or delete it first")


async def admit(lock: FileLock, unpacked: Unpacked, files: SessionFiles) -> None:
    """Give the files their names while the session's `lock` is held. Raises `SessionExists`, `SessionBusy`."""
    contents = blob_lock(files.blobs, sync=True)
    await contents.run(BLOB_LOCK_SECONDS, lock.work, _admit, unpacked, files)
    _log.info("session %r was imported", unpacked.owner.session)


def _admit(unpacked: Unpacked, files: SessionFiles) -> None:
    refuse_existing(files, unpacked.owner.session)
    with whole_or_nothing(files):
        _move_in(unpacked.files, files)
    unpacked.discard()


def _move_in(staged: SessionFiles, files: SessionFiles) -> None:
    _admit_contents(staged.blobs, files.blobs)
    for source, target in ((staged.context, files.context), (staged.anchor, files.anchor)):
        disk.remove(target)  # left over from a session that was deleted, or an import that was cut off
        if disk.mark(source):
            move_into_place(source, target)
    move_into_place(staged.ledger, files.ledger)
    disk.sync_folder(files.folder)


async def settle(lock: FileLock, staged: SessionFiles, owner: Owner, files: SessionFiles) -> None:
    """Give a session that was written beside its place its names; lock and errors as for `admit`."""
    await pool.run(lock.work, _write_anchor, staged, owner, files)
    await admit(lock, Unpacked(staged, owner), files)


def remove_abandoned(folder: Path) -> None:
    """Folders of imports that were cut off, a day ago or longer."""
    limit = time.time_ns() - _ABANDONED_NS
    for item in disk.list_folder(folder):
        if item.is_dir and disk.is_leftover(item.name) and item.mtime_ns < limit:
            disk.remove_tree(folder / item.name)


def _worth_unpacking(bundle: Bundle) -> Iterator[Member]:
    """All but a copy for the model with more in it than its ledger could have given: it is made anew."""
    sizes = {member.path: member.bytes for member in bundle.members}
    for member in bundle.members:
        if member.path != CONTEXT or member.bytes <= sizes[LEDGER] + MAX_LINE:
            yield member


def _unpack_member(archive: ArchiveReader, member: Member, target: Path, path: Path) -> None:
    found = write_blocks(target, archive.blocks(member.path, member.bytes))
    if (found.bytes, found.sha256) != (member.bytes, member.sha256):
        raise SessionDamaged(f"{member.path} in {path} is not the file that was exported; get the bundle again")
    # Whoever stores the real content later would find the name taken.
    if member.path.startswith(CONTENTS) and found.sha256 != target.name:
        raise SessionDamaged(f"{member.path} in {path} has other bytes than its name says; nothing was imported")


def _check(staged: SessionFiles, bundle: Bundle) -> None:
    """The strict reading: everything that can be proved must hold."""
    line = read_first_line(staged.ledger)
    check_format(parse_line(line) or {}, bundle.path)
    header = checked_header(staged.ledger, line, bundle.owner, read_anchor(staged.anchor))
    report = verify_session(staged, bundle.owner)
    wrong = [finding for finding in report.findings if finding.error]
    if wrong or header is None or header.get("ledgerId") != bundle.ledger_id:
        first = f"line {wrong[0].line}, {wrong[0].kind}: {wrong[0].text}" if wrong else "its header is another one's"
        raise SessionDamaged(f"the ledger in {bundle.path} does not verify ({first}); nothing was imported")
    if any(finding.kind == "context" for finding in report.findings):
        _log.warning("the context file in %s says something else than its ledger, and is made anew", bundle.path)
        disk.remove(staged.context)
    # Bundles of version 0.1.0 also hold what a line names at a place that does not count any more.
    if unnamed := _contents(staged.blobs) - mentioned_contents(staged.ledger, staged.blobs):
        raise SessionDamaged(f"the ledger in {bundle.path} names no content {min(unnamed)}; nothing was imported")
    if _longest_line(disk.read_blocks(staged.ledger)) > MAX_LINE:
        raise SessionDamaged(f"the ledger in {bundle.path} has a line of over {MAX_LINE} bytes; nothing was imported")


def _contents(blobs: Path) -> set[str]:
    return {item.name for group in disk.list_folder(blobs) for item in disk.list_folder(blobs / group.name)}


def _longest_line(blocks: Iterable[bytes]) -> int:
    longest = length = 0
    for block in blocks:
        first, *others = block.split(b"\n")
        length += len(first)
        longest = max(longest, length, *map(len, others)) if others else max(longest, length)
        length = len(others[-1]) if others else length
    return longest


def _is_signed(staged: SessionFiles, key: bytes | None) -> bool:
    """Whether the key vouches for all of the ledger; without one nobody asks."""
    anchor, ledger = read_anchor(staged.anchor), disk.mark(staged.ledger)
    if key is None:
        return True
    return bool(anchor and ledger and anchor.count and anchor.signed_with(key) and anchor.bytes == ledger.size)


def _take_over(staged: SessionFiles, bundle: Bundle, owner: Owner, deleted: Sequence[str], *, signed: bool) -> None:
    ledger = next(member for member in bundle.members if member.path == LEDGER)
    source: Mapping[str, Any] = {**bundle.owner.fields(), "ledgerId": bundle.ledger_id, "sha256": ledger.sha256}
    if not signed:
        source = {**source, "unsigned": True}
    changes = {**owner.fields(), "ledgerId": new_ledger_id(deleted), "importedFrom": source}
    for old in (staged.context, staged.anchor):
        disk.remove(old)
    temporary = staged.folder / temporary_name()
    write_blocks(temporary, rechained(staged.ledger, changes))
    disk.remove(staged.ledger)
    move_into_place(temporary, staged.ledger)


def _write_anchor(staged: SessionFiles, owner: Owner, files: SessionFiles) -> None:
    """An anchor for the new place, which may have had a session of that id before."""
    loaded = read_session(staged, owner, anchored=False)
    deleted = tuple(item for item in _deleted(files) if item != loaded.ledger_id)
    disk.remove(staged.anchor)
    write_blocks(
        staged.anchor, [encode_anchor(_anchor(loaded, _end(staged, loaded), owner, deleted), owner.anchor_key)]
    )


def _deleted(files: SessionFiles) -> tuple[str, ...]:
    before = read_anchor(files.anchor)
    return before.deleted if before else ()


def _end(staged: SessionFiles, loaded: Loaded) -> Tail:
    """The end that an anchor may name: behind it there may be half a line, as a crash left it."""
    torn = next((damage for damage in loaded.damage if damage.kind == "torn"), None)
    if torn is None:
        return loaded.tail
    start = max(0, torn.byte - MAX_LINE - 1)
    last = disk.read(staged.ledger, start, torn.byte - start).removesuffix(b"\n").rpartition(b"\n")[2]
    return Tail(torn.line - 1, torn.byte, digest(last))


def _anchor(loaded: Loaded, end: Tail, owner: Owner, deleted: tuple[str, ...]) -> Anchor:
    return Anchor(
        ledger_id=str(loaded.ledger_id),
        session=owner.session,
        count=end.count,
        bytes=end.size,
        hash=str(end.hash),
        leaf=str(loaded.leaf),
        boundary=loaded.boundary,
        deleted=deleted,
    )


def _admit_contents(staged: Path, target: Path) -> None:
    for group in (item for item in disk.list_folder(staged) if item.is_dir):
        for item in disk.list_folder(staged / group.name):
            place = target / group.name / item.name
            disk.make_folder(place.parent, sync=True)
            if not _has_its_bytes(place):  # what is there may have rotted
                disk.remove(place)
                move_into_place(staged / group.name / item.name, place)
            disk.sync_folder(place.parent)


def _has_its_bytes(place: Path) -> bool:
    """Whether the content at a place is there, and the one it is named by."""
    seen = hashlib.sha256()
    try:
        for block in disk.read_blocks(place):
            seen.update(block)
    except FileMissing:
        return False
    return seen.hexdigest() == place.name
