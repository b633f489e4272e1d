"""Choosing what a request shows, where the agent's policy is to choose; otherwise it shows the whole view."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from harness.agent.turnstate import TurnState
from harness.errors import ModelError
from harness.hooks import Compactor, Notices, Selector, SideModel, SystemPart
from harness.models.base import Model, ModelRequest, ToolSpec
from harness.models.tokens import estimate_request
from harness.text import error_text

__all__ = ["around", "choose", "compactor_for"]

log = logging.getLogger("harness.agent")


async def choose(state: TurnState, model: Model, system: Sequence[SystemPart], tools: Sequence[ToolSpec]) -> int | None:
    """Choose for a request to this model; the estimated tokens of all it shows, or None where nothing is chosen.

    Where the policy is compaction, a fallback model that takes less than the first one is compacted for.
    """
    selector = state.scope.find(Selector)
    beside = around(system, tools)
    if selector is None:
        if model is not state.models[0] and state.config.policy == "compaction":
            await _compact_for(state, model, beside)
        return None
    await selector.prepare(model, beside)
    return beside + selector.tokens


def around(system: Sequence[SystemPart], tools: Sequence[ToolSpec]) -> int:
    """The estimated tokens of what stands around the messages of a request."""
    return estimate_request(ModelRequest((), "\n\n".join(part.text for part in system if part.text), tuple(tools)))


def compactor_for(state: TurnState, model: Model, beside: int) -> Compactor:
    """What compacts the session for a request to this model; `beside` is the estimate of system text and tools."""
    return Compactor(
        tree=state.journal.tree,
        side=state.scope.get(SideModel),  # type: ignore[type-abstract]  # looked up by its protocol
        notices=state.scope.get(Notices),  # type: ignore[type-abstract]  # the same
        config=state.config.compaction,
        target=model,
        around=beside,
    )


async def _compact_for(state: TurnState, model: Model, beside: int) -> None:
    try:
        await compactor_for(state, model, beside).run_if_due(state.turn_id, within_turn=True)
    except ModelError as error:
        log.warning("session %r was not compacted, it goes on whole: %s", state.scope.session_id, error_text(error))
