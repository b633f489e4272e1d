"""Who wants to hear that a call has news: in any thread, on any loop, each on its own account.

A call is not stopped by who watches it. A listener that raises, whatever it is, is dropped and told to the log; the
others hear all the same, and the call goes on. `SystemExit` is no exception: the loop that a listener is called from
serves others too. A `KeyboardInterrupt` goes on to the process, as from the keyboard.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable

from harness.hooks.uninterrupted import handed_on

__all__ = ["Listeners", "soon_on"]

log = logging.getLogger("harness.agent")


def soon_on(loop: asyncio.AbstractEventLoop, work: Callable[[], object]) -> bool:
    """Let a loop of whatever thread do something soon; False where it was closed, also in this very moment."""
    try:
        loop.call_soon_threadsafe(work)
    except RuntimeError:
        if not loop.is_closed():
            raise
        return False
    return True


class Listeners:
    """Functions to be called when there is news. All methods are safe from any thread."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._lock = threading.Lock()
        self._wakes: list[Callable[[], object]] = []

    def add(self, wake: Callable[[], object]) -> Callable[[], None]:
        """Call `wake`, from any thread, when there is news; returns what ends it."""
        with self._lock:
            self._wakes.append(wake)
        return lambda: self._drop(wake)

    def wake(self) -> None:
        """Tell all. Raises nothing that a listener raised."""
        with self._lock:
            wakes = tuple(self._wakes)
        for wake in wakes:
            try:
                wake()
            # Nothing in between awaits: neither a cancellation nor the end of a coroutine is meant for the call.
            except BaseException as error:
                log.exception("a listener of session %r failed; it hears no more", self._session_id)
                self._drop(wake)
                handed_on(error)

    def _drop(self, wake: Callable[[], object]) -> None:
        with self._lock:
            if wake in self._wakes:
                self._wakes.remove(wake)
