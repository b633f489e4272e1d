"""Tool groups: sets of tools that a conversation can switch on and off.

Which groups are on is state of one conversation. It lives in an `ActiveToolGroups` per call, is saved
with the session, and is never a field of the toolkit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from harness.errors import ToolError
from harness.state import State
from harness.tools.base import Tool
from harness.tools.function import as_tool, tool

__all__ = ["ActiveToolGroups", "ToolGroup", "group_switch", "set_tool_groups"]


@dataclass(frozen=True, slots=True)
class ToolGroup:
    """A declared group. `active` is how conversations start; the model reads `description` to choose."""

    name: str
    active: bool = True
    description: str = ""


class ActiveToolGroups:
    """The state module of one call: which of the declared groups are on.

    Stored are only the differences from how groups start, so that a group that is added later, or
    starts otherwise in a later version, does so in old sessions too.
    """

    def __init__(self, groups: Iterable[ToolGroup] = ()) -> None:
        self.name = "active_tool_groups"
        self._starts = {group.name: group.active for group in groups}
        self._changes: dict[str, bool] = {}
        self._touched = False

    @property
    def active(self) -> frozenset[str]:
        """The groups that are on."""
        return frozenset(name for name, on in {**self._starts, **self._known_changes()}.items() if on)

    @property
    def known(self) -> tuple[str, ...]:
        """The declared groups, in the order of their declaration."""
        return tuple(self._starts)

    def set(self, names: Iterable[str], active: bool) -> None:
        """Switch groups on or off. Raises `ToolError` naming those that do not exist."""
        wanted = list(names)
        unknown = sorted(set(wanted) - self._starts.keys())
        if unknown:
            raise ToolError(f"Error: no tool group {', '.join(unknown)}; there are: {', '.join(self.known) or 'none'}")
        self._changes.update(dict.fromkeys(wanted, active))
        self._touched = True

    def save(self) -> State | None:
        """The differences, or None where nothing was ever switched."""
        if not self._touched:
            return None
        return {"on": self._names(True), "off": self._names(False)}

    def load(self, value: State) -> None:
        """Take over saved differences; a group that is gone is kept for the day it comes back."""
        saved = [(name, on) for key, on in (("on", True), ("off", False)) for name in _texts(value.get(key))]
        self._changes = dict(saved)
        self._touched = True

    def _known_changes(self) -> Mapping[str, bool]:
        return {name: on for name, on in self._changes.items() if name in self._starts}

    def _names(self, on: bool) -> list[str]:
        return sorted(name for name, value in self._changes.items() if value is on and self._starts.get(name) is not on)


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


@tool
def set_tool_groups(groups: ActiveToolGroups, activate: tuple[str, ...] = (), deactivate: tuple[str, ...] = ()) -> str:
    """Switch groups of tools on or off for this conversation.

    Args:
        activate: names of groups to switch on
        deactivate: names of groups to switch off
    """
    groups.set(activate, True)
    groups.set(deactivate, False)
    return f"Active tool groups: {', '.join(sorted(groups.active)) or 'none'}"


_SWITCH = as_tool(set_tool_groups)


def group_switch(groups: Iterable[ToolGroup]) -> Tool | None:
    """The tool with which the model switches groups; None where no group starts switched off."""
    declared = list(groups)
    if all(group.active for group in declared):
        return None
    lines = [f"- {group.name}{': ' if group.description else ''}{group.description}" for group in declared]
    description = "\n".join([_SWITCH.spec.description, "Groups:", *lines])
    return replace(_SWITCH, spec=replace(_SWITCH.spec, description=description))
