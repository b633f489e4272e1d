"""SQLite's write-ahead log, put together with its database in memory.

Only for a log that a crash left alone: what SQLite itself would do needs a file beside the database.
The file format is SQLite's own and fixed: https://www.sqlite.org/fileformat2.html#the_write_ahead_log
"""

from __future__ import annotations

import struct

__all__ = ["merged"]

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
_BIG_ENDIAN, _LITTLE_ENDIAN = 0x377F0683, 0x377F0682
_WORD = 0xFFFFFFFF
_PAGE_SIZES = frozenset(2**power for power in range(9, 17))
# Two bytes of the database's header that say whether a log is in use.
_MODE = slice(18, 20)


def merged(database: bytes, log: bytes, limit: int) -> bytes:
    """The database as it is with every committed page of its log; a torn end of the log is left out.

    A log that would make it larger than `limit` bytes is torn from there on.
    """
    image = bytearray(database)
    for number, page in _committed(log, limit).items():
        start = (number - 1) * len(page)
        if len(image) < start:
            image.extend(bytes(start - len(image)))
        image[start : start + len(page)] = page
    image[_MODE] = b"\x01\x01"
    return bytes(image)


def _committed(log: bytes, limit: int) -> dict[int, bytes]:
    """The newest committed version of each page in the log, as far as the pages end before `limit`."""
    if len(log) < _HEADER.size:
        return {}
    magic, _, page_size, _, *rest = _HEADER.unpack_from(log)
    salts, sums = tuple(rest[:2]), (rest[2], rest[3])
    if magic not in (_BIG_ENDIAN, _LITTLE_ENDIAN) or page_size not in _PAGE_SIZES:
        return {}
    order = ">" if magic == _BIG_ENDIAN else "<"
    committed: dict[int, bytes] = {}
    waiting: dict[int, bytes] = {}
    for at in range(_HEADER.size, len(log) - _FRAME.size - page_size + 1, _FRAME.size + page_size):
        number, size, *found = _FRAME.unpack_from(log, at)
        page = log[at + _FRAME.size : at + _FRAME.size + page_size]
        sums = _checksum(log[at : at + 8] + page, order, sums)
        if tuple(found[:2]) != salts or tuple(found[2:]) != sums or not 0 < number <= limit // page_size:
            break
        waiting[number] = page
        if size:
            committed |= waiting
            waiting = {}
    return committed


def _checksum(data: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    one, two = sums
    for first, second in struct.iter_unpack(f"{order}2I", data):
        one = (one + first + two) & _WORD
        two = (two + second + one) & _WORD
    return one, two
