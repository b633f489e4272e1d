"""`harness sessions verify|repair`: is a session as it was written, and what can be made anew."""

from __future__ import annotations

import typer

from harness.cli.guard import command
from harness.cli.opening import DEFAULT_AGENT, DEFAULT_WORKSPACE, opened
from harness.cli.options import Agent, AsJson, Debug, SessionId, User, Workspace
from harness.cli.output import say, say_json
from harness.sessions.verify import VerifyReport

__all__ = ["repair", "verify"]


@command
async def verify(
    session: SessionId,
    workspace: Workspace = DEFAULT_WORKSPACE,
    agent: Agent = DEFAULT_AGENT,
    user: User = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Check every line of a session, its end, and its files. Exit code 1 if something is wrong."""
    del debug  # the guard has seen it
    async with opened(workspace, agent) as made:
        report = await made.sessions(user).verify(session)
    if as_json:
        say_json(report.to_dict())
    else:
        _say_report(report)
    raise typer.Exit(0 if report.ok else 1)


@command
async def repair(
    session: SessionId,
    workspace: Workspace = DEFAULT_WORKSPACE,
    agent: Agent = DEFAULT_AGENT,
    user: User = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Make anew what can be made from the ledger, which is never edited. Exit code 1 if an error is left."""
    del debug  # the guard has seen it
    async with opened(workspace, agent) as made:
        report = await made.sessions(user).repair(session)
    if as_json:
        say_json(report.to_dict())
    else:
        for sentence in report.done or ("nothing had to be done",):
            say(sentence)
        _say_report(report.after)
    raise typer.Exit(0 if report.ok else 1)


def _say_report(report: VerifyReport) -> None:
    for finding in report.findings:
        say(f"{finding.severity}: line {finding.line}, byte {finding.byte}, {finding.kind}: {finding.text}")
    verdict = "as it was written" if report.ok else "not as it was written"
    say(f"{report.lines} lines, {report.bytes} bytes, {report.files} files: {verdict}")
