"""SQLite's rollback journal, applied to a copy of its database in memory.

A journal holds the pages of a database as they were before a change. While one stands there that was
begun in earnest, the database itself is a mixture. Not left to SQLite: it would write into the database,
and a forged journal may name another file, which SQLite then removes.
The file format is SQLite's own and fixed: https://www.sqlite.org/fileformat2.html#the_rollback_journal
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["HEAD", "hot_head", "rolled_back"]

_MAGIC = bytes.fromhex("d9d505f920a163d7")
_HEADER = struct.Struct(">8s5I")
_NUMBER = struct.Struct(">I")
HEAD = _HEADER.size
"""Bytes of a journal that tell whether it is in use, and by which change."""
_WORD = 0xFFFFFFFF
_STRIDE = 200
_PAGE_SIZES = frozenset(2**power for power in range(9, 17))
_SECTOR_SIZES = frozenset(2**power for power in range(5, 17))


class _Header(NamedTuple):
    records: int
    nonce: int
    pages: int
    sector: int
    page_size: int


def hot_head(head: bytes) -> bytes:
    """The beginning of a journal, if the change it is of may have reached the database; else nothing.

    A journal at rest is empty or begins with noughts; one whose pages are not counted yet was not synced,
    and the database is as it was.
    """
    header = _header(head, 0)
    return head[:HEAD] if header is not None and header.records else b""


def rolled_back(database: bytes, journal: bytes, limit: int) -> bytes | None:
    """The database as it was before the change that a journal is of.

    None where that cannot be told: the change is of several databases, or it would have more than `limit` bytes.
    """
    first = _header(journal, 0)
    if first is None:
        return database
    size = first.pages * first.page_size
    if size > limit or journal.endswith(_MAGIC):
        return None
    image = bytearray(database[:size].ljust(size, b"\0"))
    for number, page in _pages(journal, first):
        if number <= first.pages:
            image[(number - 1) * len(page) : number * len(page)] = page
    return bytes(image)


def _header(journal: bytes, at: int) -> _Header | None:
    if len(journal) < at + HEAD:
        return None
    magic, *found = _HEADER.unpack_from(journal, at)
    header = _Header(*found)
    return header if magic == _MAGIC and (at or _is_sound(header)) else None


def _is_sound(header: _Header) -> bool:
    return header.page_size in _PAGE_SIZES and header.sector in _SECTOR_SIZES


def _pages(journal: bytes, first: _Header) -> Iterator[tuple[int, bytes]]:
    """The pages of every part of a journal, up to the first that was not written whole."""
    at, header, step = 0, first, first.page_size + 2 * _NUMBER.size
    while True:
        at += first.sector
        fitting = max(0, len(journal) - at) // step
        for _ in range(min(fitting, header.records)):
            (number,) = _NUMBER.unpack_from(journal, at)
            page = journal[at + _NUMBER.size : at + _NUMBER.size + first.page_size]
            (told,) = _NUMBER.unpack_from(journal, at + step - _NUMBER.size)
            if number == 0 or told != _checksum(page, header.nonce):
                return
            yield number, page
            at += step
        at = -(-at // first.sector) * first.sector
        following = _header(journal, at)
        if following is None or fitting < header.records:
            return
        header = following


def _checksum(page: bytes, nonce: int) -> int:
    """SQLite's own: every two hundredth byte from the end."""
    return nonce + sum(page[len(page) - _STRIDE : 0 : -_STRIDE]) & _WORD
