"""A request was larger than its model takes: note what that tells, make the context smaller, and it can go again."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from harness.agent.turnstate import TurnState
from harness.errors import ContextOverflow
from harness.hooks import Compactor, Notices, SideModel, SystemPart
from harness.models.base import Model, ModelRequest, ToolSpec
from harness.models.tokens import estimate_request
from harness.sessions.metering import CAPACITY, Capacity, ContextSize, bounded_ratio

__all__ = ["make_room"]

log = logging.getLogger("harness.agent")


async def make_room(
    state: TurnState, system: Sequence[SystemPart], tools: Sequence[ToolSpec], model: Model, error: ContextOverflow
) -> bool:
    """Compact because of an overflow; whether the request is smaller now. Needs no configuration.

    What was asked for stays as it is, and no answer of the refused request counts.
    """
    compactor = Compactor(
        tree=state.journal.tree,
        side=state.scope.get(SideModel),  # type: ignore[type-abstract]  # looked up by its protocol
        notices=state.scope.get(Notices),  # type: ignore[type-abstract]  # the same
        config=state.config.compaction,
        target=model,
        around=estimate_request(ModelRequest((), "\n\n".join(part.text for part in system), tuple(tools))),
    )
    size = compactor.size()
    await state.notice("overflow", {**_place(model), "tokens": size.tokens, "error": str(error)[:500]})
    learned = _learned(error, size)
    if learned != Capacity():
        await state.notice(CAPACITY, {**_place(model), **learned.to_dict()})
    size = compactor.size()
    target = size.tokens * 3 // 4
    limit = min(target, compactor.limit or target)
    done = await compactor.run("overflow", limit=limit, must=True)
    if not done:
        log.warning("session %r: nothing could be compacted after an overflow", state.scope.session_id)
    return done


def _learned(error: ContextOverflow, size: ContextSize) -> Capacity:
    """The window that the error names; and where the request was estimated to fit in it, that estimates are too low."""
    if error.window is None:
        return Capacity()
    estimated = size.tokens / size.ratio
    needed = bounded_ratio(error.window / max(estimated, 1))
    return Capacity(error.window, needed if needed > size.ratio else None)


def _place(model: Model) -> dict[str, str]:
    return {"provider": model.provider, "model": model.name}
