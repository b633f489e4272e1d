"""A session from its files into memory, all of it in a worker: what the event loop gets is ready to be asked."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from harness.sessions.ledger.conversation import Conversation
from harness.sessions.ledger.reading import Loaded, read_session
from harness.sessions.lines.layout import Owner, SessionFiles

__all__ = ["load_session"]


class _Collector:
    """Python's garbage collector, a switch of the whole process; it exists to carry who has it switched off."""

    def __init__(self) -> None:
        self._pausing = threading.Lock()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Not to go over what is being read again and again, none of which is garbage.

        One load at a time switches it off. One that comes meanwhile does not prolong that, so that
        however many follow each other, the collector has its turn between them.
        """
        mine = gc.isenabled() and self._pausing.acquire(blocking=False)
        if mine:
            gc.disable()
        try:
            yield
        finally:
            if mine:
                gc.enable()
                self._pausing.release()

    def forget(self) -> None:
        # A thread that was loading is not in the forked child, and switches nothing on there.
        if self._pausing.locked():
            self._pausing = threading.Lock()
            gc.enable()


_collector = _Collector()
os.register_at_fork(after_in_child=_collector.forget)


def load_session(files: SessionFiles, owner: Owner) -> tuple[Loaded, Conversation]:
    """What reading the session gave, and its conversation. Raises `SessionDamaged`, `NewerFormat`."""
    with _collector.paused():
        loaded = read_session(files, owner)
        conversation = Conversation()
        conversation.reset(loaded)
        return loaded, conversation
