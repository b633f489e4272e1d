"""`harness sessions export|import|delete`: take a session elsewhere, take one in, remove one for good."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.about import about_sessions
from harness.cli.hints import saying
from harness.cli.options import SessionId
from harness.cli.output import one_line, say, say_json
from harness.cli.place import Place
from harness.errors import ConfigError, FileExists, SessionExists, SessionNotFound
from harness.ids import encode_name
from harness.sessions.moving.bundle import MAX_BYTES

__all__ = ["delete", "export", "import_bundle", "import_java"]

Out = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="FILE", help="The new file; without it, SESSION.zip here.")
]
File = Annotated[Path, typer.Argument(metavar="FILE", help="A file that `export` made.")]
AsId = Annotated[str | None, typer.Option("--as", metavar="SESSION", help="Another id for it (with --take-over).")]
TakeOver = Annotated[
    bool, typer.Option("--take-over", help="Make another user's, agent's or id's session this one's, in a new ledger.")
]
MaxBytes = Annotated[int, typer.Option("--max-bytes", min=1, help="The most it may unpack to.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@about_sessions
async def export(place: Place, session: SessionId, out: Out = None) -> None:
    """Write a session into one new file, byte for byte.

    Example: harness sessions export monday --out monday.zip
    """
    async with place.sessions() as sessions:
        with saying("another file: --out FILE", FileExists):
            bundle = await sessions.export(session, out or Path(f"{encode_name(session)}.zip"))
    if place.as_json:
        listed = [{"path": member.path, "bytes": member.bytes, "sha256": member.sha256} for member in bundle.members]
        say_json({"session": session, "file": str(bundle.path), "members": listed, "missing": list(bundle.missing)})
        return
    say(f"{bundle.path}: {len(bundle.members)} files, {bundle.bytes} bytes")
    for name in bundle.missing:
        say(f"missing: the content {name} that the ledger names; nobody can import this file without it")


@about_sessions
async def import_bundle(
    place: Place, file: File, as_id: AsId = None, take_over: TakeOver = False, max_bytes: MaxBytes = MAX_BYTES
) -> None:
    """Take a session out of a file, whole and checked, or not at all. One that is there is never replaced.

    Example: harness sessions import monday.zip
    """
    async with place.sessions(new=True) as sessions:
        with saying("as one of its own, under another id: --take-over --as SESSION", SessionExists, ConfigError):
            taken = await sessions.import_session(file, session_id=as_id, take_over=take_over, max_bytes=max_bytes)
    if place.as_json:
        say_json({"file": str(file), "session_id": taken})
    else:
        say(taken)


@about_sessions
async def import_java(place: Place) -> None:
    """Take over all sessions that the Java harness left for this user in the workspace. Its files are not changed.

    Example: harness sessions import-java --user alice
    """
    async with place.sessions() as sessions:
        taken = await sessions.import_java()
    if place.as_json:
        say_json({"session_ids": taken})
        return
    for session in taken or ("nothing new was found",):
        say(session)


@about_sessions
async def delete(place: Place, session: SessionId, yes: Yes = False) -> None:
    """Remove a session for good, with all its files.

    Example: harness sessions delete monday --yes
    """
    if not yes and not _agreed(session):
        say("nothing was removed")
        return
    async with place.sessions() as sessions:
        if not await sessions.delete(session):
            raise SessionNotFound(f"there is no session {session!r} of this user; nothing was removed")
    if place.as_json:
        say_json({"session": session, "deleted": True})
    else:
        say(f"{session} is gone")


def _agreed(session: str) -> bool:
    if not sys.stdin.isatty():
        raise ConfigError("this removes a session for good and there is nobody to ask; give --yes")
    return typer.confirm(f"Remove {one_line(session, 60)} for good?", err=True)
