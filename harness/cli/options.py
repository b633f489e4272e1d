"""The options that several commands have, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from harness.errors import InvalidId
from harness.ids import check_id

__all__ = [
    "DEFAULT_AGENT",
    "DEFAULT_WORKSPACE",
    "Agent",
    "AsJson",
    "Debug",
    "Model",
    "Namespace",
    "NewId",
    "SessionId",
    "User",
    "WholeNamespace",
    "Workspace",
    "has_words",
    "is_id",
]

DEFAULT_WORKSPACE = Path("workspace")
DEFAULT_AGENT = "assistant"


def is_id(value: str | None) -> str | None:
    """The value, for a callback of an option; an id that cannot be is wrong usage."""
    if value is not None:
        try:
            check_id("it", value)
        except InvalidId as error:
            raise typer.BadParameter(str(error)) from error
    return value


def has_words(query: str) -> str:
    """The query, for a callback of an argument; one that holds no word would find nothing, whatever there is."""
    if not query.strip():
        raise typer.BadParameter("there is nothing to look for; give a word")
    return query


def _are_ids(values: list[str] | None) -> list[str] | None:
    for value in values or ():
        is_id(value)
    return values


_NAMED_BY_PARTS = "where the agent's namespace is not the user alone: once for each part, in order."

Workspace: TypeAlias = Annotated[
    Path, typer.Option("--workspace", "-w", envvar="HARNESS_WORKSPACE", help="The folder that holds everything.")
]
Agent: TypeAlias = Annotated[
    str, typer.Option("--agent", envvar="HARNESS_AGENT", callback=is_id, help="The agent's id.")
]
User: TypeAlias = Annotated[
    str | None,
    typer.Option("--user", "-u", envvar="HARNESS_USER", callback=is_id, help="Whose; without it, nobody's."),
]
Namespace: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PART",
        callback=_are_ids,
        help=f"Instead of --user, {_NAMED_BY_PARTS}",
    ),
]
WholeNamespace: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--namespace", metavar="PART", callback=_are_ids, help=f"Instead of USER, {_NAMED_BY_PARTS}"),
]
SessionId: TypeAlias = Annotated[
    str, typer.Argument(metavar="SESSION", callback=is_id, help="The session's id; `list` shows them.")
]
NewId: TypeAlias = Annotated[
    str | None,
    typer.Option("--to", metavar="SESSION", callback=is_id, help="The id of the new session; without it, one is made."),
]
Model: TypeAlias = Annotated[
    str, typer.Option("--model", "-m", help='"provider:name", or "offline" for one without a network.')
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
Debug: TypeAlias = Annotated[bool, typer.Option("--debug", help="Log everything, and show where an error came from.")]
