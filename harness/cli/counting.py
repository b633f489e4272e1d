"""`harness sessions usage`: tokens and cost, from the ledgers alone."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.cli.guard import command
from harness.cli.opening import DEFAULT_AGENT, DEFAULT_WORKSPACE, opened
from harness.cli.options import Agent, AsJson, Debug, User, Workspace
from harness.cli.output import one_line, say, say_json
from harness.sessions.usage import UsageTotal

__all__ = ["usage"]

One = Annotated[str | None, typer.Argument(metavar="[SESSION]", help="One session; without it, all of the user's.")]
Requests = Annotated[bool, typer.Option("--requests", help="Every single request, too.")]

_HEAD = f"{'':30} {'requests':>9} {'input':>10} {'cache read':>11} {'cache write':>11} {'output':>9} {'US$':>10}"


@command
async def usage(
    session: One = None,
    requests: Requests = False,
    workspace: Workspace = DEFAULT_WORKSPACE,
    agent: Agent = DEFAULT_AGENT,
    user: User = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Tokens and cost by model and session; `billed` counts abandoned branches and failed requests, too."""
    del debug  # the guard has seen it
    async with opened(workspace, agent) as made:
        report = await made.sessions(user).usage(session)
    if as_json:
        say_json(report.to_dict(rows=requests))
        return
    say(_HEAD)
    if requests:
        for row in report.rows:
            say(_line(f"  {row.started[:19]} {row.purpose}", UsageTotal().plus(row)))
    for name, total in (*report.by_model.items(), *report.by_session.items()):
        say(_line(name, total))
    say(_line("billed", report.billed))
    say(_line("active", report.active))
    if report.inherited.requests:
        say(_line("inherited from forks", report.inherited))


def _line(name: str, total: UsageTotal) -> str:
    cost = "unknown" if total.cost is None else f"{total.cost:.4f}"
    partly = "+" if total.cost is not None and total.uncosted else ""
    return (
        f"{one_line(name, 30):30} {total.requests:>9} {total.input:>10} {total.cache_read:>11} {total.cache_write:>11} "
        f"{total.output:>9} {cost + partly:>10}"
    )
