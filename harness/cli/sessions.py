"""`harness sessions list|show|search`: look at the past conversations of one user with one agent."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from harness.cli import checking, continuing, counting, moving, naming, seeing, turning
from harness.cli.about import about_sessions
from harness.cli.clock import told
from harness.cli.options import SessionId, has_words
from harness.cli.output import json_list, one_line, present, say, say_json
from harness.cli.place import Place
from harness.cli.rendering import message_lines

__all__ = ["app", "list_sessions", "search", "show"]


Last = Annotated[int, typer.Option("--last", min=1, help="How many messages, counted from the end.")]
In = Annotated[str | None, typer.Option("--session", "-s", metavar="SESSION", help="Only in this conversation.")]
AtMost = Annotated[int | None, typer.Option("--limit", min=1, help="How many at most; all, if left out.")]
After = Annotated[str | None, typer.Option("--after", metavar="SESSION", help="Only those behind this one.")]
Limit = Annotated[int, typer.Option("--limit", min=1, help="How many hits at most.")]


@about_sessions
async def list_sessions(place: Place, limit: AtMost = None, after: After = None) -> None:
    """The conversations, newest first.

    Example: harness sessions list --user alice --limit 20
    """
    async with place.sessions() as sessions:
        found = await sessions.list(limit, after, newest_first=True)
    if place.as_json:
        say_json({"sessions": [present(asdict(info)) for info in found]})
        return
    width = max((len(one_line(info.id, 60)) for info in found), default=0)
    for info in found:
        name = f"{one_line(info.id, 60):{width}}"
        say(f"{name}  {told(info.updated_at)}  {info.turns:>4} turns  {one_line(info.title, 60)}")
    if not found and after is None:
        say(f"no sessions of agent {place.agent!r} for {place.whose} in {place.workspace}")


@about_sessions
async def show(place: Place, session: SessionId, last: Last = 1_000) -> None:
    """Everything that was said in a conversation, compacted or not, with the time, and the model that said it.

    Example: harness sessions show monday --last 20
    """
    if place.as_json:
        async with json_list("messages", session=session) as whole, place.sessions() as sessions:
            async for message in sessions.read(session, last):
                await whole.add(message.to_dict())
        return
    empty = True
    async with place.sessions() as sessions:
        async for when, message in sessions.read_timed(session, last):
            empty = False
            for line in message_lines(message.to_dict(), told(when).replace("T", " ")):
                say(line)
    if empty:
        say(f"nothing was said in {session} yet")


@about_sessions
async def search(
    place: Place,
    query: Annotated[str, typer.Argument(metavar="QUERY", callback=has_words, help="Words, in any order.")],
    session: In = None,
    limit: Limit = 10,
) -> None:
    """The messages that match best, of all conversations of this user, or of one.

    Example: harness sessions search "code word"
    """
    async with place.sessions() as sessions:
        hits = await sessions.search(query, limit, session)
        if not hits and session is not None:
            await sessions.history(session, 1)  # says so where there is no such session
    if place.as_json:
        say_json({"query": query, "hits": [present(asdict(hit)) for hit in hits]})
        return
    for hit in hits:
        say(f"{one_line(hit.session_id, 60)}  {told(hit.timestamp)}  {hit.role}: {one_line(hit.snippet)}")
    if not hits:
        say("nothing found")


_COMMANDS = {
    "list": list_sessions,
    "show": show,
    "search": search,
    "seen": seeing.seen,
    "verify": checking.verify,
    "repair": checking.repair,
    "turns": turning.turns,
    "branches": turning.branches,
    "branch": turning.branch,
    "fork": turning.fork,
    "label": naming.label,
    "labels": naming.labels,
    "rename": naming.rename,
    "compact": continuing.compact,
    "switch-model": continuing.switch_model,
    "handoff": continuing.handoff,
    "export": moving.export,
    "import": moving.import_bundle,
    "import-java": moving.import_java,
    "delete": moving.delete,
    "usage": counting.usage,
}

app = typer.Typer(help="Past conversations: look, check, go back, copy, move, count.", no_args_is_help=True)
for _name, _function in _COMMANDS.items():
    app.command(_name)(_function)
