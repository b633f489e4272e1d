"""`harness sessions usage`: tokens and cost, from the ledgers alone."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from harness.cli.about import about_sessions
from harness.cli.clock import told
from harness.cli.output import one_line, say, say_json, snake_keys
from harness.cli.place import Place
from harness.sessions.catalog.usage import UsageReport, UsageTotal

__all__ = ["usage"]

One = Annotated[str | None, typer.Argument(metavar="[SESSION]", help="One session; without it, all of the user's.")]
Requests = Annotated[bool, typer.Option("--requests", help="Every single request, too.")]

_PARTS = {"by_model": "byModel", "by_session": "bySession"}
_HEAD = f"{'':30} {'requests':>9} {'input':>10} {'cache read':>11} {'cache write':>11} {'output':>9} {'US$':>10}"


@about_sessions
async def usage(place: Place, session: One = None, requests: Requests = False) -> None:
    """Tokens and cost by model and session; `billed` counts abandoned branches and failed requests, too.

    Example: harness sessions usage monday --requests
    """
    async with place.sessions() as sessions:
        report = await sessions.usage(session)
    if place.as_json:
        say_json(_document(report, requests=requests))
        return
    say(_HEAD)
    if requests:
        for row in report.rows:
            say(_line(f"  {told(row.started)} {row.purpose}", UsageTotal().plus(row)))
    for name, total in (*report.by_model.items(), *report.by_session.items()):
        say(_line(name, total))
    say(_line("billed", report.billed))
    if report.billed.abandoned:
        say(f"  of it, tries that were not the answer: {report.billed.abandoned}")
    say(_line("active", report.active))
    if report.inherited.requests:
        say(_line("inherited from forks", report.inherited))


def _document(report: UsageReport, *, requests: bool) -> dict[str, Any]:
    """The report under the names that a command gives; what a provider reported stays as it is stored."""
    found = report.to_dict(rows=requests)
    sums = {name: snake_keys(found[name]) for name in ("billed", "active", "inherited")}
    parts = {new: {key: snake_keys(each) for key, each in found[old].items()} for new, old in _PARTS.items()}
    return {**sums, **parts, **({"requests": [snake_keys(row) for row in found["requests"]]} if requests else {})}


def _line(name: str, total: UsageTotal) -> str:
    cost = "unknown" if total.cost is None else f"{total.cost:.4f}"
    partly = "+" if total.cost is not None and total.uncosted else ""
    return (
        f"{one_line(name, 30):30} {total.requests:>9} {total.input:>10} {total.cache_read:>11} {total.cache_write:>11} "
        f"{total.output:>9} {cost + partly:>10}"
    )
