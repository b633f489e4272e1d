"""`harness sessions turns|branch|fork|label`: go back to a point of a conversation, copy it from there, name it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from harness.cli.clock import told
from harness.cli.options import SessionId
from harness.cli.output import one_line, present, say, say_json
from harness.cli.place import Place, about_sessions
from harness.filesystem import pool
from harness.messages import Msg
from harness.sessions.layout import SessionFiles
from harness.sessions.outline import Outline
from harness.sessions.projection import Turn

__all__ = ["branch", "branches", "fork", "label", "turns"]

Entry = Annotated[str, typer.Argument(metavar="ENTRY", help="The id of a line; `turns` shows those to use.")]
At = Annotated[str | None, typer.Option("--at", metavar="ENTRY", help="A turn's end; without it, the newest.")]
To = Annotated[str | None, typer.Option("--to", metavar="SESSION", help="The id of the copy; without it, a new one.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="What to call it.")]


@about_sessions
async def turns(
    place: Place,
    session: SessionId,
) -> None:
    """All turns, summed up or not, each with its number and the line at its end, to branch or fork at."""
    async with place.sessions() as sessions:
        names = {entry: name for name, entry in (await sessions.labels(session)).items()}
        rows = await pool.run(_rows, (await sessions.tree(session)).files, names)
    if place.as_json:
        say_json({"session": session, "turns": rows})
        return
    for row in rows:
        label = f"  ({one_line(str(row['label']), 40)})" if "label" in row else ""
        state = "" if row["closed"] else "  [open]"
        say(f"#{row['number']:<4} {row['end']}  {one_line(str(row['asked']), 60)}{state}{label}")


@about_sessions
async def branch(
    place: Place,
    session: SessionId,
    entry: Entry,
) -> None:
    """Go back: the conversation goes on behind this turn's end. What came after stays in the ledger."""
    async with place.sessions() as sessions:
        line = await sessions.branch(session, entry)
    if place.as_json:
        say_json({"session": session, "at": entry, "entry_id": line})
    else:
        say(f"{session} goes on behind {entry}")


@about_sessions
async def branches(
    place: Place,
    session: SessionId,
) -> None:
    """The ways that a conversation went, oldest first; the one on which it goes on is marked."""
    async with place.sessions() as sessions:
        found = await sessions.branches(session)
    if place.as_json:
        say_json({"session": session, "branches": [present(asdict(info)) for info in found]})
        return
    for info in found:
        mark = "*" if info.active else " "
        say(f"{mark} {info.leaf}  {told(info.updated_at)}  {info.turns:>4} turns  {one_line(info.title, 60)}")


@about_sessions
async def fork(
    place: Place,
    session: SessionId,
    at: At = None,
    to: To = None,
) -> None:
    """Copy a conversation, up to a turn's end, into a new session."""
    async with place.sessions() as sessions:
        copy = await sessions.fork(session, at, to=to)
    if place.as_json:
        say_json({"session": session, "session_id": copy})
    else:
        say(copy)


@about_sessions
async def label(
    place: Place,
    session: SessionId,
    entry: Entry,
    name: Name,
) -> None:
    """Give a line a name."""
    async with place.sessions() as sessions:
        line = await sessions.label(session, entry, name)
    if place.as_json:
        say_json({"session": session, "target": entry, "name": name, "entry_id": line})
    else:
        say(f"{entry} is called {name}")


def _rows(files: SessionFiles, names: dict[str, str]) -> list[dict[str, object]]:
    """The turns of the active path; no more than one of them is held at a time."""
    outline = Outline(files)
    return [_row(number, outline.turn(number), number == len(outline), names) for number in range(1, len(outline) + 1)]


def _row(number: int, turn: Turn, newest: bool, names: dict[str, str]) -> dict[str, object]:
    label = next((names[entry] for entry in turn.entry_ids if entry in names), None)
    asked = Msg.from_dict(turn.messages[0]).text if turn.messages else ""
    end = turn.entry_ids[-1] if turn.entry_ids else turn.id
    row: dict[str, object] = {"number": number, "id": turn.id, "end": end, "closed": turn.closed or not newest}
    return {**row, "asked": asked, **({} if label is None else {"label": label})}
