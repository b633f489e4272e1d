"""`harness sessions label|labels|rename`: names for lines, and for conversations."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.cli.about import about_sessions
from harness.cli.hints import where_turns_end
from harness.cli.options import Entry, SessionId
from harness.cli.output import one_line, say, say_json
from harness.cli.place import Place

__all__ = ["label", "labels", "rename"]

Name = Annotated[str, typer.Argument(metavar="NAME", help="What to call it.")]
Title = Annotated[str, typer.Argument(metavar="TITLE", help="What `list` shows for it.")]


@about_sessions
async def label(place: Place, session: SessionId, entry: Entry, name: Name) -> None:
    """Give a line a name.

    Example: harness sessions label monday 019caa11-0000-7000-8000-000000000003 introduced
    """
    async with place.sessions() as sessions:
        with where_turns_end(place, session):
            line = await sessions.label(session, entry, name)
    if place.as_json:
        say_json({"session": session, "target": entry, "name": name, "entry_id": line})
    else:
        say(f"{entry} is called {name}")


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
