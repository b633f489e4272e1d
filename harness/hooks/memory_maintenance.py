"""Priority 6: now and then the tenant's memory is tidied up, behind the reply.

What is due is known to the process, not to an agent: however many agents serve a tenant, its memory
is kept by one of them at a time, and not again before the gap has passed.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Hashable
from datetime import UTC, datetime
from functools import partial

from harness.context import CallScope
from harness.filesystem import AbstractFilesystem
from harness.hooks.events import PostCall
from harness.hooks.gauge import side_room
from harness.hooks.memory_flush import clear_and_tell
from harness.hooks.side import Announcer, Background, Recollector
from harness.memory import MaintenanceConfig, maintain

__all__ = ["MemoryMaintenanceHook"]

_MOST_KNOWN = 10_000


class MemoryMaintenanceHook:
    """Takes the daily files into MEMORY.md and archives old ones, at most once a gap for each tenant.

    It runs behind the flush of the same turn. The reply does not wait; what fails costs a log line and
    is tried again after the gap.
    """

    priority = 6
    events = (PostCall,)

    def __init__(self, config: MaintenanceConfig | None = None) -> None:
        self.config = config or MaintenanceConfig()

    async def on_event(self, event: PostCall) -> None:
        """Start the upkeep in the background, if it is due."""
        scope = event.scope
        files = scope.get(AbstractFilesystem)  # type: ignore[type-abstract]  # looked up by its base class
        place = _place(files, scope.namespace)
        if not _desk.claim(place, self.config.gap_seconds):
            return
        runner = scope.get(Background)  # type: ignore[type-abstract]  # looked up by its protocol
        room = side_room(scope)
        name = f"memory maintenance of tenant {scope.namespace!r}"
        if not runner.start(name, lambda: self._run(scope, files, place, room), lane=("memory", scope.namespace)):
            _desk.give_back(place, done=False)

    async def _run(self, scope: CallScope, files: AbstractFilesystem, place: Hashable, room: int | None) -> None:
        model = scope.get(Recollector)  # type: ignore[type-abstract]  # looked up by its protocol
        ask = partial(model.recollect, purpose="consolidate")
        progress = scope.get(Announcer).announce  # type: ignore[type-abstract]  # the same
        try:
            kept = model.guarded(files)
            await clear_and_tell(scope, kept, datetime.now(UTC))
            await maintain(kept, ask, self.config, datetime.now(UTC), progress, room=room)
        finally:
            _desk.give_back(place, done=True)


class _Desk:
    """Which tenants' memories are being kept, and when each was last."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self._lock = threading.Lock()
        self._running: set[Hashable] = set()
        self._last: dict[Hashable, float] = {}

    def claim(self, place: Hashable, gap: float) -> bool:
        """Take a tenant's memory on; False if somebody has it, or had it less than `gap` seconds ago."""
        with self._lock:
            last = self._last.get(place)
            if place in self._running or (last is not None and time.monotonic() - last < gap):
                return False
            self._running.add(place)
            return True

    def give_back(self, place: Hashable, *, done: bool) -> None:
        """Let others have it; `done` says that the gap begins."""
        with self._lock:
            self._running.discard(place)
            if done:
                self._last.pop(place, None)
                self._last[place] = time.monotonic()
            while len(self._last) > _MOST_KNOWN:
                del self._last[next(iter(self._last))]


_desk = _Desk()
os.register_at_fork(after_in_child=_desk.renew)


def _place(files: AbstractFilesystem, namespace: tuple[str, ...]) -> Hashable:
    """What tells one tenant's memory from another's; for a place of the user's own, the class that serves it."""
    root = getattr(files, "root", None) or getattr(files, "url", None) or type(files).__qualname__
    return str(root), namespace
