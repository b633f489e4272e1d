"""`harness sessions turns|branches|branch|fork`: go back to a point of a conversation, or copy it from there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated

import typer

from harness.agent import TenantSessions
from harness.cli.about import about_sessions
from harness.cli.clock import told
from harness.cli.hints import saying, where_turns_end
from harness.cli.options import NewId, SessionId, is_id
from harness.cli.output import one_line, present, say, say_json
from harness.cli.place import Place
from harness.errors import ConfigError, SessionExists
from harness.filesystem import pool
from harness.messages import Msg
from harness.sessions.lines.layout import SessionFiles
from harness.sessions.lines.skimming import read_entries
from harness.sessions.selection.outline import Outline
from harness.sessions.view.projection import Turn

__all__ = ["TurnNumber", "branch", "branches", "fork", "named_end", "turns"]

At = Annotated[
    str | None, typer.Option("--at", metavar="ENTRY", help="A turn's end, or its label; without it, the newest.")
]
TurnEnd = Annotated[
    str | None,
    typer.Argument(metavar="[ENTRY]", callback=is_id, help="A turn's end, as `turns` shows it, or its label."),
]
TurnNumber = Annotated[
    int | None, typer.Option("--turn", min=1, help="The turn's number instead, as `turns` shows it.")
]


@about_sessions
async def turns(place: Place, session: SessionId) -> None:
    """All turns, summed up or not, each with its number and the line at its end, to branch or fork at.

    Example: harness sessions turns monday
    """
    async with place.sessions() as sessions:
        tree = await sessions.tree(session)
        names = {entry: name for name, entry in (await tree.notes()).labels.items()}
        rows = await pool.run(_rows, tree.files, names)
    if place.as_json:
        say_json({"session": session, "turns": rows})
        return
    for row in rows:
        label = f"  ({one_line(str(row['label']), 40)})" if "label" in row else ""
        state = "" if row["closed"] else "  [open]"
        say(f"#{row['number']:<4} {row['end']}  {one_line(str(row['asked']), 60)}{state}{label}")
    if not rows:
        say(f"nothing was said in {session} yet")


@about_sessions
async def branch(place: Place, session: SessionId, entry: TurnEnd = None, turn: TurnNumber = None) -> None:
    """Go back: the conversation goes on behind this turn's end. What came after stays in the ledger.

    Example: harness sessions branch monday --turn 3
    """
    async with place.sessions() as sessions:
        with where_turns_end(place, session):
            end = await named_end(sessions, session, entry, turn)
            if end is None:
                raise ConfigError("branch needs the end of a turn to go back to; give ENTRY or --turn N")
            line = await sessions.branch(session, end)
    if place.as_json:
        say_json({"session": session, "at": end, "entry_id": line})
    else:
        say(f"{session} goes on behind {end if turn is None else f'turn {turn}'}")


@about_sessions
async def branches(place: Place, session: SessionId) -> None:
    """The ways that a conversation went, oldest first; the one on which it goes on is marked.

    Example: harness sessions branches monday
    """
    async with place.sessions() as sessions:
        found = await sessions.branches(session)
    if place.as_json:
        say_json({"session": session, "branches": [present(asdict(info)) for info in found]})
        return
    for info in found:
        mark = "*" if info.active else " "
        say(f"{mark} {info.leaf}  {told(info.updated_at)}  {info.turns:>4} turns  {one_line(info.title, 60)}")


@about_sessions
async def fork(place: Place, session: SessionId, at: At = None, turn: TurnNumber = None, to: NewId = None) -> None:
    """Copy a conversation, up to a turn's end, into a new session; prints its id.

    Example: harness sessions fork monday --turn 3 --to tuesday
    """
    async with place.sessions() as sessions:
        with where_turns_end(place, session), saying("another id: --to SESSION", SessionExists):
            end = await named_end(sessions, session, at, turn)
            copy = await sessions.fork(session, end, to=to)
    if place.as_json:
        say_json({"session": session, "session_id": copy})
    else:
        say(copy)


async def named_end(sessions: TenantSessions, session: str, entry: str | None, turn: int | None) -> str | None:
    """The line at the end of the turn that was named by its number, else the line that was named, if one was."""
    if entry is not None and turn is not None:
        raise ConfigError("a line and --turn were both given; give one of them")
    if entry is not None:
        tree = await sessions.tree(session)
        return await pool.run(_line_of, tree.files, entry, (await tree.notes()).labels)
    if turn is not None:
        return await pool.run(_end_of, (await sessions.tree(session)).files, turn)
    return None


def _line_of(files: SessionFiles, named: str, labels: Mapping[str, str]) -> str:
    """The line that has this for its id, else the one that a person called so."""
    is_id = named not in labels or any(entry.id == named for entry in read_entries(files.ledger))
    return named if is_id else labels[named]


def _end_of(files: SessionFiles, number: int) -> str:
    outline = Outline(files)
    if number > len(outline):
        raise ConfigError(f"there is no turn {number}: the conversation has {len(outline)}; give one of these")
    return _end(outline.turn(number))


def _end(turn: Turn) -> str:
    return turn.entry_ids[-1] if turn.entry_ids else turn.id


def _rows(files: SessionFiles, names: dict[str, str]) -> list[dict[str, object]]:
    """The turns of the active path; no more than one of them is held at a time."""
    outline = Outline(files)
    return [_row(outline, number, names) for number in range(1, len(outline) + 1)]


def _row(outline: Outline, number: int, names: dict[str, str]) -> dict[str, object]:
    turn = outline.turn(number)
    label = next((names[entry] for entry in turn.entry_ids if entry in names), None)
    said = outline.directive(number) or next(iter(turn.messages), None)
    asked = Msg.from_dict(said).text if said else ""
    closed = turn.closed or number < len(outline)
    row: dict[str, object] = {"number": number, "id": turn.id, "end": _end(turn), "closed": closed}
    return {**row, "asked": asked, **({} if label is None else {"label": label})}
