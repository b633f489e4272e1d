"""A compaction that somebody asked for, outside a call."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from harness.agent.config import AgentConfig
from harness.agent.journal import Journal
from harness.agent.side import LoggedSideModel
from harness.hooks import CompactionConfig, Compactor
from harness.models.base import Model, ModelRequest
from harness.models.tokens import estimate_request
from harness.sessions.lines.built import BuiltMessages
from harness.sessions.tree.session_tree import SessionTree

__all__ = ["sum_up"]

log = logging.getLogger("harness.agent")


async def sum_up(
    config: AgentConfig, tree: SessionTree, compaction: CompactionConfig, model: Model | None = None
) -> bool:
    """Summarise the older turns of a session whose lock is held, and say whether any could go.

    `model` does it, instead of the agent's own and those that stand in for it. Raises `ModelError` when none could.
    """
    journal = Journal(tree, config.policy, BuiltMessages())
    notices = _LogOnly(journal)
    models = (model,) if model else (config.model, *config.fallback_models)
    side = LoggedSideModel(config, journal, models, notices)
    around = estimate_request(ModelRequest((), config.system_prompt, config.toolkit.specs()))
    compactor = Compactor(tree=tree, side=side, notices=notices, config=compaction, target=models[0], around=around)
    return await compactor.run("manual")


class _LogOnly:
    """Notices of work that no call follows: they go into the ledger, and warnings to the log."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def notice(self, kind: str, details: Mapping[str, Any]) -> None:
        self._journal.event(kind, details)

    def warn(self, text: str) -> None:
        log.warning("%s", text)
