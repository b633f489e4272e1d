"""The agent that a command works with."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path

from harness.agent import HarnessAgent
from harness.hooks import Hook

__all__ = ["DEFAULT_AGENT", "DEFAULT_WORKSPACE", "ContextPolicy", "opened"]

DEFAULT_WORKSPACE = Path("workspace")
DEFAULT_AGENT = "assistant"


class ContextPolicy(StrEnum):
    """How a long conversation is fitted into what the model takes."""

    COMPACTION = "compaction"
    WORKING_SET = "working-set"


_LEAVING = 30.0
"""Seconds that work in the background gets when a command ends."""


@asynccontextmanager
async def opened(
    workspace: Path,
    agent: str,
    model: str = "offline",
    *,
    context: ContextPolicy = ContextPolicy.COMPACTION,
    remember: bool = False,
    hooks: Sequence[Hook] = (),
) -> AsyncIterator[HarnessAgent]:
    """The agent of that id in that workspace; closed, with everything written, when the command ends.

    HARNESS_ANCHOR_KEY, where it is set, is the key of its anchors.
    """
    builder = HarnessAgent.builder().name(agent).agent_id(agent).model(model).workspace(workspace).hooks(*hooks)
    builder = builder.compaction() if context is ContextPolicy.COMPACTION else builder.working_set()
    if key := os.environ.get("HARNESS_ANCHOR_KEY"):
        builder = builder.anchor_key(key)
    made = (builder.memory_flush() if remember else builder).build()
    try:
        yield made
    finally:
        await made.aclose(_LEAVING)
