"""What to type next. An error says what is wrong in words that hold in Python, too; a hint is about this command line.

Hints are the notes of an exception. `saying` adds one where a command knows better, `add_hints` those that follow from
the kind of error, whatever the command was.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from harness.agent import TenantSessions
from harness.agent.agents_there import sessions_by_agent
from harness.cli.opening import opened
from harness.cli.place import Place
from harness.context import RuntimeContext
from harness.errors import ConfigError, HarnessError, NotATurnEnd, SessionDamaged, SessionNotFound, TranscriptRefused
from harness.ids import encode_name

__all__ = ["add_hints", "saying", "where_turns_end", "which_session"]

_MOST = 3


@contextmanager
def saying(hint: str, *kinds: type[HarnessError]) -> Iterator[None]:
    """Add this hint to an error of these kinds that is raised in the block."""
    try:
        yield
    except kinds as error:
        error.add_note(hint)
        raise


@contextmanager
def which_session(named: str | None) -> Iterator[None]:
    """Say how one of several sessions is named, to an error that lists them; not where the name is what they share."""
    try:
        yield
    except TranscriptRefused as error:
        ids = [one.session_id for one in error.candidates]
        if ids and named is None and len({*ids}) == len(ids):
            error.add_note("one of them: --session SESSION")
        raise


def where_turns_end(place: Place, session: str) -> AbstractContextManager[None]:
    """Say where the lines are, to an error about one that is not there or not at a turn's end."""
    return saying(f"where turns end: {place.typed('sessions', 'turns', session)}", ConfigError, NotATurnEnd)


async def add_hints(error: HarnessError, place: Place, session: str | None) -> None:
    """Add what to type next to the error of a command about this session, or about none in particular."""
    if isinstance(error, SessionNotFound) and session is not None:
        for hint in await _instead_of(session, place):
            error.add_note(hint)
    elif isinstance(error, SessionDamaged) and session is not None:
        error.add_note(f"all that is wrong: {place.typed('sessions', 'verify', session)}")


async def _instead_of(wanted: str, place: Place) -> list[str]:
    """What somebody may have meant who named a session that is not there, or why it is not."""
    try:
        async with place.sessions() as sessions:
            if await _was_there(wanted, sessions):
                return [f"it was there, and its ledger is gone: {place.typed('sessions', 'verify', wanted)}"]
            near = _near(wanted, [info.id for info in await sessions.list()])
        others = await _with_others(wanted, place)
    except HarnessError as error:
        return [str(error)]
    shown = [f"did you mean {' or '.join(map(repr, near))}?"] if near else []
    nobody = (
        [] if place.user or place.namespace else ["without --user or HARNESS_USER only nobody's sessions are looked at"]
    )
    return [*others, *shown, *nobody, f"which there are: {place.typed('sessions', 'list')}"]


async def _with_others(wanted: str, place: Place) -> list[str]:
    """Which other agents have a session of that id with the same user."""
    async with opened(place.workspace, place.agent, namespace=place.namespace) as made:
        found = await sessions_by_agent(made.config, RuntimeContext(user_id=place.user))
    agents = [agent for agent, names in found.items() if encode_name(wanted) in names and agent != place.agent]
    return [f"agent {agent!r} has a session of that id: --agent {shlex.quote(agent)}" for agent in agents[:_MOST]]


async def _was_there(wanted: str, sessions: TenantSessions) -> bool:
    """Whether there is word of a session without a ledger: what checks it finds the ledger missing."""
    try:
        await sessions.verify(wanted)
    except SessionNotFound:
        return False
    return True


def _near(wanted: str, known: list[str]) -> list[str]:
    """Ids like this one: those that it begins, then those that differ by a few letters."""
    begun = [each for each in known if each.startswith(wanted)]
    return list(dict.fromkeys([*begun, *difflib.get_close_matches(wanted, known, _MOST)]))[:_MOST]
