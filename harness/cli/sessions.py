"""`harness sessions list|show|search`: look at the past conversations of one user with one agent."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from harness.cli import checking, counting, moving, turning
from harness.cli.guard import command
from harness.cli.opening import DEFAULT_AGENT, DEFAULT_WORKSPACE, opened
from harness.cli.options import Agent, AsJson, Debug, User, Workspace
from harness.cli.output import one_line, present, say, say_json
from harness.cli.rendering import message_lines

__all__ = ["app", "list_sessions", "search", "show"]

app = typer.Typer(help="Past conversations: look, check, go back, copy, move, count.", no_args_is_help=True)

app.command("verify")(checking.verify)
app.command("repair")(checking.repair)
app.command("turns")(turning.turns)
app.command("branch")(turning.branch)
app.command("branches")(turning.branches)
app.command("fork")(turning.fork)
app.command("label")(turning.label)
app.command("export")(moving.export)
app.command("import")(moving.import_bundle)
app.command("import-java")(moving.import_java)
app.command("delete")(moving.delete)
app.command("usage")(counting.usage)

Last = Annotated[int, typer.Option("--last", min=1, help="How many messages, counted from the end.")]
Limit = Annotated[int, typer.Option("--limit", min=1, help="How many hits at most.")]


@app.command("list")
@command
async def list_sessions(
    workspace: Workspace = DEFAULT_WORKSPACE,
    agent: Agent = DEFAULT_AGENT,
    user: User = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """The conversations, newest first."""
    del debug  # the guard has seen it
    async with opened(workspace, agent) as made:
        found = sorted(await made.sessions(user).list(), key=lambda info: info.updated_at, reverse=True)
    if as_json:
        say_json({"sessions": [present(asdict(info)) for info in found]})
        return
    for info in found:
        say(f"{one_line(info.id, 60)}  {info.updated_at[:19]}  {info.turns:>4} turns  {one_line(info.title, 60)}")
    if not found:
        say(f"no sessions of agent {agent!r} for {user or 'nobody in particular'} in {workspace}")


@app.command("show")
@command
async def show(
    session: Annotated[str, typer.Argument(help="The session's id.")],
    last: Last = 1_000,
    workspace: Workspace = DEFAULT_WORKSPACE,
    agent: Agent = DEFAULT_AGENT,
    user: User = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Everything that was said in a conversation, compacted or not."""
    del debug  # the guard has seen it
    async with opened(workspace, agent) as made:
        messages = await made.sessions(user).history(session, last)
    if as_json:
        say_json({"session": session, "messages": [message.to_dict() for message in messages]})
        return
    for message in messages:
        for line in message_lines(message.to_dict()):
            say(line)


@app.command("search")
@command
async def search(
    query: Annotated[str, typer.Argument(help="Words, in any order.")],
    limit: Limit = 10,
    workspace: Workspace = DEFAULT_WORKSPACE,
    agent: Agent = DEFAULT_AGENT,
    user: User = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """The messages that match best, of all conversations of this user."""
    del debug  # the guard has seen it
    async with opened(workspace, agent) as made:
        hits = await made.sessions(user).search(query, limit=limit)
    if as_json:
        say_json({"query": query, "hits": [present(asdict(hit)) for hit in hits]})
        return
    for hit in hits:
        say(f"{one_line(hit.session_id, 60)}  {hit.timestamp[:19]}  {hit.role}: {one_line(hit.snippet)}")
    if not hits:
        say("nothing found")
