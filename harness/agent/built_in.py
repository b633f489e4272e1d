"""The hooks an agent has of its own: which, and with what settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from harness.errors import ConfigError
from harness.filesystem import AbstractFilesystem
from harness.hooks import (
    CompactionConfig,
    CompactionHook,
    Hook,
    MemoryFlushHook,
    MemoryMaintenanceHook,
    SessionPersistenceHook,
    ToolResultEvictionConfig,
    ToolResultEvictionHook,
    TraceHook,
    WorkingSet,
    WorkspaceContextHook,
)
from harness.memory import MaintenanceConfig

__all__ = ["PARTS", "BuiltIn", "Part", "check_parts"]

Part = str
PARTS = (
    "compaction", "file_tools", "memory_flush", "memory_maintenance", "memory_tools", "session_persistence",
    "session_tools", "tool_result_eviction", "trace", "working_set", "workspace_context",
)  # fmt: skip
"""What `without` can leave out."""


@dataclass(slots=True)
class BuiltIn:
    """The settings of the built-in hooks; None for a capability that was not asked for."""

    compaction: CompactionConfig | None = None
    working_set: WorkingSet | None = None
    eviction: ToolResultEvictionConfig | None = None
    memory_flush: bool = False
    maintenance: MaintenanceConfig | None = None
    max_context_tokens: int = 8000
    context_files: list[str] = field(default_factory=list)

    def hooks(
        self,
        filesystem: AbstractFilesystem,
        without: AbstractSet[str],
        own: Sequence[Hook],
        own_tools: AbstractSet[str] = frozenset(),
    ) -> list[Hook]:
        """Those that are wanted. One that the user brings himself takes the place of the built-in of its class.

        `own_tools` are the names of the tools that are not built in.
        """
        self._check(without, own)
        made: dict[str, Hook | None] = {
            "trace": TraceHook(),
            "memory_flush": MemoryFlushHook() if self.memory_flush else None,
            "memory_maintenance": MemoryMaintenanceHook(self.maintenance) if self.maintenance else None,
            "compaction": CompactionHook(self.compaction) if self.compaction else None,
            "tool_result_eviction": ToolResultEvictionHook(self.eviction, own_tools)
            if "file_tools" not in without
            else None,
            "workspace_context": WorkspaceContextHook(
                filesystem, max_tokens=self.max_context_tokens, files=self.context_files
            ),
            "session_persistence": SessionPersistenceHook(),
        }
        wanted = [hook for part, hook in made.items() if hook is not None and part not in without]
        return [hook for hook in wanted if not any(isinstance(mine, type(hook)) for mine in own)]

    def chosen(self, without: AbstractSet[str]) -> WorkingSet | None:
        """The settings of the working set, where that is how history is fitted in."""
        return None if "working_set" in without else self.working_set

    def policy(self, without: AbstractSet[str]) -> str:
        """How history is fitted into the context, in one word."""
        if self.chosen(without):
            return "working_set"
        return "compaction" if self.compaction else "whole"

    def _check(self, without: AbstractSet[str], own: Sequence[Hook]) -> None:
        wanted = self.compaction is not None and "compaction" not in without
        if (wanted or any(isinstance(hook, CompactionHook) for hook in own)) and self.chosen(without):
            raise ConfigError(
                "compaction() and working_set() were both asked for, and each fits history into the context "
                "in its own way; leave one of them out"
            )
        if self.eviction and "file_tools" in without:
            raise ConfigError(
                "tool_result_eviction needs the file tools, or nobody could read the rest of a result; "
                'take "file_tools" out of without()'
            )


def check_parts(parts: Iterable[str]) -> None:
    """Raise `ConfigError` for a name that is no built-in part."""
    unknown = sorted(set(parts) - set(PARTS))
    if unknown:
        raise ConfigError(f"there is no built-in part {unknown[0]!r}; there are: {', '.join(PARTS)}")
