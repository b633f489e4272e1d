"""The command tree."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from harness.cli import chat, quickstart, sessions, transcripts, view

__all__ = ["app"]

app = typer.Typer(
    name="harness",
    help="Agents for many users, with sessions you can read.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"harness {_version()}")
        raise typer.Exit


def _version() -> str:
    try:
        return version("dualtrack-harness")
    except PackageNotFoundError:
        return "of a source tree that is not installed"


@app.callback()
def _root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Agents for many users, with sessions you can read."""


app.command("quickstart")(quickstart.run)
app.command("chat")(chat.run)
app.command("view")(view.run)
app.add_typer(sessions.app, name="sessions")
app.add_typer(transcripts.app, name="transcripts")
