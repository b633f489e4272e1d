"""Changing the model of a session on purpose: what was said is summed up by the model that said it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from harness.agent.config import AgentConfig
from harness.agent.journal import Journal
from harness.agent.meta import AgentMeta, made_by
from harness.errors import ConfigError, PersistenceError
from harness.ids import timestamp
from harness.models.base import Model
from harness.sessions.tree.session_tree import SessionTree

__all__ = ["switch_model"]


async def switch_model(
    config: AgentConfig, journal: Journal, new: Model, compact: Callable[[Model], Awaitable[bool]] | None
) -> bool:
    """Note that a session, which is held, goes on with another model; whether it was compacted before.

    The next call that uses the new model has nothing to note. Raises what `compact` raises; then nothing is noted.
    """
    tree = journal.tree
    meta = tree.states().get(AgentMeta.name) or {}
    before = meta.get("model") or {}
    compacted = await compact(_old_model(config, before)) if compact else False
    if (before.get("provider"), before.get("model")) != (new.provider, new.name):
        old = {"provider": before["provider"], "model": before["model"]} if before else None
        journal.event("model_switch", {**({"from": old} if old else {}), "to": made_by(new), "compacted": compacted})
        value = {**meta, "model": {**made_by(new), "since": timestamp()}}
        tree.add("state", {"module": AgentMeta.name, "value": value})
        await _commit(tree, compacted=compacted)
    return compacted


async def _commit(tree: SessionTree, *, compacted: bool) -> None:
    try:
        await tree.commit(sync=True)
    except PersistenceError as error:
        if compacted:
            error.args = (f"{error}; the older turns are summed up already, the switch is not noted: do it again",)
        raise


def _old_model(config: AgentConfig, before: dict[str, str]) -> Model:
    """The model that was used last, where the agent has it or can make it by its name; else the agent's own."""
    pair = (before.get("provider"), before.get("model"))
    for model in (config.model, *config.fallback_models):
        if (model.provider, model.name) == pair:
            return model
    try:
        return config.models.resolve(":".join(part for part in pair if part))
    except ConfigError:
        return config.model
