"""What is killed while it removes a user: everything that a user can have, and bob beside it."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agentkit import ALICE, BOB, agent_of, shown
from javakit import Java, text

from harness.agent import HarnessAgent
from harness.messages import Media, MediaBlock, Msg
from harness.sessions import JsonSession
from harness.testing import ScriptedModel

CANARY = "canary-91c2"
OLD = [text(1, "USER", f"old {CANARY}", "user"), text(2, "ASSISTANT", f"Hello {CANARY}.", "bot")]


def agent_in(base: Path, model: Any = None) -> HarnessAgent:
    return agent_of(base / "w", model or ScriptedModel(["ok"] * 9), session=JsonSession(base / "store"))


async def prepare(base: Path) -> None:
    """Alice with a session, a picture, a memory, snapshots elsewhere, and one session of the Java harness; and Bob."""
    async with agent_in(base) as agent:
        for ctx in (ALICE, BOB):
            media = Media.from_bytes(f"{CANARY} of {ctx.user_id}".encode(), "image/png")
            await agent.call(Msg(role="user", blocks=[MediaBlock(type="image", media=media)]), ctx)
            await agent.config.filesystem.for_namespace((str(ctx.user_id),)).write(
                "MEMORY.md", f"{CANARY} {ctx.user_id}"
            )
    java = Java(base / "w", user="alice")
    java.offload("java", OLD)
    java.remember("java", OLD)


async def remove(progress: Any, arguments: dict[str, Any]) -> None:
    agent = agent_in(Path(arguments["base"]))
    await agent.delete_user("alice")
    progress.committed(1, "delete", "gone")


async def talk(progress: Any, arguments: dict[str, Any]) -> None:
    """Calls on sessions that are begun, gone on with, and removed meanwhile; reports what the model saw at each."""
    model = ScriptedModel(["ok"] * 1000)
    agent = agent_of(Path(arguments["base"]) / "w", model, session=JsonSession(Path(arguments["base"]) / "store"))
    for number in range(arguments["calls"]):
        session = f"s{number % 3}" if number % 2 else f"new-{number}"
        await agent.call(f"{CANARY} {number}", ALICE.with_changes(session_id=session))
        saw = [words for role, words in shown(model.requests[-1]) if role == "user"]
        progress.committed(number, session, " | ".join(saw))
    await agent.aclose()
