"""How much work something is: not by the clock, by the lines of this library's readers that it runs."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import harness.transcripts

_ROOM = harness.transcripts.__path__[0]


def lines_run(work: Callable[[], object], room: str = _ROOM) -> int:
    """Lines of Python that run in a room, those of calls that a comparison or a sort makes too."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if not frame.f_code.co_filename.startswith((room, "<")):
            return None
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count
