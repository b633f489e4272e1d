"""The options that every command has, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

__all__ = ["Agent", "AsJson", "Debug", "SessionId", "User", "Workspace"]

Workspace: TypeAlias = Annotated[
    Path, typer.Option("--workspace", "-w", envvar="HARNESS_WORKSPACE", help="The folder that holds everything.")
]
Agent: TypeAlias = Annotated[str, typer.Option("--agent", envvar="HARNESS_AGENT", help="The agent's id.")]
User: TypeAlias = Annotated[
    str | None, typer.Option("--user", "-u", envvar="HARNESS_USER", help="The tenant; without it, nobody's.")
]
SessionId: TypeAlias = Annotated[str, typer.Argument(metavar="SESSION", help="The session's id.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
Debug: TypeAlias = Annotated[bool, typer.Option("--debug", help="Log everything, and show where an error came from.")]
