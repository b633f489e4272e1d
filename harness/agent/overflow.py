"""A request was larger than its model takes: note what that tells, make the context smaller, and it can go again."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from harness.agent.choosing import around, compactor_for
from harness.agent.turnstate import TurnState
from harness.errors import ContextOverflow
from harness.hooks import Selector, SystemPart
from harness.models.base import Model, ToolSpec
from harness.sessions.view.metering import CAPACITY, Capacity, guessed, learned
from harness.text import error_text

__all__ = ["make_room", "refused_again"]

log = logging.getLogger("harness.agent")


async def make_room(
    state: TurnState, system: Sequence[SystemPart], tools: Sequence[ToolSpec], model: Model, error: ContextOverflow
) -> bool:
    """Compact, or choose less, because of an overflow; whether the request is smaller now. Needs no configuration.

    What was asked for stays as it is, and no answer of the refused request counts.
    """
    selector = state.scope.find(Selector)
    if selector is not None:
        return await selector.overflowed(model, around(system, tools), error)
    compactor = compactor_for(state, model, around(system, tools))
    size = compactor.size()
    await state.notice("overflow", {**_place(model), "tokens": size.tokens, "error": error_text(error)[:500]})
    found = learned(error.window, size.tokens / size.ratio, size.ratio)
    if found != Capacity():
        await state.notice(CAPACITY, {**_place(model), **found.to_dict()})
    size = compactor.size()
    target = size.tokens * 3 // 4
    limit = min(target, compactor.limit or target)
    done = await compactor.run("overflow", limit=limit, must=True)
    if not done:
        log.warning("session %r: nothing could be compacted after an overflow", state.scope.session_id)
    return done


async def refused_again(
    state: TurnState, system: Sequence[SystemPart], tools: Sequence[ToolSpec], model: Model, error: ContextOverflow
) -> None:
    """Note that the smaller request was refused too: later calls must begin with less."""
    selector = state.scope.find(Selector)
    if selector is not None:
        await selector.refused(model, around(system, tools), error)
        return
    size = compactor_for(state, model, around(system, tools)).size()
    found = learned(error.window, size.tokens / size.ratio, size.ratio)
    found = found if found != Capacity() else guessed(size.tokens // 2)
    await state.notice(CAPACITY, {**_place(model), **found.to_dict()})


def _place(model: Model) -> dict[str, str]:
    return {"provider": model.provider, "model": model.name}
