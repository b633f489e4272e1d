"""`harness sessions label|labels|rename`: names for lines, and for conversations."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.cli.about import about_sessions
from harness.cli.hints import where_turns_end
from harness.cli.options import SessionId, is_id
from harness.cli.output import one_line, say, say_json
from harness.cli.place import Place
from harness.cli.turning import TurnNumber, named_end
from harness.errors import ConfigError

__all__ = ["label", "labels", "rename"]

Line = Annotated[
    str, typer.Argument(metavar="[ENTRY]", help="The id of a line; `turns` shows those at which turns end.")
]
Name = Annotated[str | None, typer.Argument(metavar="NAME", help="What to call it.")]
Title = Annotated[str, typer.Argument(metavar="TITLE", help="What `list` shows for it.")]


@about_sessions
async def label(place: Place, session: SessionId, entry: Line, name: Name = None, turn: TurnNumber = None) -> None:
    """Give a line, or the end of a turn, a name; `branch` and `fork` take it for the line.

    Example: harness sessions label monday --turn 1 introduced
    """
    # Of two words in a row it is the first that may be left out.
    named, called = (None, entry) if turn is not None and name is None else (is_id(entry), name)
    if called is None:
        raise ConfigError("label needs a line and a name for it; give ENTRY NAME, or --turn N NAME")
    async with place.sessions() as sessions:
        with where_turns_end(place, session):
            target = str(await named_end(sessions, session, named, turn))
            line = await sessions.label(session, target, called)
    if place.as_json:
        say_json({"session": session, "target": target, "name": called, "entry_id": line})
    else:
        say(f"{target if turn is None else f'turn {turn}'} is called {called}")


@about_sessions
async def labels(place: Place, session: SessionId) -> None:
    """The lines that have a name.

    Example: harness sessions labels monday
    """
    async with place.sessions() as sessions:
        found = await sessions.labels(session)
    if place.as_json:
        say_json({"session": session, "labels": [{"name": name, "target": entry} for name, entry in found.items()]})
        return
    for name, entry in found.items():
        say(f"{entry}  {one_line(name)}")
    if not found:
        say(f"no line of {session} has a name")


@about_sessions
async def rename(place: Place, session: SessionId, title: Title) -> None:
    """Give a conversation a title; its id stays.

    Example: harness sessions rename monday "Alice introduces herself"
    """
    async with place.sessions() as sessions:
        await sessions.rename(session, title)
    if place.as_json:
        say_json({"session": session, "title": title})
    else:
        say(f"{session} has the title {title}")
