"""Built-in hooks stand in their places, and each can be left out, replaced or configured by itself."""

from pathlib import Path
from typing import Any

import pytest

from harness import HarnessAgent
from harness.errors import ConfigError
from harness.hooks import (
    CompactionConfig,
    CompactionHook,
    MemoryFlushHook,
    MemoryMaintenanceHook,
    SessionPersistenceHook,
    ToolResultEvictionHook,
    TraceHook,
    WorkspaceContextHook,
)
from harness.memory import MaintenanceConfig

PLACES = [
    (TraceHook, 0), (MemoryFlushHook, 5), (MemoryMaintenanceHook, 6), (CompactionHook, 10),
    (ToolResultEvictionHook, 50), (WorkspaceContextHook, 900), (SessionPersistenceHook, 900),
]  # fmt: skip
NAMES = [
    "trace", "memory_flush", "memory_maintenance", "compaction", "tool_result_eviction", "workspace_context",
    "session_persistence",
]  # fmt: skip


def builder(workspace: Path) -> Any:
    return HarnessAgent.builder().model("offline").workspace(workspace).memory_flush().compaction()


def kinds(agent: HarnessAgent) -> list[type]:
    return [type(hook) for hook in agent.config.hooks.hooks]


def test_all_of_them_stand_in_order(workspace: Path) -> None:
    hooks = builder(workspace).build().config.hooks.hooks
    assert [(type(hook), hook.priority) for hook in hooks] == PLACES


def test_a_plain_agent_has_those_that_cost_nothing(workspace: Path) -> None:
    agent = HarnessAgent.builder().model("offline").workspace(workspace).build()
    assert kinds(agent) == [TraceHook, ToolResultEvictionHook, WorkspaceContextHook, SessionPersistenceHook]


@pytest.mark.parametrize(("name", "kind"), [*zip(NAMES, [kind for kind, _ in PLACES], strict=True)])
def test_each_can_be_left_out_alone(workspace: Path, name: str, kind: type) -> None:
    agent = builder(workspace).without(name).build()
    assert kinds(agent) == [other for other, _ in PLACES if other is not kind]


@pytest.mark.parametrize(
    "kind", [TraceHook, MemoryFlushHook, MemoryMaintenanceHook, CompactionHook, ToolResultEvictionHook]
)
def test_one_s_own_takes_the_place_of_the_built_in_one(workspace: Path, kind: type) -> None:
    class Mine(kind):  # type: ignore[misc,valid-type]  # the class is the parameter
        pass

    found = kinds(builder(workspace).hook(Mine()).build())
    assert (found.count(Mine), kind in found, len(found)) == (1, False, len(PLACES))


def test_settings_reach_their_hook(workspace: Path) -> None:
    config, upkeep = CompactionConfig(trigger_messages=7, keep_messages=2), MaintenanceConfig(backups=3)
    hooks = builder(workspace).compaction(config).memory_maintenance(upkeep).build().config.hooks.hooks
    assert [hook.config for hook in hooks if isinstance(hook, CompactionHook | MemoryMaintenanceHook)] == [
        upkeep,
        config,
    ]


def test_a_part_that_is_none_is_named_with_those_there_are(workspace: Path) -> None:
    with pytest.raises(ConfigError, match=r"no built-in part 'shell'; there are: compaction, file_tools"):
        builder(workspace).without("shell")
