"""Commands about one user's sessions: the options that say whose they are stand here, once for all of them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

from harness.agent import TenantSessions
from harness.cli.guard import command
from harness.cli.opening import DEFAULT_AGENT, DEFAULT_WORKSPACE, opened
from harness.cli.options import Agent, AsJson, Debug, User, Workspace
from harness.errors import FileMissing
from harness.filesystem import disk, pool

__all__ = ["Place", "about_sessions"]

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Place:
    """What the options say: whose sessions a command is about, and whether it answers with JSON."""

    workspace: Path
    agent: str
    user: str | None
    as_json: bool

    @asynccontextmanager
    async def sessions(self) -> AsyncIterator[TenantSessions]:
        """The sessions, for the block."""
        async with opened(self.workspace, self.agent) as made:
            yield made.sessions(self.user)

    async def check_there(self) -> None:
        """Raise `FileMissing` for a workspace that was named and is not there; the usual one need not be there yet."""
        if self.workspace != DEFAULT_WORKSPACE and await pool.run(disk.mark, self.workspace) is None:
            raise FileMissing(f"there is no workspace {self.workspace}; name one that is there with --workspace")


def about_sessions(function: Callable[Concatenate[Place, P], Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Make a command of a coroutine function that takes a `Place` first; see `command`.

    The command has the function's other parameters, then the options of a place.
    """
    own = [*inspect.signature(function, eval_str=True).parameters.values()][1:]
    parameters = [*own, *inspect.signature(_options, eval_str=True).parameters.values()]
    work: Callable[..., Coroutine[Any, Any, None]] = function

    @functools.wraps(function)
    async def run(*, debug: bool, **given: Any) -> None:
        del debug  # the guard has seen it
        place = Place(*(given.pop(name) for name in ("workspace", "agent", "user", "as_json")))
        await work(place, **given)

    made = command(run)
    made.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it from there
    made.__annotations__ = {each.name: each.annotation for each in parameters}
    return made


def _options(
    workspace: Workspace = DEFAULT_WORKSPACE,
    agent: Agent = DEFAULT_AGENT,
    user: User = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """What every such command takes; only its signature is of use."""
