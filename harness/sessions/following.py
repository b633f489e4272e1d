"""Reading a ledger while somebody writes it: lines come out as they get whole, without a lock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

from harness.errors import FileMissing, SessionDamaged
from harness.filesystem import disk, pool
from harness.sessions import blobs
from harness.sessions.entries import START, Entry, Position
from harness.sessions.layout import SessionFiles
from harness.sessions.reading import scan

__all__ = ["follow"]

_MOST = 4 * 1024 * 1024
"""Bytes that are read at once; a line has at most a quarter of it."""


async def follow(files: SessionFiles, after: int, poll: float) -> AsyncIterator[Entry]:
    """The entries behind line `after`, those to come included, looking every `poll` seconds.

    Waits for a ledger that is not there yet; ends when it is removed. Raises `SessionDamaged` if it is
    cut or replaced while it is followed.
    """
    start, inode = START, None
    while True:
        found = await pool.run(disk.mark, files.ledger)
        if found is None and inode is not None:
            return
        if found is not None:
            if found.size < start.offset or inode not in (None, found.inode):
                raise SessionDamaged(f"{files.ledger} was cut or replaced while it was followed; follow it again")
            inode = found.inode
            entries, start, more = await pool.run(_read, files, start)
            for entry in entries:
                if entry.seq > after:
                    yield entry
            if more:
                continue
        await asyncio.sleep(poll)


def _read(files: SessionFiles, start: Position) -> tuple[list[Entry], Position, bool]:
    """The whole lines from a place on, the place behind them, and whether there may be more."""
    length = _MOST
    try:
        while len(data := disk.read(files.ledger, start.offset, length)) == length and b"\n" not in data:
            length *= 2  # something that is no line stands there
    except FileMissing:
        return [], start, False
    whole = data[: data.rfind(b"\n") + 1]
    if not whole:
        return [], start, False
    entries, _, tail = scan(whole, start)
    for entry in entries:
        if entry.refers:
            blobs.try_expand(entry.data, partial(blobs.read_blob, files.blobs))
    return entries, Position(tail.count + 1, tail.size), len(data) == length
