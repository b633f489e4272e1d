"""`harness users delete`: remove everything of a user."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Annotated

import typer

from harness.agent import UserRemoval
from harness.agent.agents_there import sessions_by_agent
from harness.cli.guard import command
from harness.cli.opening import opened
from harness.cli.options import DEFAULT_AGENT, DEFAULT_WORKSPACE, AsJson, WholeNamespace, Workspace, is_id
from harness.cli.output import one_line, say, say_json
from harness.cli.place import Place
from harness.context import RuntimeContext
from harness.errors import ConfigError, SessionNotFound
from harness.text import counted

__all__ = ["app", "delete"]

Who = Annotated[str | None, typer.Argument(metavar="[USER]", callback=is_id, help="The user's id.")]
Nobody = Annotated[
    bool, typer.Option("--nobody", help="Instead of USER: all calls that named no user, whoever made them.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def _no_agent(value: str | None) -> None:
    """Refuse what every other command takes: whoever gives it means that agent alone."""
    if value is not None:
        raise typer.BadParameter("what all agents have of the user is removed, not what one has; leave --agent out")


NoAgent = Annotated[str | None, typer.Option("--agent", hidden=True, callback=_no_agent)]


@command
async def delete(
    user: Who = None,
    nobody: Nobody = False,
    namespace: WholeNamespace = None,
    yes: Yes = False,
    workspace: Workspace = DEFAULT_WORKSPACE,
    agent: NoAgent = None,  # noqa: ARG001 - its callback refuses it
    as_json: AsJson = False,
) -> None:
    """Remove a user for good: all sessions with every agent, snapshots, memory, files, and say what was removed.

    Example: harness users delete alice --yes
    """
    if [user is not None, nobody, bool(namespace)].count(True) != 1:
        raise ConfigError("whom to remove is said in one way: USER, --nobody, or --namespace once for each part")
    place = Place(workspace, DEFAULT_AGENT, user, as_json, tuple(namespace or ()))
    if not yes and not sys.stdin.isatty():
        raise ConfigError("this removes a user for good and there is nobody to ask; give --yes")
    await place.check_there()
    async with opened(workspace, DEFAULT_AGENT, namespace=place.namespace) as made:
        if not yes and not _agreed(place, await sessions_by_agent(made.config, RuntimeContext(user_id=user))):
            say("nothing was removed")
            return
        removal = await made.delete_user(user, whole_tenant=user is None)
    if not removal and not removal.unreached:
        raise SessionNotFound(f"there is nothing of {place.whose} in {workspace}; nothing was removed")
    if as_json:
        say_json({**({"user": user} if user is not None else {}), **asdict(removal)})
    else:
        _say(place, removal)


def _say(place: Place, removal: UserRemoval) -> None:
    whose = one_line(place.whose, 60)
    if removal:
        gone = counted(removal.sessions, "session"), counted(removal.files, "file"), counted(removal.bytes, "byte")
        say(f"{whose} is gone: {', '.join(gone)}")
        if parts := _parts(removal):
            say(f"among them {', '.join(parts)}")
    else:
        say(f"nothing of {whose} was found to be removed")
    for sentence in removal.unreached:
        say(f"not reached: {one_line(sentence, 500)}")


def _parts(removal: UserRemoval) -> list[str]:
    """What there was of each kind, in words."""
    numbers = {
        "ledger": removal.ledgers,
        "large content": removal.contents,
        "memory file": removal.memory_files,
        "list row": removal.index_rows,
        "snapshot": removal.snapshot_keys,
        "Java harness file": removal.java_files,
    }
    return [counted(number, thing) for thing, number in numbers.items() if number]


def _agreed(place: Place, sessions: Mapping[str, Collection[str]]) -> bool:
    of_agents = [
        f"{counted(len(names), 'session')} of agent {one_line(repr(agent), 60)}" for agent, names in sessions.items()
    ]
    what = f" ({', '.join(of_agents)})" if of_agents else ""
    return typer.confirm(f"Remove everything of {one_line(place.whose, 60)}{what} for good?", err=True)


app = typer.Typer(help="Whole users.", no_args_is_help=True)
app.command("delete")(delete)


@app.callback()
def _group() -> None:
    """Whole users: remove them."""
