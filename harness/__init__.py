"""A hook-based harness for multi-tenant chat services on LLM agents.

One import for everyday use: `from harness import HarnessAgent, RuntimeContext`. Names are loaded when
they are first used, so that `import harness` costs next to nothing. Nothing inside imports from here.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.agent import Call, HarnessAgent, StreamEvent
    from harness.context import CallScope, RuntimeContext, current_scope
    from harness.hooks import CompactionConfig, ToolResultEvictionConfig, TruncateArgsConfig, WorkingSet
    from harness.memory import MaintenanceConfig
    from harness.messages import Media, MediaBlock, Msg, TextBlock, ThinkingBlock, ToolResult, ToolUse, Usage
    from harness.tools import Toolkit, tool

__all__ = [
    "Call",
    "CallScope",
    "CompactionConfig",
    "HarnessAgent",
    "MaintenanceConfig",
    "Media",
    "MediaBlock",
    "Msg",
    "RuntimeContext",
    "StreamEvent",
    "TextBlock",
    "ThinkingBlock",
    "ToolResult",
    "ToolResultEvictionConfig",
    "ToolUse",
    "Toolkit",
    "TruncateArgsConfig",
    "Usage",
    "WorkingSet",
    "__version__",
    "current_scope",
    "tool",
]

_HOMES = {
    "harness.agent": ("Call", "HarnessAgent", "StreamEvent"),
    "harness.context": ("CallScope", "RuntimeContext", "current_scope"),
    "harness.hooks": ("CompactionConfig", "ToolResultEvictionConfig", "TruncateArgsConfig", "WorkingSet"),
    "harness.memory": ("MaintenanceConfig",),
    "harness.messages": (
        "Media", "MediaBlock", "Msg", "TextBlock", "ThinkingBlock", "ToolResult", "ToolUse", "Usage",
    ),
    "harness.tools": ("Toolkit", "tool"),
}  # fmt: skip
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'harness' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
