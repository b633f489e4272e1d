"""What the tests of removing users share: a user with everything, and eyes for what is left."""

from pathlib import Path
from typing import Any

from agentkit import agent_of

from harness import HarnessAgent, RuntimeContext
from harness.messages import Media, MediaBlock, Msg, TextBlock
from harness.testing import ScriptedModel

CANARY = "canary-7f3a"


def bytes_of(*folders: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file()}


async def settled(agent: HarnessAgent, *folders: Path) -> dict[str, bytes]:
    """The bytes of everything, once the lists of sessions are written."""
    await agent._catalogs.aclose()
    return bytes_of(*folders)


def traces(text: str, *folders: Path) -> list[str]:
    """Files that hold the text, and names that do."""
    found = [name for name, raw in bytes_of(*folders).items() if text.encode() in raw]
    return found + [str(path) for folder in folders for path in folder.rglob("*") if text in path.name]


def picture(word: str) -> Msg:
    media = Media.from_bytes(b"\x89PNG" + word.encode() * 100, "image/png")
    return Msg(role="user", blocks=[TextBlock(text=word), MediaBlock(type="image", media=media)])


async def talked(agent: HarnessAgent, user: str | None, word: str, **more: Any) -> None:
    """Two conversations with a picture, a large text and a memory."""
    for session in ("s1", f"{word}-s2"):
        ctx = RuntimeContext(session_id=session, user_id=user, **more)
        await agent.call(picture(word), ctx)
        await agent.call(f"{word} " * 2_000, ctx, idempotency_key=f"key {word}")
    files = agent.config.filesystem.for_namespace(agent.config.namespace(RuntimeContext(user_id=user)))
    await files.write("MEMORY.md", word)
    await files.write("memory/2026-01-02.md", word)
    await files.write("skills/own.md", word)


def talkative(workspace: Path, **options: Any) -> HarnessAgent:
    return agent_of(workspace, ScriptedModel(["I heard it."] * 100), **options)
