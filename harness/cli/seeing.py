"""`harness sessions seen`: what a model saw at a request."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from harness.agent import TenantSessions
from harness.cli.about import about_sessions
from harness.cli.hints import where_turns_end
from harness.cli.options import SessionId
from harness.cli.output import say, say_json
from harness.cli.place import Place
from harness.cli.rendering import message_lines
from harness.errors import ConfigError
from harness.sessions.selection.context_at import ContextAt

__all__ = ["seen"]

Line = Annotated[
    str | None,
    typer.Argument(metavar="[ENTRY]", help="A line of the request, such as its answer; without it, the newest one."),
]


@about_sessions
async def seen(place: Place, session: SessionId, entry: Line = None) -> None:
    """What the model saw at a request. Exit code 1 where the ledger cannot tell it byte for byte.

    Example: harness sessions seen monday
    """
    async with place.sessions() as sessions:
        with where_turns_end(place, session):
            tree = await sessions.tree(session)
            found = await tree.context_at(entry or await _newest(sessions, session))
    if place.as_json:
        say_json(asdict(found))
    else:
        _say_context(found)
    raise typer.Exit(0 if found.exact else 1)


async def _newest(sessions: TenantSessions, session: str) -> str:
    rows = (await sessions.usage(session)).rows
    if not rows:
        raise ConfigError(f"session {session!r} has no model request yet; there is nothing that a model saw")
    return rows[-1].request


def _say_context(found: ContextAt) -> None:
    for piece in found.system:
        say(f"system ({piece.get('name')}): {piece.get('text', 'lost')}")
    for tool in found.tools:
        say(f"tool: {tool.get('name')}")
    for message in found.messages:
        for line in message_lines(message):
            say(line)
    exact = "exactly this was sent" if found.exact else "NOT exactly what was sent: a part of it is lost or was changed"
    say(f"{found.purpose} by {found.provider}:{found.model}, request {found.request}: {exact}")
