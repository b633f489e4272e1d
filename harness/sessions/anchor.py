"""The anchor of a ledger: one block of 512 bytes that says where the synced end and the start of the view are.

It is overwritten in place after each sync, so it names synced bytes only. One JSON object with the
keys `v ledgerId session count bytes hash leaf boundary{seq,offset} deleted? sum`, filled up with
spaces, a line feed at the end. `sum` is the SHA-256 of the bytes before `,"sum":`. A session id
whose JSON is longer than 66 bytes stands as `sessionSha256`, of its UTF-8 bytes, instead of
`session`. A block whose sum is wrong counts as absent.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import FileMissing, PersistenceError
from harness.filesystem import disk
from harness.sessions.entries import START, Position, digest
from harness.text import dumps, loads

__all__ = ["ANCHOR_BYTES", "Anchor", "encode_anchor", "parse_anchor", "read_anchor"]

ANCHOR_BYTES = 512
_MAX_SESSION = 66
_SUM = b',"sum":"'
_TRIES = 4


@dataclass(frozen=True, slots=True)
class Anchor:
    """What the block says. `count` and `bytes` are of the ledger up to the last sync, `hash` of its last line there.

    An anchor with a count of 0 only remembers the ids of deleted ledgers.
    """

    ledger_id: str
    session: str
    count: int
    bytes: int
    hash: str
    leaf: str
    boundary: Position = START
    deleted: tuple[str, ...] = ()

    def names(self, session_id: str) -> bool:
        """Whether it is the anchor of this session; a long id stands in it as its digest."""
        return self.session in (session_id, digest(session_id.encode()))


def encode_anchor(anchor: Anchor) -> bytes:
    """The block. Of `deleted` the newest that fit are kept."""
    for kept in range(len(anchor.deleted), -1, -1):
        body = dumps(_fields(anchor, anchor.deleted[len(anchor.deleted) - kept :]))[:-1]
        block = body + _SUM + digest(body).encode() + b'"}'
        if len(block) < ANCHOR_BYTES:
            break
    return block.ljust(ANCHOR_BYTES - 1) + b"\n"


def parse_anchor(block: bytes) -> Anchor | None:
    """The anchor in a block; None if it is damaged."""
    body, found, rest = block.partition(_SUM)
    if len(block) != ANCHOR_BYTES or not found or rest[:64] != digest(body).encode():
        return None
    try:
        return _anchor(loads(body + b"}"))
    except (ValueError, KeyError, TypeError):
        return None


def read_anchor(path: Path) -> Anchor | None:
    """The anchor of a file; None if it cannot be read, or is still damaged after a writer had time to finish."""
    for attempt in range(_TRIES):
        try:
            block = disk.read(path, 0, ANCHOR_BYTES)
        except (FileMissing, PersistenceError):
            return None
        if anchor := parse_anchor(block):
            return anchor
        if attempt + 1 < _TRIES:
            time.sleep(0.001)
    return None


def _fields(anchor: Anchor, deleted: tuple[str, ...]) -> dict[str, Any]:
    long = len(dumps(anchor.session)) > _MAX_SESSION
    fields: dict[str, Any] = {"v": 1, "ledgerId": anchor.ledger_id}
    fields |= {"sessionSha256": digest(anchor.session.encode())} if long else {"session": anchor.session}
    fields |= {"count": anchor.count, "bytes": anchor.bytes, "hash": anchor.hash, "leaf": anchor.leaf}
    fields["boundary"] = {"seq": anchor.boundary.seq, "offset": anchor.boundary.offset}
    return fields | ({"deleted": list(deleted)} if deleted else {})


def _anchor(data: dict[str, Any]) -> Anchor:
    boundary = data["boundary"]
    return Anchor(
        ledger_id=str(data["ledgerId"]),
        session=str(data["session"] if "session" in data else data["sessionSha256"]),
        count=int(data["count"]),
        bytes=int(data["bytes"]),
        hash=str(data["hash"]),
        leaf=str(data["leaf"]),
        boundary=Position(int(boundary["seq"]), int(boundary["offset"])),
        deleted=tuple(str(item) for item in data.get("deleted", ())),
    )
