"""`harness sessions verify|repair`: are sessions as they were written, and what can be made anew."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing, nullcontext
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from harness.cli.about import about_sessions
from harness.cli.options import SessionId, is_id
from harness.cli.output import json_list, one_line, present, say, say_json, snake_keys
from harness.cli.place import Place
from harness.cli.progress import progress
from harness.errors import HarnessError, SessionNotFound
from harness.sessions.checking.verify import VerifyReport
from harness.text import counted

__all__ = ["repair", "verify"]


One = Annotated[
    str | None,
    typer.Argument(
        metavar="[SESSION]", callback=is_id, help="One session; without it, all of the user's, a line each."
    ),
]


@about_sessions
async def verify(place: Place, session: One = None) -> None:
    """Check every line of a session, its end, and its files. Exit code 1 if something is wrong.

    Example: harness sessions verify monday
    """
    if session is None:
        raise typer.Exit(0 if await _verify_all(place) else 1)
    async with place.sessions() as sessions:
        report = await sessions.verify(session)
    if place.as_json:
        say_json(_document(report))
    else:
        _say_report(report)
    raise typer.Exit(0 if report.ok else 1)


async def _verify_all(place: Place) -> bool:
    """Check session after session, and say of each how it is; whether all are as they were written."""
    if place.as_json:
        async with json_list("sessions", ok=True) as whole, aclosing(_each(place, bar=True)) as each:
            async for checked in each:
                whole.fields["ok"] = whole.fields["ok"] and checked.ok
                await whole.add(checked.to_dict())
        return bool(whole.fields["ok"])
    total = wrong = 0
    async with aclosing(_each(place, bar=not sys.stdout.isatty())) as each:  # there the lines tell how far it is
        async for checked in each:
            total, wrong = total + 1, wrong + (not checked.ok)
            say(checked.line())
    all_of_them = counted(total, "session") if total else "no sessions"
    say(f"{all_of_them} of {place.whose}" + (f", {wrong} with errors" if total else ""))
    return not wrong


@dataclass(frozen=True, slots=True)
class _Checked:
    """What became of checking one session among others: a report, or why there is none."""

    session: str
    found: VerifyReport | HarnessError

    @property
    def ok(self) -> bool:
        return isinstance(self.found, VerifyReport) and self.found.ok

    def to_dict(self) -> dict[str, Any]:
        if isinstance(self.found, VerifyReport):
            return _document(self.found)
        return {"session": self.session, "ok": False, "error": str(self.found), "type": type(self.found).__name__}

    def line(self) -> str:
        name = one_line(self.session, 60)
        if not isinstance(self.found, VerifyReport):
            return f"{name}: could not be checked: {one_line(str(self.found), 200)}"
        errors = [f"line {finding.line} {finding.kind}" for finding in self.found.findings if finding.error]
        more = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
        return f"{name}: {_verdict(self.found)}{f' ({errors[0]}{more})' if errors else ''}"


async def _each(place: Place, *, bar: bool) -> AsyncGenerator[_Checked]:
    """The sessions in the order of their ids, those whose ledger is gone among them; each is checked by itself."""
    async with place.sessions() as sessions:
        ids = sorted({*(info.id for info in await sessions.list()), *await sessions.lost()})
        with progress("checking", len(ids)) if bar else nullcontext(lambda: None) as advance:
            for session in ids:
                try:
                    yield _Checked(session, await sessions.verify(session))
                except SessionNotFound:  # deleted meanwhile
                    continue
                except HarnessError as error:
                    yield _Checked(session, error)
                finally:
                    advance()


def _document(report: VerifyReport) -> dict[str, Any]:
    return present(snake_keys(report.to_dict()))


@about_sessions
async def repair(place: Place, session: SessionId) -> None:
    """Make anew what can be made from the ledger, which is never edited. Exit code 1 if an error is left.

    Example: harness sessions repair monday
    """
    async with place.sessions() as sessions:
        report = await sessions.repair(session)
    if place.as_json:
        made = {**report.to_dict(), "before": _document(report.before), "after": _document(report.after)}
        say_json(made)
    else:
        for sentence in report.done:
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
