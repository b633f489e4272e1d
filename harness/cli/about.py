"""Commands about one user's sessions: the options that say whose they are stand here, once for all of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec

from harness.cli.guard import command, parameters_of, with_parameters
from harness.cli.hints import add_hints
from harness.cli.options import DEFAULT_AGENT, DEFAULT_WORKSPACE, Agent, AsJson, Namespace, User, Workspace
from harness.cli.place import Place, owner_named
from harness.errors import HarnessError

__all__ = ["about_sessions"]

P = ParamSpec("P")


def about_sessions(function: Callable[Concatenate[Place, P], Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Make a command of a coroutine function that takes a `Place` first; see `command`.

    The command has the function's other parameters, then the options of a place.
    """
    work: Callable[..., Coroutine[Any, Any, None]] = function

    @functools.wraps(function)
    async def run(
        *, workspace: Workspace, agent: Agent, user: User, namespace: Namespace, as_json: AsJson, **given: Any
    ) -> None:
        user, parts = owner_named(user, namespace)
        place = Place(workspace, agent, user, as_json, parts)
        try:
            await work(place, **given)
        except HarnessError as error:
            await add_hints(error, place, given.get("session"))
            raise

    return command(with_parameters(run, [*parameters_of(function)[1:], *parameters_of(_place)]))


def _place(
    workspace: Workspace = DEFAULT_WORKSPACE,
    agent: Agent = DEFAULT_AGENT,
    user: User = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> None:
    """What every such command takes; only its signature is of use."""
