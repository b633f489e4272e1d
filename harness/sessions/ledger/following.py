"""Reading a ledger while somebody writes it: lines come out as they get whole, without a lock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

from harness.errors import FileMissing, SessionDamaged
from harness.filesystem import disk, pool
from harness.sessions.ledger.reading import scan
from harness.sessions.lines import blobs
from harness.sessions.lines.entries import START, Entry, Position
from harness.sessions.lines.layout import SessionFiles

__all__ = ["follow"]

_MOST = 4 * 1024 * 1024
"""Bytes that are read at once; a line has at most a quarter of it."""
_REMEMBERED = 1024 * 1024
"""Bytes of the newest line that must still be there; no line of ours is longer, and each has an id of its own."""


async def follow(files: SessionFiles, after: int, poll: float) -> AsyncIterator[Entry]:
    """The entries behind line `after`, those to come included, looking every `poll` seconds.

    Waits for a ledger that is not there yet; ends when it is removed. Raises `SessionDamaged` if it is
    cut or replaced while it is followed.
    """
    start, inode, last = START, None, b""
    while True:
        found = await pool.run(disk.mark, files.ledger)
        if found is None and inode is not None:
            return
        if found is not None:
            if found.size < start.offset or inode not in (None, found.inode):
                raise _replaced(files)
            inode = found.inode
            entries, start, last, more = await pool.run(_read, files, start, last)
            for entry in entries:
                if entry.seq > after:
                    yield entry
            if more:
                continue
        await asyncio.sleep(poll)


def _replaced(files: SessionFiles) -> SessionDamaged:
    return SessionDamaged(f"{files.ledger} was cut or replaced while it was followed; follow it again")


def _read(files: SessionFiles, start: Position, last: bytes) -> tuple[list[Entry], Position, bytes, bool]:
    """The whole lines from a place on, the place behind them, the bytes before it, and whether there may be more.

    Raises `SessionDamaged` if `last` does not stand before the place any more: the file was cut and has grown again,
    or is another one that was given the inode.
    """
    length = _MOST
    try:
        while len(data := disk.read(files.ledger, start.offset - len(last), length)) == length and not _whole(
            data, last
        ):
            length *= 2  # something that is no line stands there
    except FileMissing:
        return [], start, last, False
    if not data.startswith(last):
        raise _replaced(files)
    whole = _whole(data, last)
    if not whole:
        return [], start, last, False
    entries, _, tail = scan(whole, start)
    for entry in entries:
        if entry.refers:
            blobs.try_expand(entry.data, partial(blobs.read_blob, files.blobs))
    newest = whole[whole.rfind(b"\n", 0, -1) + 1 :]
    return entries, Position(tail.count + 1, tail.size), newest[-_REMEMBERED:], len(data) == length


def _whole(data: bytes, last: bytes) -> bytes:
    """The whole lines in what was read, behind those that were read before."""
    return data[len(last) : data.rfind(b"\n") + 1]
