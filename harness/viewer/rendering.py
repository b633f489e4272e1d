"""The threads in which pages are made.

They are few and their own: the pool for file work is shared with the agent that a viewer may be mounted beside, and
no page, whatever strangers wrote into it, is to keep a conversation from its disk.
"""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

__all__ = ["rendered"]

_THREADS = 2

P = ParamSpec("P")
T = TypeVar("T")


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="harness-pages")


os.register_at_fork(after_in_child=_threads.cache_clear)  # threads do not survive a fork


async def rendered(make: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """What `make` gives, off the loop. It must change nothing: one whose caller was cancelled goes on to its end."""
    return await asyncio.get_running_loop().run_in_executor(_threads(), functools.partial(make, *args, **kwargs))
