"""`harness sessions verify|repair`: is a session as it was written, and what can be made anew."""

from __future__ import annotations

import typer

from harness.cli.options import SessionId
from harness.cli.output import say, say_json
from harness.cli.place import Place, about_sessions
from harness.sessions.verify import VerifyReport

__all__ = ["repair", "verify"]


@about_sessions
async def verify(
    place: Place,
    session: SessionId,
) -> None:
    """Check every line of a session, its end, and its files. Exit code 1 if something is wrong."""
    async with place.sessions() as sessions:
        report = await sessions.verify(session)
    if place.as_json:
        say_json(report.to_dict())
    else:
        _say_report(report)
    raise typer.Exit(0 if report.ok else 1)


@about_sessions
async def repair(
    place: Place,
    session: SessionId,
) -> None:
    """Make anew what can be made from the ledger, which is never edited. Exit code 1 if an error is left."""
    async with place.sessions() as sessions:
        report = await sessions.repair(session)
    if place.as_json:
        say_json(report.to_dict())
    else:
        for sentence in report.done or ("nothing had to be done",):
            say(sentence)
        _say_report(report.after)
    raise typer.Exit(0 if report.ok else 1)


def _say_report(report: VerifyReport) -> None:
    for finding in report.findings:
        say(f"{finding.severity}: line {finding.line}, byte {finding.byte}, {finding.kind}: {finding.text}")
    say(f"{report.lines} lines, {report.bytes} bytes, {report.files} files: {_verdict(report)}")


def _verdict(report: VerifyReport) -> str:
    if not report.ok:
        return "not as it was written"
    if not report.noted:
        return "as it was written"
    lines = ", ".join(map(str, report.noted))
    return f"as it was written since the damage that line {lines} notes; what was lost before that stays lost"
