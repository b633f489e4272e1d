"""What is at work for one visitor at a time, so that whoever asks for much waits for it, and nobody else does.

The processes that read and the threads that make pages are few, and all visitors' own. Each visitor has so many
places in the queues before them, and no more: what is asked for beyond that waits in front of the queue.
"""

from __future__ import annotations

import asyncio

__all__ = ["Share"]

_PAGES = 3
_WHOLE = 2
_MADE = 1


class Share:
    """The places of one visitor: for pages that are read, sessions gone through as a whole, pieces of pages made."""

    def __init__(self) -> None:
        self.pages = asyncio.Semaphore(_PAGES)
        self.whole = asyncio.Semaphore(_WHOLE)
        self.made = asyncio.Semaphore(_MADE)
        self.counting: dict[str, tuple[int, int]] = {}
        """How many bytes were read, and of how many, of the sessions that are being counted, by their keys."""
