"""Sessions that this process has in memory, so that the next call on one need not read it again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from harness.sessions.lines.built import BuiltMessages
from harness.sessions.snapshots.snapshot import SnapshotWriter
from harness.sessions.tree.past_turns import PastTurns
from harness.sessions.tree.session_tree import SessionTree
from harness.sessions.view.prefix import PrefixWatch

__all__ = ["OpenSession", "SessionCache"]

_MAX_OPEN = 256


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session's tree, the writer of its snapshots, and what is remembered of its messages.

    Between calls nothing is held open.
    """

    tree: SessionTree
    snapshots: SnapshotWriter = field(default_factory=SnapshotWriter)
    built: BuiltMessages = field(default_factory=BuiltMessages)
    prefixes: PrefixWatch = field(default_factory=PrefixWatch)
    past: PastTurns = field(default_factory=PastTurns)


class SessionCache:
    """The sessions used last. A session that a call holds is not in here, so no two calls share one."""

    def __init__(self, most: int = _MAX_OPEN) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._open: OrderedDict[object, OpenSession] = OrderedDict()

    def take(self, place: object) -> OpenSession | None:
        """Take a session out, or None."""
        with self._lock:
            return self._open.pop(place, None)

    def put(self, place: object, session: OpenSession) -> None:
        """Put a session back; the one unused longest makes room."""
        with self._lock:
            self._open[place] = session
            while len(self._open) > self._most:
                self._open.popitem(last=False)

    def forget(self, place: object) -> None:
        """Drop a session that was deleted."""
        self.take(place)

    def forget_those(self, are_gone: Callable[[object], bool]) -> None:
        """Drop all sessions of such places."""
        with self._lock:
            for place in [place for place in self._open if are_gone(place)]:
                del self._open[place]
