"""`harness sessions compact|switch-model|handoff`: make room in a conversation, or go on with another model."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.cli.about import about_sessions
from harness.cli.hints import saying
from harness.cli.options import Model, NewId, SessionId
from harness.cli.output import say, say_json
from harness.cli.place import Place
from harness.errors import SessionExists

__all__ = ["compact", "handoff", "switch_model"]

NewModel = Annotated[str, typer.Argument(metavar="MODEL", help='"provider:name", or "offline".')]
Instructions = Annotated[str, typer.Option("--instructions", help="What the summary must keep, or may leave out.")]
SumUp = Annotated[
    bool, typer.Option("--compact/--no-compact", help="Let the old model sum up first what only it can read.")
]

_NOTHING = "nothing was summed up: no turn is old enough"


@about_sessions
async def compact(place: Place, session: SessionId, model: Model = "offline", instructions: Instructions = "") -> None:
    """Sum up the older turns now, by this model, so that the next request is shorter. The ledger keeps all of it.

    Example: harness sessions compact monday --model openai:gpt-5-mini
    """
    async with place.sessions(model) as sessions:
        done = await sessions.compact(session, instructions)
    if place.as_json:
        say_json({"session": session, "compacted": done})
    else:
        say(f"the older turns of {session} are summed up" if done else _NOTHING)


@about_sessions
async def switch_model(place: Place, session: SessionId, model: NewModel, sum_up: SumUp = True) -> None:
    """Note that a conversation goes on with another model, which its next calls name.

    Example: harness sessions switch-model monday openai:gpt-5-mini
    """
    async with place.sessions(model) as sessions:
        done = await sessions.switch_model(session, model, compact=sum_up)
    if place.as_json:
        say_json({"session": session, "model": model, "compacted": done})
    else:
        asked = f"; {_NOTHING}" if sum_up else ""
        say(f"{session} goes on with {model}{'; its older turns are summed up' if done else asked}")


@about_sessions
async def handoff(place: Place, session: SessionId, to: NewId = None, model: Model = "offline") -> None:
    """Begin a new conversation that knows where to read this one, which stays as it is; prints its id.

    Example: harness sessions handoff monday --to tuesday
    """
    async with place.sessions(model) as sessions:
        with saying("another id: --to SESSION", SessionExists):
            made = await sessions.handoff(session, to)
    if place.as_json:
        say_json({"session": session, "session_id": made})
    else:
        say(made)
