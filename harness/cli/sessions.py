"""`harness sessions list|show|search`: look at the past conversations of one user with one agent."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from harness.cli import checking, counting, moving, turning
from harness.cli.clock import told
from harness.cli.output import one_line, present, say, say_json, say_json_list
from harness.cli.place import Place, about_sessions
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
@about_sessions
async def list_sessions(
    place: Place,
) -> None:
    """The conversations, newest first."""
    await place.check_there()
    async with place.sessions() as sessions:
        found = sorted(await sessions.list(), key=lambda info: info.updated_at, reverse=True)
    if place.as_json:
        say_json({"sessions": [present(asdict(info)) for info in found]})
        return
    for info in found:
        say(f"{one_line(info.id, 60)}  {told(info.updated_at)}  {info.turns:>4} turns  {one_line(info.title, 60)}")
    if not found:
        say(f"no sessions of agent {place.agent!r} for {place.user or 'nobody in particular'} in {place.workspace}")


@app.command("show")
@about_sessions
async def show(
    place: Place,
    session: Annotated[str, typer.Argument(help="The session's id.")],
    last: Last = 1_000,
) -> None:
    """Everything that was said in a conversation, compacted or not."""
    async with place.sessions() as sessions:
        messages = (message.to_dict() async for message in sessions.read(session, last))
        if place.as_json:
            await say_json_list({"session": session}, "messages", messages)
            return
        async for message in messages:
            for line in message_lines(message):
                say(line)


@app.command("search")
@about_sessions
async def search(
    place: Place,
    query: Annotated[str, typer.Argument(help="Words, in any order.")],
    limit: Limit = 10,
) -> None:
    """The messages that match best, of all conversations of this user."""
    await place.check_there()
    async with place.sessions() as sessions:
        hits = await sessions.search(query, limit=limit)
    if place.as_json:
        say_json({"query": query, "hits": [present(asdict(hit)) for hit in hits]})
        return
    for hit in hits:
        say(f"{one_line(hit.session_id, 60)}  {told(hit.timestamp)}  {hit.role}: {one_line(hit.snippet)}")
    if not hits:
        say("nothing found")
