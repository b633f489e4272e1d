"""A conversation of a known size per turn, and a count of what it does to the disk."""

import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.agent import HarnessAgent
from harness.context import RuntimeContext
from harness.hooks import CompactionConfig
from harness.messages import Msg, ToolUse
from harness.models.base import Chunk, Done, ModelRequest
from harness.tools import tool

PROMPT, ANSWER, RESULT = 600, 1200, 4000  # bytes
CTX = RuntimeContext(session_id="long", user_id="alice")


class InstantModel:
    """Answers at once: text of a fixed size, and in every third turn a tool call before it."""

    provider = "test"
    name = "instant"
    context_window = None

    def __init__(self) -> None:
        self._calls = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        yield Done(self._answer(request.messages[-1]))

    def _answer(self, last: Msg) -> Msg:
        if last.role == "user" and last.text.startswith("use the tool"):
            self._calls += 1
            return Msg.assistant(ToolUse(id=f"call-{self._calls}", name="look_up", input={"place": "somewhere"}))
        return Msg.assistant("answer " * (ANSWER // 7))


@tool
async def look_up(place: str) -> str:
    """Give a long result."""
    return "result " * (RESULT // 7)


def build(workspace: Path, *, durability: str = "commit", compaction: bool = True) -> HarnessAgent:
    """An agent with everything that is on by default, and compaction at its default thresholds."""
    builder = HarnessAgent.builder().name("floor").model(InstantModel()).workspace(workspace).tool(look_up)
    if compaction:
        builder.compaction(CompactionConfig())
    return builder.durability(durability).build()  # type: ignore[arg-type]


def prompt_of(turn: int) -> str:
    start = "use the tool " if turn % 3 == 0 else "just answer "
    return (start + f"turn {turn} " + "words " * (PROMPT // 6))[:PROMPT]


async def take_turns(agent: HarnessAgent, first: int, count: int, ctx: RuntimeContext = CTX) -> None:
    for turn in range(first, first + count):
        await agent.call(prompt_of(turn), ctx)


async def fill(workspace: Path, messages: int) -> int:
    """Make the conversation at least so many messages long, without syncs; the number of its turns."""
    turns = 0
    async with build(workspace, durability="none") as agent:
        logged = 0
        while logged < messages:
            await take_turns(agent, turns, 1)
            turns += 1
            # Prompt, session facts and answer; the call and its result in every third turn.
            logged += 5 if (turns - 1) % 3 == 0 else 3
    return turns


class DiskCount:
    """What was done to the disk, by the name of the operation and by file; counted while `counting`."""

    def __init__(self) -> None:
        self.operations: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self.syncs: Counter[str] = Counter()

    @property
    def total_bytes(self) -> int:
        return sum(self.bytes.values())

    @property
    def total_syncs(self) -> int:
        return self.operations["fdatasync"] + self.operations["fsync"]

    @contextmanager
    def counting(self) -> Iterator[None]:
        real = {name: getattr(os, name) for name in ("write", "fdatasync", "fsync", "replace", "rename", "link")}
        for name, function in real.items():
            setattr(os, name, self._counted(name, function))
        try:
            yield
        finally:
            for name, function in real.items():
                setattr(os, name, function)

    def _counted(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def stand_in(*arguments: Any, **options: Any) -> Any:
            self.operations[name] += 1
            if name == "write":
                self.bytes[_kind_of(arguments[0])] += len(arguments[1])
            elif name in ("fdatasync", "fsync"):
                self.syncs[_kind_of(arguments[0])] += 1
            return real(*arguments, **options)

        return stand_in


def _kind_of(descriptor: int) -> str:
    """What kind of file a descriptor is of: its name without the session's."""
    path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
    return "temporary" if path.name.startswith(".tmp-") else path.name.removeprefix("long")
