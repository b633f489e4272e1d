"""One of several processes that talk in the same session: `two_writers.py WORKSPACE NAME CALLS BYTES`.

Prints a JSON line for each reply that was given.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator

from harness.agent import HarnessAgent
from harness.context import RuntimeContext
from harness.hooks import CompactionConfig
from harness.messages import Msg, ToolUse
from harness.models.base import Chunk, Done, ModelRequest
from harness.tools import tool

CTX = RuntimeContext(session_id="s", user_id="alice")


@tool
async def long_result(size: int, letter: str) -> str:
    """Give a result that no line of a ledger holds."""
    await asyncio.sleep(0.001)
    return letter * size


class Model:
    """Asks for two large results at once where the prompt says `tools`, and repeats the prompt's first words."""

    provider = "test"
    name = "echo"
    context_window = None

    def __init__(self, size: int) -> None:
        self.size = size

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        last = request.messages[-1]
        if last.role == "user" and " tools " in last.text[:100]:
            name = last.text[:20].split()[0]
            uses = [ToolUse(id=f"{name}-{x}", name="long_result", input={"size": self.size, "letter": x}) for x in "ab"]
            yield Done(Msg.assistant(*uses))
            return
        said = [message.text for message in request.messages if message.role == "user"]
        yield Done(Msg.assistant(f"heard {said[-1][:40].split()[0]}"))


def build(workspace: str, size: int = 10) -> HarnessAgent:
    return (
        HarnessAgent.builder()
        .name("crash")
        .model(Model(size))
        .workspace(workspace)
        .tool(long_result)
        .compaction(CompactionConfig(trigger_messages=8, trigger_tokens=10**9, keep_messages=4))
        .gate_timeout(120)
        .build()
    )


async def main(workspace: str, name: str, calls: int, size: int) -> None:
    async with build(workspace, size) as agent:
        for number in range(calls):
            kind = "tools" if number % 4 == 3 else "plain"
            prompt = f"{name}{number} {kind} " + name * size
            reply = await agent.call(prompt, CTX)
            print(json.dumps({"prompt": prompt[:20].split()[0], "reply": reply.text}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
