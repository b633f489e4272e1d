"""Ids, the file names made from them, and timestamps.

Ids come from outside (web requests, chat platforms), so they are never file names as they are:
`encode_name` is the one function that turns an id into a name, and it is the only one that may.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from harness.errors import InvalidId

__all__ = [
    "MAX_ID_BYTES",
    "check_id",
    "content_name",
    "decode_name",
    "encode_name",
    "join_names",
    "named_bytes",
    "new_id",
    "new_session_id",
    "timestamp",
]

MAX_ID_BYTES = 4096
_MAX_NAME = 180
_KEPT_OF_LONG = 120
_KEPT = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-_@")
_NOT_FIRST = frozenset(b"-_")
# Names that Windows gives to devices, with or without an extension.
_DEVICES = frozenset({"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))})
_ESCAPE = re.compile(r"%([0-9a-f]{2})")

_BATCH = 32
_VARIANT = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))


class _Source:
    """What the ids of this process are made of: how far time came, and chance, fetched for some ids at once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.last = 0
        self.ends: list[str] = []

    def forget(self) -> None:
        # A forked child would give the same ids as its parent, and a thread of the parent may have held the lock.
        self.lock = threading.Lock()
        self.ends.clear()

    def fetch(self) -> str:
        """The last two groups of an id: the variant, 10, in its first two bits, and 62 by chance; more are kept."""
        noise = os.urandom(8 * _BATCH).hex()
        pieces = [noise[at : at + 16] for at in range(0, len(noise), 16)]
        made = [f"{_VARIANT[each[0]]}{each[1:4]}-{each[4:]}" for each in pieces]
        self.ends.extend(made[1:])
        return made[0]


_source = _Source()
os.register_at_fork(after_in_child=_source.forget)


def new_id() -> str:
    """A UUID version 7 (RFC 9562) as text; later ids of one process sort behind earlier ones."""
    source = _source
    try:
        end = source.ends.pop()  # without the lock: a step that the interpreter does not divide
    except IndexError:
        end = source.fetch()
    with source.lock:
        # 48 bits of milliseconds, then 12 bits counting within them: never backwards in a process.
        ticks = time.time_ns() * 4096 // 1_000_000
        if ticks <= source.last:
            ticks = source.last + 1
        source.last = ticks
    made = f"{ticks:015x}"  # formatted in one piece, which is felt: each line of a turn has an id
    return f"{made[:8]}-{made[8:12]}-7{made[12:]}-{end}"  # the version, 7, stands before the counter


def new_session_id() -> str:
    """`session-<UTC time>-<8 hex>`, for calls that name no session."""
    return f"session-{datetime.now(UTC):%Y-%m-%d-%H-%M-%S}-{os.urandom(4).hex()}"


def timestamp(when: datetime | None = None) -> str:
    """RFC 3339 in UTC with six decimals and `Z`."""
    if when is not None:
        return f"{when.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    return f"{_second(seconds)}.{nanoseconds // 1000:06d}Z"


@lru_cache(maxsize=4)  # every line that is written asks for the time
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()


def check_id(kind: str, value: object) -> str:
    """Return `value` if it can be an id; raise `InvalidId` naming `kind` if not.

    Refused: what is no text, blank text, NUL, lone surrogates, more than 4 096 bytes of UTF-8.
    """
    if not isinstance(value, str):
        raise InvalidId(f"{kind} must be text, not {type(value).__name__}")
    if not value.strip():
        raise InvalidId(f"{kind} is blank; leave it out or give it a value")
    if "\0" in value:
        raise InvalidId(f"{kind} {value[:40]!r} contains a NUL character; choose another id")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidId(f"{kind} {value[:40]!r} contains half a surrogate pair; choose another id") from None
    if size > MAX_ID_BYTES:
        raise InvalidId(f"{kind} has {size} bytes, the most is {MAX_ID_BYTES}; choose a shorter id")
    return value


def encode_name(value: str, kind: str = "id") -> str:
    """The file name for an id: portable, at most 180 bytes, a different one for every id.

    `a-z 0-9 - _ @` stay (`-` and `_` not as the first), every other byte of the UTF-8 form becomes
    `%xx`. Capitals too, since some disks are blind to case, and `.`, since a session called `a.log`
    must not meet the ledger of `a`. A long name keeps its first 120 characters and ends in `%%` and
    32 hex digits of the SHA-256 of the id. Raises `InvalidId`.
    """
    name = _escape(check_id(kind, value).encode())
    if name in _DEVICES:
        name = f"%{ord(name[0]):02x}{name[1:]}"
    return _shorten(name, value)


def decode_name(name: str) -> str | None:
    """The id behind a file name; None if the name was shortened or is none of ours."""
    if "%%" in name:
        return None
    try:
        raw = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), name).encode("latin-1")
        value = raw.decode()
        return value if encode_name(value) == name else None
    except (UnicodeError, InvalidId):
        return None


def join_names(parts: tuple[str, ...], kind: str = "namespace part") -> str:
    """One name for a namespace: the encoded parts joined by `+`, and `_` for the empty one."""
    if not parts:
        return "_"
    return _shorten("+".join(encode_name(part, kind) for part in parts), "\0".join(parts))


@lru_cache(maxsize=1024)  # every file of a call is named by the same few ids
def _escape(raw: bytes) -> str:
    kept = "".join(chr(byte) if byte in _KEPT else f"%{byte:02x}" for byte in raw)
    return f"%{raw[0]:02x}{kept[1:]}" if raw[0] in _NOT_FIRST else kept


def _shorten(name: str, value: str) -> str:
    if len(name) <= _MAX_NAME:
        return name
    return f"{name[:_KEPT_OF_LONG]}%%{hashlib.sha256(value.encode()).hexdigest()[:32]}"


def content_name(data: Any) -> str:
    """The name of a content: the SHA-256 of its bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


def named_bytes(name: str, data: object) -> bytes:
    """Data as bytes that nobody can change. Raises ValueError where they are none, or not those of this name."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise ValueError(f"media data must be bytes, not {type(data).__name__}; give what Media.from_bytes takes")
    held = bytes(data)
    if (found := content_name(held)) != name:
        raise ValueError(f"the SHA-256 of media data is {found}, not {name[:80]!r}; make them with Media.from_bytes")
    return held
