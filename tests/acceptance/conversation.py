"""The conversation that the crash test kills: every kind of turn, with a model that needs no script."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from harness.agent import HarnessAgent
from harness.context import RuntimeContext
from harness.errors import ToolError
from harness.hooks import CompactionConfig
from harness.messages import Media, MediaBlock, Msg, ToolUse
from harness.models.base import Chunk, Done, ModelRequest, TextDelta, ToolCallDelta
from harness.testing.crash_process import Progress
from harness.text import dumps
from harness.tools import tool

KINDS = ("plain", "tools", "state", "media", "large", "files")
PICTURE = bytes(range(256)) * 40
_TURN = re.compile(r"turn (\d+) (\w+)")


class Counter:
    """A state module that counts."""

    name = "counter"

    def __init__(self) -> None:
        self.value = 0

    def save(self) -> dict[str, Any]:
        return {"value": self.value}

    def load(self, value: dict[str, Any]) -> None:
        self.value = int(value["value"])


@tool
async def slow(word: str) -> str:
    """Come back later than the others."""
    await asyncio.sleep(0.004)
    return f"slow {word}"


@tool
def quick(word: str) -> str:
    """Come back at once, from a thread."""
    return f"quick {word}"


@tool
async def failing() -> str:
    """Never works."""
    raise ToolError("it does not work")


@tool
async def bump(counter: Counter) -> str:
    """Count one more."""
    counter.value += 1
    return f"counter {counter.value}"


@tool
async def much(number: int) -> str:
    """Give more than a line of the ledger holds."""
    return f"{number:06}" * 60_000


class Talker:
    """Answers by what the last prompt asks for; the same request always gets the same answer."""

    provider = "test"
    name = "talker"
    context_window = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        answer = self._answer(request)
        for use in answer.tool_uses:
            await asyncio.sleep(0)
            yield ToolCallDelta(use.id, use.name, dumps(use.input).decode())
        for word in answer.text.split():
            await asyncio.sleep(0)
            yield TextDelta(f"{word} ")
        yield Done(answer)

    def _answer(self, request: ModelRequest) -> Msg:
        last = request.messages[-1]
        if last.role == "tool":
            results = [result.text[:40] for message in request.messages[-3:] for result in message.tool_results]
            return Msg.assistant(f"reply {self._turn(request)[0]}: {'; '.join(results)}")
        if "Summarise the conversation" in last.text:
            return Msg.assistant(f"Summary of {len(request.messages)} messages.")
        number, kind = self._turn(request)
        uses = _calls(int(number), kind)
        return Msg.assistant(*uses) if uses else Msg.assistant(f"reply {number}: " + "word " * 30)

    @staticmethod
    def _turn(request: ModelRequest) -> tuple[str, str]:
        said = (message.text for message in request.messages if message.role == "user")
        number, kind = [match for text in said for match in _TURN.findall(text)][-1]
        return number, kind


def _calls(number: int, kind: str) -> list[ToolUse]:
    asked: dict[str, list[tuple[str, dict[str, Any]]]] = {
        "tools": [("slow", {"word": "a"}), ("quick", {"word": "b"}), ("failing", {})],
        "state": [("bump", {})],
        "large": [("much", {"number": number}), ("quick", {"word": "c"})],
        "files": [("write_file", {"path": f"note-{number}.md", "content": f"note {number}"})],
    }
    return [
        ToolUse(id=f"call-{number}-{place}", name=name, input=arguments)
        for place, (name, arguments) in enumerate(asked.get(kind, []))
    ]


def build(workspace: str | Path) -> HarnessAgent:
    """The agent, as the killed process and the one after it have it."""
    return (
        HarnessAgent.builder()
        .name("crash")
        .model(Talker())
        .workspace(workspace)
        .tools(slow, quick, failing, bump, much)
        .state_module(Counter)
        .compaction(CompactionConfig(trigger_messages=12, trigger_tokens=10**9, keep_messages=5))
        .build()
    )


def context_of(session: str) -> RuntimeContext:
    return RuntimeContext(session_id=session, user_id="alice")


def prompt_of(number: int) -> str:
    return f"turn {number} {KINDS[number % len(KINDS)]}"


def message_of(number: int) -> Msg:
    prompt = prompt_of(number)
    if not prompt.endswith("media"):
        return Msg.user(prompt)
    picture = Media.from_bytes(PICTURE + str(number).encode(), "image/png")
    return Msg.user(prompt, MediaBlock(type="image", media=picture))


async def talk(progress: Progress, arguments: Mapping[str, Any]) -> None:
    """Some turns, from number `first` on; every other reply is taken as a stream."""
    agent, ctx = build(arguments["workspace"]), context_of(arguments["session"])
    first = int(arguments["first"])
    for number in range(first, first + int(arguments["turns"])):
        progress.begun(number, prompt_of(number))
        call = agent.call(message_of(number), ctx)
        if number % 2:
            async for _ in call:
                pass
        reply = await call
        progress.committed(number, prompt_of(number), reply.text)
    await agent.aclose()
