"""Tools: what a model may do, from typed functions to results that can be stored."""

from __future__ import annotations

from harness.tools.base import Emit, Function, Handler, Tool, ToolCall
from harness.tools.files import FILE_TOOLS
from harness.tools.function import as_tool, tool
from harness.tools.groups import ActiveToolGroups, ToolGroup
from harness.tools.injection import Inject
from harness.tools.memory import MEMORY_TOOLS
from harness.tools.render import NO_OUTPUT, error_result, render_result
from harness.tools.sessions import SESSION_TOOLS
from harness.tools.toolkit import Toolkit, ToolSource

__all__ = [
    "FILE_TOOLS",
    "MEMORY_TOOLS",
    "NO_OUTPUT",
    "SESSION_TOOLS",
    "ActiveToolGroups",
    "Emit",
    "Function",
    "Handler",
    "Inject",
    "Tool",
    "ToolCall",
    "ToolGroup",
    "ToolSource",
    "Toolkit",
    "as_tool",
    "error_result",
    "render_result",
    "tool",
]
