"""The anchor of a ledger: one block of 512 bytes that says where the synced end and the start of the view are.

It is overwritten in place after each sync, so it names synced bytes only. One JSON object with the
keys `v ledgerId session count bytes hash leaf boundary{seq,offset} deleted? mac? sum`, filled up with
spaces, a line feed at the end (see `sealed`). A session id whose JSON is longer than 66 bytes stands
as `sessionSha256`, of its UTF-8 bytes, instead of `session`. A block whose sum is wrong counts as absent.

`mac` is there where the writer has a key: the HMAC-SHA256 of the JSON of what stands before it. Who can
write the files but has no key cannot make another ledger and an anchor that fits it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.errors import FileMissing, PersistenceError
from harness.filesystem import disk
from harness.ids import new_id
from harness.sessions.lines.entries import START, Position, digest
from harness.sessions.lines.sealed import BLOCK_BYTES, seal, unseal
from harness.text import dumps

__all__ = ["ANCHOR_BYTES", "Anchor", "encode_anchor", "is_deleted", "new_ledger_id", "parse_anchor", "read_anchor"]

ANCHOR_BYTES = BLOCK_BYTES
_VERSION = 1
_MAX_SESSION = 66
_MAX_LEAF = 64  # ids of ours have 36; a longer one, which came with a bundle, must not fill the block
_TRIES = 4
_SUM = re.compile("[0-9a-f]{64}")
_UP_TO = "<="
_UNTIMED = "*"
"""Behind that item's id: ledgers whose ids tell no time are among those it stands for."""
_TIMED = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}")
"""How a UUIDv7 begins: with the time when it was made, in such a way that texts sort by it."""
_Bytes = bytes  # within the class `bytes` is a field


@dataclass(slots=True)  # one is made with every turn, and a frozen one takes three times as long to make
class Anchor:
    """What the block says. `count` and `bytes` are of the ledger up to the last sync, `hash` of its last line there.

    An anchor with a count of 0 only remembers the ids of deleted ledgers. A first item that begins with `<=`
    stands for all ledgers that were begun by then: it is the beginning of a ledger's id. One that ends with `*` stands
    for all whose id tells no time too.
    """

    ledger_id: str
    session: str
    count: int
    bytes: int
    hash: str
    leaf: str
    boundary: Position = START
    deleted: tuple[str, ...] = ()
    mac: str | None = None
    shortened: bool = False
    """Whether `session` is the digest of the id already, as a block says it that was read."""

    def names(self, session_id: str) -> bool:
        """Whether it is the anchor of this session; a long id stands in it as its digest."""
        return self.session in (session_id, digest(session_id.encode()))

    def signed_with(self, key: _Bytes) -> bool:
        """Whether somebody who has this key wrote it."""
        made = _mac(_fields(self, self.deleted), key)
        return self.mac is not None and hmac.compare_digest(self.mac.encode(), made.encode())

    def believed_by(self, key: _Bytes | None) -> bool:
        """Whether it counts: all do without a key, with one those that were signed with it."""
        return not (key and self.count) or self.signed_with(key)


def encode_anchor(anchor: Anchor, key: bytes | None = None) -> bytes:
    """The block, signed where there is a key, else with the `mac` it has.

    Of `deleted` the newest that fit stand one by one, the others as one item.
    """
    for each in _variants(anchor):
        fields = _fields(each, each.deleted)
        mac = _mac(fields, key) if key else each.mac
        block = seal({**fields, "mac": mac} if mac else fields)
        if len(block) == ANCHOR_BYTES:
            break
    return block


def is_deleted(ledger_id: str, deleted: Sequence[str]) -> bool:
    """Whether an anchor says so of a ledger that is not the one it belongs to."""
    begun = _TIMED.match(ledger_id)
    others = [item[len(_UP_TO) :] for item in deleted if item.startswith(_UP_TO)]
    return ledger_id in deleted or any(begun[0] <= item if begun else item.endswith(_UNTIMED) for item in others)


