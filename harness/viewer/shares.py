"""What is at work for one visitor at a time, so that whoever asks for much waits for it, and nobody else does.

The processes that read and the threads that make pages are few, and all visitors' own. Each visitor has so many
places in the queues before them, and no more: what is asked for beyond that waits in front of the queue.
"""

from __future__ import annotations

import asyncio

__all__ = ["Share"]

_PAGES = 3
_WHOLE = 2
"""Together fewer than there are worker processes at a time: one is left, whatever a visitor asks for."""
_MADE = 1


class Share:
    """The places of one visitor.

    pages  for pages, pictures and lists that are read
    whole  for sessions gone through as a whole
    made   for pieces of pages that are made
    """

    def __init__(self) -> None:
        self.pages = asyncio.Semaphore(_PAGES)
        self.whole = asyncio.Semaphore(_WHOLE)
        self.made = asyncio.Semaphore(_MADE)
