"""A small memory of what was read, forgotten when the file changes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

__all__ = ["MANY", "Memo"]

MANY = 16 * 1024
"""How many files a listing remembers: more than it looks at."""

T = TypeVar("T")


class Memo:
    """Keeps the newest few results, each for a state of its file; safe between threads."""

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._lock = threading.Lock()
        self._found: OrderedDict[Hashable, tuple[Hashable, Any]] = OrderedDict()

    def get(self, name: Hashable, state: Hashable, make: Callable[[], T]) -> T:
        """What `make` gives, or gave while `state` was the same."""
        with self._lock:
            known = self._found.get(name)
            if known is not None and known[0] == state:
                self._found.move_to_end(name)
                found: T = known[1]
                return found
        made = make()
        with self._lock:
            self._found[name] = (state, made)
            self._found.move_to_end(name)
            while len(self._found) > self._kept:
                self._found.popitem(last=False)
        return made
