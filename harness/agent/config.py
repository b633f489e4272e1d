"""What a builder has decided: one frozen value that every call of an agent reads and none changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from harness.agent.own_models import OwnModels
from harness.filesystem import AbstractFilesystem, NamespaceFactory
from harness.hooks import CompactionConfig, HookChain, WorkingSet
from harness.models.base import Model
from harness.models.retry import RetryPolicy
from harness.sessions import Session, StateModule
from harness.sessions.lines.redact import Redactor
from harness.tools import Toolkit

__all__ = ["AgentConfig", "DiskFailure", "Durability", "StateFactory"]

Durability: TypeAlias = Literal["commit", "every", "none"]
DiskFailure: TypeAlias = Literal["fail", "continue"]
StateFactory: TypeAlias = Callable[[], StateModule]
"""Makes a state module for one call; usually the module's class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """See the builder's methods of the same names for what each value means."""

    name: str
    agent_id: str
    description: str
    system_prompt: str
    models: OwnModels
    model: Model
    fallback_models: tuple[Model, ...]
    model_options: Mapping[str, Any]
    model_timeout: float | None
    tool_timeout: float | None
    retry: RetryPolicy
    max_steps: int
    workspace: Path
    filesystem: AbstractFilesystem
    session: Session
    namespace: NamespaceFactory
    require_user: bool
    toolkit: Toolkit
    tool_digests: Mapping[str, str]
    """Of each tool as the model is shown it, by name: whether a session meets the tools it has met before."""
    hooks: HookChain
    state_factories: tuple[StateFactory, ...]
    durability: Durability
    on_disk_failure: DiskFailure
    gate_timeout: float
    compaction: CompactionConfig
    """How a conversation is compacted by hand, and by itself where the builder asked for it."""
    working_set: WorkingSet | None
    """How each request is given a part of the conversation; None where it shows the whole view."""
    redact: Redactor | None
    anchor_key: bytes | None = field(repr=False)
    policy: str
    """How history is fitted into the context, in one word; noted with every request."""
