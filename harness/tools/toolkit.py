"""The tools of an agent, by name, in groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from harness.context import CallScope
from harness.errors import ConfigError
from harness.messages import ToolResult
from harness.models.base import ToolSpec
from harness.tools.base import Emit, Function, Tool, ToolCall
from harness.tools.function import as_tool, is_tool_function
from harness.tools.groups import ActiveToolGroups, ToolGroup, group_switch
from harness.tools.render import error_result

__all__ = ["ToolSource", "Toolkit"]

ToolSource: TypeAlias = "Tool | Function | Toolkit | Iterable[object] | object"
"""A tool, a function, another toolkit, a list of those, or an object whose methods carry `@tool`."""


class Toolkit:
    """Tools in the order they were added, which is the order the model sees.

    Filled while an agent is built and only read afterwards: calls never change it. An agent takes a
    `copy`, so that a toolkit can go on to be used for another one. What a conversation switches lives
    in its own `ActiveToolGroups`.
    """

    def __init__(self, *tools: ToolSource) -> None:
        self._tools: dict[str, Tool] = {}
        self._groups: dict[str, ToolGroup] = {}
        self.add(*tools)

    def add(self, *tools: ToolSource) -> Toolkit:
        """Add tools. Raises `ConfigError` naming both where two have one name, and for what is no tool."""
        for source in tools:
            if isinstance(source, Toolkit):
                self._groups.update(source._groups)
            for tool in _tools_of(source):
                self._add(tool)
        return self

    def group(self, name: str, active: bool = True, description: str = "") -> Toolkit:
        """Declare a tool group: whether conversations start with it, and what the model may want it for.

        A group that tools name and nobody declares starts switched on.
        """
        if not name:
            raise ConfigError("a tool group needs a name")
        self._groups[name] = ToolGroup(name, active, description)
        return self

    def copy(self) -> Toolkit:
        """One with the same tools and groups; changes of either do not meet."""
        return Toolkit(self)

    def active_groups(self) -> ActiveToolGroups:
        """A state module for one call, with every group as it starts."""
        return ActiveToolGroups(self._groups.values())

    def tools(self, active_groups: Iterable[str] | None = None) -> tuple[Tool, ...]:
        """The tools of these groups and those of none; None stands for the groups that start switched on."""
        active = self.active_groups().active if active_groups is None else frozenset(active_groups)
        switch = group_switch(self._groups.values())
        chosen = [tool for tool in self._tools.values() if not tool.group or tool.group in active]
        return (*chosen, switch) if switch is not None and switch.name not in self._tools else tuple(chosen)

    def specs(self, active_groups: Iterable[str] | None = None) -> tuple[ToolSpec, ...]:
        """The same tools as the model is shown them."""
        return tuple(tool.spec for tool in self.tools(active_groups))

    def get(self, name: str) -> Tool | None:
        """The tool of that name, whether or not its group is on."""
        if name in self._tools:
            return self._tools[name]
        switch = group_switch(self._groups.values())
        return switch if switch is not None and switch.name == name else None

    async def run(
        self, call: ToolCall, scope: CallScope, emit: Emit | None = None, timeout: float | None = None
    ) -> ToolResult:
        """Run a call. A tool that is not there, or switched off in this call, gives an error result that says so.

        `timeout` is the limit in seconds for tools that name none themselves.
        """
        groups = scope.find(ActiveToolGroups)
        available = {tool.name: tool for tool in self.tools(None if groups is None else groups.active)}
        if call.name in available:
            return await available[call.name].run(call, scope, emit, timeout)
        tool = self.get(call.name)
        reason = f"its group {tool.group} is switched off" if tool is not None else "there is no tool of that name"
        names = ", ".join(available) or "none"
        return error_result(call.id, call.name, f"Error: {call.name} is not available: {reason}; available: {names}")

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def _add(self, tool: Tool) -> None:
        other = self._tools.get(tool.name)
        if other is not None and other is not tool:
            raise ConfigError(
                f"two tools are called {tool.name!r}: {other.origin or 'one'} and {tool.origin or 'another'}; "
                "give one of them another name, as in @tool(name=…)"
            )
        self._tools[tool.name] = tool
        if tool.group and tool.group not in self._groups:
            self._groups[tool.group] = ToolGroup(tool.group)


def _tools_of(source: object) -> Iterator[Tool]:
    if isinstance(source, Tool):
        yield source
    elif isinstance(source, Toolkit | list | tuple):
        for member in source:
            yield from _tools_of(member)
    elif callable(source) and not isinstance(source, type) and not _methods_of(source):
        yield as_tool(source)
    else:
        yield from _marked(source)


def _marked(owner: object) -> Iterator[Tool]:
    methods = _methods_of(owner)
    if isinstance(owner, type) or not methods:
        raise ConfigError(
            f"{owner!r} has no tools: give a function, a Tool, or an object (not its class) with @tool methods"
        )
    for name in methods:
        yield as_tool(getattr(owner, name))


def _methods_of(owner: object) -> list[str]:
    """Names of the methods with `@tool`, those of base classes first, in the order of their definition."""
    names: dict[str, None] = {}
    for kind in reversed(type(owner).__mro__):
        names.update(dict.fromkeys(vars(kind)))
    return [name for name in names if is_tool_function(getattr(type(owner), name, None))]
