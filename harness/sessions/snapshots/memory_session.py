"""Track 1 in memory, for tests and for services that keep nothing."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.errors import ListMoved
from harness.ids import encode_name
from harness.sessions.snapshots.state_json import encode, encode_lines
from harness.state import SessionKey, State
from harness.text import loads

__all__ = ["InMemorySession"]


@dataclass(slots=True)
class _Kept:
    """Everything under one key, as the bytes that a file would hold: nothing is shared with a caller."""

    values: dict[str, bytes] = field(default_factory=dict)
    lists: dict[str, list[bytes]] = field(default_factory=dict)


class InMemorySession:
    """A `Session` that lives as long as the object. Safe to share between tasks, loops and threads."""

    def __init__(self) -> None:
        self._kept: dict[SessionKey, _Kept] = {}
        self._lock = threading.Lock()

    async def save(self, key: SessionKey, name: str, value: State) -> None:
        """Replace the single value `name`. Raises `InvalidId` for a name that no file can have."""
        encode_name(name, "state name")
        raw = encode(value, f"the state {name!r}")
        with self._lock:
            self._of(key).values[name] = raw

    async def get(self, key: SessionKey, name: str) -> State | None:
        """A copy of the single value, or None."""
        kept = self._kept.get(key)
        raw = kept.values.get(name) if kept else None
        return loads(raw) if raw is not None else None

    async def append(self, key: SessionKey, name: str, items: Sequence[State], expect_count: int) -> None:
        """Add to the end of a list. Raises `ListMoved` if it does not have `expect_count` items."""
        encode_name(name, "state name")
        lines = encode_lines(items)
        with self._lock:
            kept = self._kept.get(key, _Kept())
            count = len(kept.lists.get(name, ()))
            if count != expect_count:
                raise ListMoved(
                    f"the list {name!r} of session {key.session!r} has {count} items where its writer expected "
                    f"{expect_count}; nothing was written: read the list again, then replace it",
                    count,
                )
            if lines:
                self._of(key).lists.setdefault(name, []).extend(lines)

    async def replace(self, key: SessionKey, name: str, items: Sequence[State]) -> None:
        """Replace the whole list."""
        encode_name(name, "state name")
        lines = encode_lines(items)
        with self._lock:
            self._of(key).lists[name] = lines

    async def get_list(self, key: SessionKey, name: str) -> list[State]:
        """Copies of the items; empty if there is no such list."""
        with self._lock:
            kept = self._kept.get(key)
            lines = list(kept.lists.get(name, ())) if kept else []
        return [loads(line) for line in lines]

    async def exists(self, key: SessionKey) -> bool:
        """Whether anything is stored under the key."""
        kept = self._kept.get(key)
        return kept is not None and bool(kept.values or kept.lists)

    async def delete(self, key: SessionKey, name: str | None = None) -> None:
        """Remove one name, both kinds of it, or everything under the key."""
        with self._lock:
            if name is None:
                self._kept.pop(key, None)
            elif kept := self._kept.get(key):
                kept.values.pop(name, None)
                kept.lists.pop(name, None)

    async def list_keys(self, namespace: tuple[str, ...], agent: str) -> list[SessionKey]:
        """The keys of one namespace and agent, sorted by session id."""
        owner = (tuple(namespace), agent)
        with self._lock:
            keys = [key for key, kept in self._kept.items() if kept.values or kept.lists]
        return sorted((key for key in keys if (key.namespace, key.agent) == owner), key=lambda key: key.session)

    async def aclose(self) -> None:
        """Nothing is held open; what was stored stays."""

    def _of(self, key: SessionKey) -> _Kept:
        return self._kept.setdefault(key, _Kept())
