"""The viewer inside a service, over an agent's sessions: each user sees their own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

from starlette.applications import Starlette
from starlette.requests import Request

from harness.agent import HarnessAgent
from harness.agent.binding import bind
from harness.agent.checks import callable_with
from harness.context import RuntimeContext
from harness.viewer.app import viewer_app
from harness.viewer.asking import Asked
from harness.viewer.desk import Access
from harness.viewer.shelf import Looked, Shelf, listed_in

__all__ = ["Authorise", "agent_viewer"]

Authorise: TypeAlias = Callable[[Request], Awaitable[RuntimeContext | None] | RuntimeContext | None]
"""Who asks: the context of that user, or None for who may see nothing. One that is not async is asked in a thread."""

_MOST_SHELVES = 1_000


def agent_viewer(
    agent: HarnessAgent, authorise: Authorise, *, hosts: frozenset[str] | None = None, zone: str = "UTC"
) -> Starlette:
    """Over the sessions of an agent, to mount in a service: each user sees their own and nobody else's.

    `authorise` is asked at every request; whose sessions are shown follows from the context it gives,
    by the same rules as for a call. The service checks host names, unless `hosts` are given. Raises
    `ConfigError` for what cannot be asked.
    """
    asked = callable_with("agent_viewer: authorise", authorise, 1, "a function from a request to a context")
    return viewer_app(_tenants(agent, Asked("agent_viewer: authorise", asked, RuntimeContext)), hosts=hosts, zone=zone)


def _tenants(agent: HarnessAgent, authorise: Asked[RuntimeContext]) -> Access:
    shelves: dict[Path, Shelf] = {}

    async def own(request: Request) -> Shelf | None:
        ctx = await authorise(request)
        if ctx is None:
            return None
        binding = bind(agent.config, ctx.with_changes(session_id="any", session_key=None))
        folder = binding.sessions_folder
        if folder not in shelves and len(shelves) >= _MOST_SHELVES:
            shelves.pop(next(iter(shelves)))
        # A listing is only a copy of what the folder holds; the folder decides whose it is.
        return shelves.setdefault(folder, Shelf(partial(_listed_for, folder, "/".join(binding.namespace))))

    return own


def _listed_for(folder: Path, tenant: str) -> Looked:
    """What the folder of a tenant holds, without ledgers that say they are another's: somebody copied them there."""
    found = listed_in((folder,))
    return found._replace(sessions=[each for each in found.sessions if each.tenant in ("", tenant)])
