"""The branches of a ledger: the tree as pieces without a fork, and the turns of one piece.

A piece that was left has a page of its own, to be read and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import SessionNotFound
from harness.sessions.lines.entries import Entry
from harness.transcripts import read, stitched
from harness.viewer.ledgers import Ledger
from harness.viewer.shown import first_words

__all__ = ["Piece", "branches", "key_of_end", "piece_of", "turns_at"]

_CAP = 20_000


@dataclass(frozen=True, slots=True)
class Piece:
    """Lines of a ledger that follow each other. `active` leads to the end of the conversation.

    left    the piece it leaves, None for the first
    depth   how many pieces lie between the beginning and this one
    """

    entries: Sequence[Entry]
    left: Piece | None
    depth: int
    active: bool
    label: str | None

    @property
    def id(self) -> str:
        """The id of its first line."""
        return self.entries[0].id

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        messages = [entry.data["message"] for entry in self.entries if entry.kind == "message"]
        asked: Mapping[str, Any] = next((message for message in messages if message.get("role") == "user"), {})
        fields = {
            "id": self.id,
            "parent": self.left.id if self.left else None,
            "depth": self.depth,
            "at": self.entries[0].data.get("timestamp"),
            "active": self.active,
            "messages": len(messages),
            "words": first_words(_text(asked)),
            "label": self.label,
        }
        return {name: value for name, value in fields.items() if value is not None}


def branches(ledger: Ledger) -> list[Piece]:
    """The pieces of the tree, those that are left before those that leave them."""
    children: dict[str | None, list[Entry]] = {}
    known = {entry.id for entry in ledger.entries}
    for entry in ledger.entries:
        parent = entry.data.get("parentId")
        children.setdefault(parent if parent in known else None, []).append(entry)
    active = {entry.id for entry in ledger.path}
    labels = {entry.data.get("target"): entry.data.get("name") for entry in ledger.entries if entry.kind == "label"}
    return list(_pieces(children, active, labels))


def piece_of(ledger: Ledger, piece_id: str) -> Piece:
    """The piece that begins with this line. Raises `SessionNotFound`."""
    found = next((piece for piece in branches(ledger) if piece.id == piece_id), None)
    if found is None:
        raise SessionNotFound("there is no such branch in this ledger; its page lists those there are")
    return found


def key_of_end(piece: Piece) -> str | None:
    """The key of the last turn of a piece, for a link to it; None where it has none."""
    last = next((entry for entry in reversed(piece.entries) if entry.kind == "message"), None)
    return f"b{last.offset}" if last else None


def turns_at(source: Path, session_id: str, offsets: frozenset[int]) -> list[dict[str, Any]]:
    """The turns on these lines of a session, stitched. Reads all of it: run it in a worker."""
    found = read(source, session_id, cap=_CAP).turns
    turns = stitched(turn for turn in found if turn.offset in offsets)
    return [{name: value for name, value in turn.items() if name != "aside"} for turn in turns]


def _pieces(
    children: Mapping[str | None, Sequence[Entry]], active: set[str], labels: Mapping[Any, Any]
) -> Iterator[Piece]:
    waiting: list[tuple[Entry, Piece | None, int]] = [(entry, None, 0) for entry in reversed(children.get(None, ()))]
    while waiting:
        entry, left, depth = waiting.pop()
        entries = [entry]
        while len(following := children.get(entries[-1].id, ())) == 1:
            entries.append(following[0])
        label = next((labels[each.id] for each in entries if each.id in labels), None)
        piece = Piece(entries, left, depth, entry.id in active, label)
        yield piece
        waiting += [(each, piece, depth + 1) for each in reversed(following)]


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return " ".join(str(block.get("text", "")) for block in blocks if isinstance(block, dict))
