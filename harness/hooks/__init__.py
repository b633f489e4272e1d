"""Hooks: the events of a call, their dispatch, and the built-in capabilities, a module each."""

from __future__ import annotations

from harness.hooks.chain import DEFAULT_PRIORITY, FunctionHook, Hook, HookChain, as_hook
from harness.hooks.compaction import CompactionHook, Compactor
from harness.hooks.compaction_config import CompactionConfig, TruncateArgsConfig
from harness.hooks.events import (
    ActingChunk,
    Error,
    Event,
    Notice,
    PostActing,
    PostCall,
    PostReasoning,
    PostSummary,
    PreActing,
    PreCall,
    PreReasoning,
    PreSummary,
    ReasoningChunk,
    SummaryChunk,
    SystemPart,
)
from harness.hooks.memory_flush import MemoryFlushHook
from harness.hooks.memory_maintenance import MemoryMaintenanceHook
from harness.hooks.persistence import SessionPersistenceHook
from harness.hooks.result_eviction import ToolResultEvictionConfig, ToolResultEvictionHook
from harness.hooks.side import Announcer, Background, Notices, Recollector, SideModel
from harness.hooks.trace import TraceHook
from harness.hooks.working_set import Selector
from harness.hooks.working_set_config import WorkingSet
from harness.hooks.workspace_context import WorkspaceContextHook

__all__ = [
    "DEFAULT_PRIORITY",
    "ActingChunk",
    "Announcer",
    "Background",
    "CompactionConfig",
    "CompactionHook",
    "Compactor",
    "Error",
    "Event",
    "FunctionHook",
    "Hook",
    "HookChain",
    "MemoryFlushHook",
    "MemoryMaintenanceHook",
    "Notice",
    "Notices",
    "PostActing",
    "PostCall",
    "PostReasoning",
    "PostSummary",
    "PreActing",
    "PreCall",
    "PreReasoning",
    "PreSummary",
    "ReasoningChunk",
    "Recollector",
    "Selector",
    "SessionPersistenceHook",
    "SideModel",
    "SummaryChunk",
    "SystemPart",
    "ToolResultEvictionConfig",
    "ToolResultEvictionHook",
    "TraceHook",
    "TruncateArgsConfig",
    "WorkingSet",
    "WorkspaceContextHook",
    "as_hook",
]
