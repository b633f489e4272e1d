"""Prompts that were sent before: by their idempotency key, also behind a boundary, without reading everything.

A prompt since the boundary is in memory. A boundary names the newest `MOST_KEYS` prompts before it
in its field `keys`: the first 16 hex digits of the SHA-256 of the key, and the first byte of the
prompt's line. That line says whether it really is the key, and what follows it in the file is its turn.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from harness.filesystem import disk
from harness.sessions.ledger.reading import scan
from harness.sessions.lines.blobs import read_blob, try_expand
from harness.sessions.lines.entries import Entry, Position, digest
from harness.sessions.lines.layout import SessionFiles
from harness.sessions.view.projection import Turn, project_turns

__all__ = ["MOST_KEYS", "Answered", "AskedBefore", "read_answered", "stopped_at"]

MOST_KEYS = 1024
"""Prompts that a boundary names: a key that is older is not known any more, and its prompt runs again."""
_BLOCK = 64 * 1024
_HEX = 16


@dataclass(frozen=True, slots=True)
class Answered:
    """A prompt that was sent before under the same idempotency key, and its turn as it stands."""

    entry_id: str
    turn: Turn
    stopped_at: str | None = None
    """The line of the answer with which a hook has ended the turn, though it asks for tools: it is the reply."""


class AskedBefore:
    """The idempotency keys of one conversation."""

    def __init__(self, boundary: Entry | None) -> None:
        named = boundary.data.get("keys") if boundary else None
        self._before: dict[str, int] = named if isinstance(named, dict) else {}
        self._since: dict[str, Entry] = {}

    def note(self, entry: Entry) -> None:
        """Take in a message of the conversation."""
        key = entry.data.get("idempotencyKey")
        if isinstance(key, str):
            self._since[key] = entry

    def since(self, key: str) -> Entry | None:
        """The newest prompt with this key since the boundary."""
        return self._since.get(key)

    def before(self, key: str) -> int | None:
        """Where the line of an older one may begin."""
        offset = self._before.get(_short(key))
        return offset if isinstance(offset, int) and offset >= 0 else None

    def for_boundary(self) -> dict[str, int]:
        """The newest keys, oldest first."""
        since = {_short(key): entry.offset for key, entry in self._since.items()}
        known = {key: offset for key, offset in self._before.items() if key not in since} | since
        return dict([*known.items()][-MOST_KEYS:])


def read_answered(files: SessionFiles, offset: int, key: str) -> Answered | None:
    """The prompt in the line that begins at `offset`, if it has this key, and its turn; in a worker.

    Reads what the turn is long.
    """
    length = _BLOCK
    while True:
        data = disk.read(files.ledger, offset, length)
        entries, _, _ = scan(data if len(data) < length else data[: data.rfind(b"\n") + 1], Position(1, offset))
        if entries and entries[0].data.get("idempotencyKey") != key:
            return None
        own = _own_turn(entries)
        if own is not None or len(data) < length:
            break
        length *= 4
    return _answered(files, own if own is not None else entries)


def _own_turn(entries: list[Entry]) -> list[Entry] | None:
    """The lines of the first one's turn; None if they do not show where it ends."""
    turn = entries[0].data.get("turnId") if entries else None
    ends = next((i for i, entry in enumerate(entries) if entry.data.get("turnId") not in (None, turn)), None)
    return None if ends is None else entries[:ends]


def _answered(files: SessionFiles, entries: list[Entry]) -> Answered | None:
    turn_id = entries[0].data.get("turnId") if entries else None
    own = [entry for entry in entries if entry.data.get("turnId") == turn_id and entry.kind != "compaction"]
    for entry in own:
        if entry.refers:
            try_expand(entry.data, partial(read_blob, files.blobs))
    turns = project_turns(own, None)
    return Answered(entries[0].id, turns[0], stopped_at(own, turns[0])) if turns else None


def stopped_at(path: Iterable[Entry], turn: Turn) -> str | None:
    """The line of the answer with which a hook has ended this turn; None where none has.

    Its card says so, which stands before any other end: where a caller stops a turn, the card comes after that.
    """
    answer = None
    for entry in path:
        data = entry.data
        if entry.kind == "message" and data.get("via") == "model" and entry.id in turn.entry_ids:
            answer = entry.id
        elif entry.kind == "turn_card" and data.get("turn") == turn.id:
            return answer if data.get("outcome") == "stopped" else None
        elif entry.kind == "event" and data.get("kind") == "abort" and data.get("turnId") == turn.id:
            return None
    return None


def _short(key: str) -> str:
    return digest(key.encode())[:_HEX]