def new_ledger_id(deleted: Sequence[str]) -> str:
    """The id of a ledger that begins now, behind these that were deleted: none that the anchor says is deleted.

    Where the clock was ahead when they began, it is the first one behind theirs.
    """
    made = new_id()
    begun = max((found[0] for item in deleted if (found := _TIMED.match(item.removeprefix(_UP_TO)))), default="")
    if not begun or made[: len(begun)] > begun:
        return made
    behind = f"{int(begun[:8] + begun[9:13] + begun[15:], 16) + 1:015x}"
    # Nobody's clock is at the end of the year 10889; there an id stays as it is.
    return f"{behind[:8]}-{behind[8:12]}-7{behind[12:]}{made[18:]}" if len(behind) == 15 else made


def parse_anchor(block: bytes) -> Anchor | None:
    """The anchor in a block; None if it is damaged, or says what no writer ever said."""
    fields = unseal(block)
    try:
        return _anchor(fields) if fields else None
    except (ValueError, KeyError):
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


def _variants(anchor: Anchor) -> Iterator[Anchor]:
    """The anchor, then with less and less that a reader can do without; one of the last fits every block."""
    yield anchor
    for kept in reversed(range(len(anchor.deleted))):
        yield replace(anchor, deleted=_shortened(anchor.deleted, kept))
    yield replace(anchor, deleted=_shortened(anchor.deleted, 0), leaf="")


def _shortened(deleted: tuple[str, ...], kept: int) -> tuple[str, ...]:
    """The newest `kept`; of the others only when the newest was begun, since what came before it was deleted too.

    Of ids that tell no time it is remembered that there were some; then all such count as deleted.
    """
    end = len(deleted) - kept
    begun = [_TIMED.match(item.removeprefix(_UP_TO)) for item in deleted[:end]]
    untimed = not all(begun) or any(item.endswith(_UNTIMED) for item in deleted[:end])
    newest = max((found[0] for found in begun if found), default="")
    return (f"{_UP_TO}{newest}{_UNTIMED if untimed else ''}", *deleted[end:])


def _fields(anchor: Anchor, deleted: tuple[str, ...]) -> dict[str, Any]:
    key, session = "session", anchor.session
    if anchor.shortened:
        key = "sessionSha256"
    elif len(dumps(session)) > _MAX_SESSION:
        key, session = "sessionSha256", digest(session.encode())
    fields = {
        "v": _VERSION,
        "ledgerId": anchor.ledger_id,
        key: session,
        "count": anchor.count,
        "bytes": anchor.bytes,
        "hash": anchor.hash,
        "leaf": anchor.leaf[:_MAX_LEAF],
        "boundary": {"seq": anchor.boundary.seq, "offset": anchor.boundary.offset},
    }
    return {**fields, "deleted": list(deleted)} if deleted else fields


def _mac(fields: dict[str, Any], key: bytes) -> str:
    return hmac.new(key, dumps(fields), hashlib.sha256).hexdigest()


def _anchor(data: dict[str, Any]) -> Anchor:
    if type(data["v"]) is not int or data["v"] != _VERSION:
        raise ValueError(f"{data['v']!r} is another kind of anchor")
    count, size, boundary = _number(data["count"]), _number(data["bytes"]), data["boundary"]
    if type(boundary) is not dict:
        raise ValueError(f"{boundary!r} is no position")
    start = Position(_number(boundary["seq"]), _number(boundary["offset"]))
    # Every line has a byte at least: no view begins before the first one or behind the end.
    if count and not (1 <= start.seq <= count and start.seq - 1 <= start.offset <= size):
        raise ValueError(f"{start} is no place in {count} lines of {size} bytes")
    deleted = data.get("deleted", [])
    if type(deleted) is not list:
        raise ValueError(f"{deleted!r} is no list")
    return Anchor(
        ledger_id=_text(data["ledgerId"]),
        session=_text(data["session"] if "session" in data else data["sessionSha256"]),
        count=count,
        bytes=size,
        hash=_text(data["hash"]),
        leaf=_text(data["leaf"]),
        boundary=start,
        deleted=tuple(_text(item) for item in deleted),
        mac=_hex(data["mac"]) if "mac" in data else None,
        shortened="session" not in data,
    )


def _number(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no number of lines or bytes")
    return value


def _hex(value: Any) -> str:
    if not _SUM.fullmatch(_text(value)):
        raise ValueError(f"{value!r} is no sum")
    return str(value)


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError(f"{value!r} is no text")
    return value
