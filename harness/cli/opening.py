"""The agent that a command works with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from harness.agent import HarnessAgent
from harness.hooks import Hook

__all__ = ["DEFAULT_AGENT", "DEFAULT_WORKSPACE", "opened"]

DEFAULT_WORKSPACE = Path("workspace")
DEFAULT_AGENT = "assistant"
_LEAVING = 30.0
"""Seconds that work in the background gets when a command ends."""


@asynccontextmanager
async def opened(
    workspace: Path, agent: str, model: str = "offline", *, remember: bool = False, hooks: Sequence[Hook] = ()
) -> AsyncIterator[HarnessAgent]:
    """The agent of that id in that workspace; closed, with everything written, when the command ends."""
    builder = HarnessAgent.builder().name(agent).agent_id(agent).model(model).workspace(workspace)
    builder = builder.compaction().hooks(*hooks)
    made = (builder.memory_flush() if remember else builder).build()
    try:
        yield made
    finally:
        await made.aclose(_LEAVING)
