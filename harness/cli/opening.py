"""The agent that a command works with."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path

from harness.agent import HarnessAgent
from harness.errors import ConfigError
from harness.hooks import Hook

__all__ = ["ContextPolicy", "opened"]

_KEY = "HARNESS_ANCHOR_KEY"


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
    namespace: tuple[str, ...] = (),
    context: ContextPolicy = ContextPolicy.COMPACTION,
    remember: bool = False,
    hooks: Sequence[Hook] = (),
) -> AsyncIterator[HarnessAgent]:
    """The agent of that id in that workspace; closed, with everything written, when the command ends.

    With a `namespace` it serves that one alone, whoever calls.

    HARNESS_ANCHOR_KEY, where it is set, is the key of its anchors. Raises `ConfigError` for one that could be guessed.
    """
    builder = HarnessAgent.builder().name(agent).agent_id(agent).model(model).workspace(workspace).hooks(*hooks)
    builder = builder.namespace(lambda _: namespace) if namespace else builder
    builder = builder.compaction() if context is ContextPolicy.COMPACTION else builder.working_set()
    if key := os.environ.get(_KEY):
        try:
            builder = builder.anchor_key(key)
        except ConfigError as error:
            text = f"{_KEY} has {len(key)} characters, and a key that nobody guesses has more"
            raise ConfigError(f"{text}; make one with `openssl rand -hex 32`, or leave it out") from error
    made = (builder.memory_flush() if remember else builder).build()
    try:
        yield made
    finally:
        await made.aclose(_LEAVING)
