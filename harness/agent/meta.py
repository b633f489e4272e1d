"""Which agent a session belongs to and what it worked with last, for people and for the next call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from harness.agent.config import AgentConfig
from harness.ids import timestamp
from harness.models.base import Model
from harness.state import State

__all__ = ["AgentMeta", "Change", "made_by"]

Change: TypeAlias = tuple[str, dict[str, Any]]
"""The kind of an event, and its data."""


class AgentMeta:
    """The state module `agent_meta`. What comes back from the store is compared, never used: the builder decides."""

    name = "agent_meta"

    def __init__(self, config: AgentConfig, model: Model) -> None:
        self._before: State = {}
        self._value: State = {"agentId": config.agent_id, "name": config.name}
        if config.description:
            self._value["description"] = config.description
        self._model: State = {**made_by(model), "since": timestamp()}
        self._tools = dict(config.tool_digests)

    def save(self) -> State:
        """The agent as the builder has it, the model with the time since which it is this one, and the tools."""
        return {**self._value, "model": self._model, "tools": self._tools}

    def load(self, value: State) -> None:
        """Note what was there before, to compare."""
        self._before = value
        before = value.get("model")
        if isinstance(before, dict) and _same_model(before, self._model) and "since" in before:
            self._model = before

    def changes(self) -> Iterator[Change]:
        """What is not as it was when the session was worked on last."""
        before = self._before.get("model")
        if isinstance(before, dict) and not _same_model(before, self._model):
            yield "model_switch", {"from": _pair(before), "to": _pair(self._model)}
        tools = self._before.get("tools")
        if isinstance(tools, dict) and tools != self._tools:
            yield "tools_changed", _difference(tools, self._tools)


def made_by(model: Model) -> State:
    """Provider and name of a model: always a pair, as only together they name one."""
    return {"provider": model.provider, "model": model.name}


def _pair(model: Mapping[str, Any]) -> dict[str, Any]:
    return {"provider": model.get("provider"), "model": model.get("model")}


def _same_model(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return _pair(one) == _pair(other)


def _difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "added": sorted(after.keys() - before.keys()),
        "removed": sorted(before.keys() - after.keys()),
        "changed": sorted(name for name in after.keys() & before.keys() if after[name] != before[name]),
    }
