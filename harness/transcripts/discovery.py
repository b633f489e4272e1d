"""The usual places where harnesses keep their sessions. Looked at, never changed; credentials never read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from harness.errors import HarnessError
from harness.transcripts.folders import Look
from harness.transcripts.formats import all_formats, format_named
from harness.transcripts.formats.base import Format, Where
from harness.transcripts.listing import Candidate, Listing, candidates_of, distinct
from harness.transcripts.refusing import refusing
from harness.transcripts.sniff import identify

__all__ = ["discover", "usual_listing"]


def discover(
    *,
    formats: Iterable[str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    home: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    subagents: bool = False,
) -> list[Candidate]:
    """The sessions in the usual places, the newest first; heads and tails of files are read, no more.

    `cwd` keeps those that ran in that folder. Sub-agents' sessions are left out unless asked for: they
    are no conversations with a person. `home` and `env` stand in for the process's own, as
    `CLAUDE_CONFIG_DIR`, `CODEX_HOME`, `PI_CODING_AGENT_DIR`, `OPENCLAW_STATE_DIR`, `XDG_DATA_HOME`,
    `HERMES_HOME`, `PENGUIN_HOME`, `VAK_HOME`, `GEMINI_CLI_HOME` and `HARNESS_WORKSPACE` name places.
    A folder that may not be listed is passed over: `usual_listing` names it.
    Blocks while it looks. Raises `ConfigError` for a format that does not exist.
    """
    return usual_listing(formats=formats, cwd=cwd, home=home, env=env, subagents=subagents).sessions


def usual_listing(
    *,
    formats: Iterable[str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    home: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    subagents: bool = False,
) -> Listing:
    """What `discover` finds, and the folders that it had to pass over. Raises what `discover` raises."""
    look = Look()
    where = Where(Path(home) if home is not None else Path.home(), os.environ if env is None else env, Path.cwd())
    chosen = all_formats() if formats is None else [format_named(name) for name in formats]
    found = distinct(one for known in chosen for path in _paths(look, known, where) for one in _tried(path, known))
    folder = os.path.abspath(cwd) if cwd is not None else None  # noqa: PTH100 - links stay as they were named
    kept = [
        one
        for one in found
        if (subagents or one.subagent_of is None) and (folder is None or one.cwd.rstrip("/") == folder)
    ]
    newest = sorted(kept, key=lambda one: (one.last_ts or one.modified, one.session_id), reverse=True)
    return Listing(newest, closed=tuple(dict.fromkeys(look.closed)))


def _paths(look: Look, known: Format, where: Where) -> Iterator[Path]:
    for place in known.places(where):
        yield from _below(look, place.root, tuple(place.pattern.split("/")))


def _below(look: Look, folder: Path, parts: tuple[str, ...]) -> Iterator[Path]:
    """The files below a folder that match a pattern, part by part; links are not followed."""
    for item in look.items(folder):
        path = folder / item.name
        if item.is_dir and parts[0] == "**":
            yield from _below(look, path, parts)
            yield from _below(look, path, parts[1:])
        elif item.is_dir and len(parts) > 1 and path.match(parts[0]):
            yield from _below(look, path, parts[1:])
        elif item.is_file and len(parts) == 1 and item.size and path.match(parts[0]):
            yield path


def _tried(path: Path, known: Format) -> list[Candidate]:
    if not known.holds(path):
        return []
    try:
        with refusing(path):
            found = identify(path)
            # What lies in one harness's place may have been written by another: it is listed as what it is.
            return candidates_of(path, found)
    except HarnessError:
        return []  # not a session, or gone since the folder was read
