"""`harness sessions turns|branch|fork|label`: go back to a point of a conversation, copy it from there, name it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from harness.cli.guard import command
from harness.cli.opening import DEFAULT_AGENT, DEFAULT_WORKSPACE, opened
from harness.cli.options import Agent, AsJson, Debug, SessionId, User, Workspace
from harness.cli.output import one_line, present, say, say_json
from harness.messages import Msg
from harness.sessions.projection import Turn

__all__ = ["branch", "branches", "fork", "label", "turns"]

Entry = Annotated[str, typer.Argument(metavar="ENTRY", help="The id of a line; `turns` shows those to use.")]
At = Annotated[str | None, typer.Option("--at", metavar="ENTRY", help="A turn's end; without it, the newest.")]
To = Annotated[str | None, typer.Option("--to", metavar="SESSION", help="The id of the copy; without it, a new one.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="What to call it.")]


@command
async def turns(
    session: SessionId,
    workspace: Workspace = DEFAULT_WORKSPACE,
    agent: Agent = DEFAULT_AGENT,
    user: User = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """The turns that the model still sees whole, each with the line at its end, to branch or fork at."""
    del debug  # the guard has seen it
    async with opened(workspace, agent) as made:
        sessions = made.sessions(user)
        found = (await sessions.tree(session)).view().turns
        names = {entry: name for name, entry in (await sessions.labels(session)).items()}
    rows = [_row(turn, names) for turn in found]
    if as_json:
        say_json({"session": session, "turns": rows})
        return
    for row in rows:
        label = f"  ({one_line(str(row['label']), 40)})" if "label" in row else ""
        state = "" if row["closed"] else "  [open]"
        say(f"{row['end']}  {one_line(str(row['asked']), 60)}{state}{label}")


@command
async def branch(
    session: SessionId,
    entry: Entry,
    workspace: Workspace = DEFAULT_WORKSPACE,
    agent: Agent = DEFAULT_AGENT,
    user: User = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Go back: the conversation goes on behind this turn's end. What came after stays in the ledger."""
    del debug  # the guard has seen it
    async with opened(workspace, agent) as made:
        line = await made.sessions(user).branch(session, entry)
    if as_json:
        say_json({"session": session, "at": entry, "entry_id": line})
    else:
        say(f"{session} goes on behind {entry}")


@command
async def branches(
    session: SessionId,
    workspace: Workspace = DEFAULT_WORKSPACE,
    agent: Agent = DEFAULT_AGENT,
    user: User = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """The ways that a conversation went, oldest first; the one on which it goes on is marked."""
    del debug  # the guard has seen it
    async with opened(workspace, agent) as made:
        found = await made.sessions(user).branches(session)
    if as_json:
        say_json({"session": session, "branches": [present(asdict(info)) for info in found]})
        return
    for info in found:
        mark = "*" if info.active else " "
        say(f"{mark} {info.leaf}  {info.updated_at[:19]}  {info.turns:>4} turns  {one_line(info.title, 60)}")


@command
async def fork(
    session: SessionId,
    at: At = None,
    to: To = None,
    workspace: Workspace = DEFAULT_WORKSPACE,
    agent: Agent = DEFAULT_AGENT,
    user: User = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Copy a conversation, up to a turn's end, into a new session."""
    del debug  # the guard has seen it
    async with opened(workspace, agent) as made:
        copy = await made.sessions(user).fork(session, at, to=to)
    if as_json:
        say_json({"session": session, "session_id": copy})
    else:
        say(copy)


@command
async def label(
    session: SessionId,
    entry: Entry,
    name: Name,
    workspace: Workspace = DEFAULT_WORKSPACE,
    agent: Agent = DEFAULT_AGENT,
    user: User = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Give a line a name."""
    del debug  # the guard has seen it
    async with opened(workspace, agent) as made:
        line = await made.sessions(user).label(session, entry, name)
    if as_json:
        say_json({"session": session, "target": entry, "name": name, "entry_id": line})
    else:
        say(f"{entry} is called {name}")


def _row(turn: Turn, names: dict[str, str]) -> dict[str, object]:
    label = next((names[entry] for entry in turn.entry_ids if entry in names), None)
    asked = Msg.from_dict(turn.messages[0]).text
    row: dict[str, object] = {"id": turn.id, "end": turn.entry_ids[-1], "closed": turn.closed, "asked": asked}
    return row if label is None else {**row, "label": label}
