"""The command tree."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any

import typer

from harness.cli import chat, quickstart, sessions, transcripts, users, view
from harness.cli.guard import NOBODY_READS, exit_code
from harness.cli.output import report_error, unwritten
from harness.errors import ConfigError

__all__ = ["app", "run"]

_WrongUsage: type[Exception] = typer.BadParameter.__mro__[1]
"""What is raised for all wrong usage; typer has no name for it."""

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
app.add_typer(users.app, name="users")


def run(words: Sequence[str]) -> int:
    """Run the command and give its exit code. Wrong usage is one line, or a JSON document, as every other error."""
    try:
        return int(app(list(words), prog_name="harness", standalone_mode=False) or 0)
    except _WrongUsage as error:
        return _wrong_usage(error, as_json="--json" in words)
    except SystemExit as left:  # the help goes out by itself, and gives up by itself
        if isinstance(left.__context__, BrokenPipeError):
            return NOBODY_READS
        raise
    except OSError as error:  # so does what the help could not be written for
        found = unwritten(error)
        report_error(found, as_json=False)
        return exit_code(found)


def _wrong_usage(error: Any, *, as_json: bool) -> int:
    found = ConfigError(_sentence(error.format_message()))
    if str(found):  # else the help was asked for by saying nothing, and is shown already
        if error.ctx is not None:
            found.add_note(f"how it is used: {error.ctx.command_path} --help")
        report_error(found, as_json=as_json)
    return exit_code(found)


def _sentence(text: str) -> str:
    return text[:1].lower() + text[1:].rstrip(".")
