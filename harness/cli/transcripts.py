"""`harness transcripts …`: sessions of every harness, listed, searched, shown, converted, imported."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from harness.cli.clock import told
from harness.cli.damage import damage_fields, say_warning, tell_damage
from harness.cli.guard import command, exit_code
from harness.cli.hints import saying, which_session
from harness.cli.options import DEFAULT_AGENT, DEFAULT_WORKSPACE, Agent, AsJson, Namespace, User, Workspace, has_words
from harness.cli.output import one_line, say, say_json, snake_keys
from harness.cli.place import owner_named
from harness.cli.progress import progress, share_of
from harness.cli.transcript_work import import_into, last_turns, sessions_in, source_of, stats_rows
from harness.cli.turn_lines import turn_lines
from harness.errors import FileExists, HarnessError, SessionExists
from harness.ids import new_session_id
from harness.text import counted
from harness.transcripts import Candidate, Found, find, in_worker
from harness.transcripts.export import TARGETS, Redaction
from harness.transcripts.export import convert as write_converted
from harness.transcripts.listing import Listing
from harness.transcripts.refusing import path_text
from harness.transcripts.telling import Tell, part_of
from harness.transcripts.worker import told_by_worker

__all__ = ["app", "convert", "import_session", "list_sessions", "search", "show", "stats"]

app = typer.Typer(help="Read the sessions of any harness; convert or import them.", no_args_is_help=True)

Places = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[PATH]…", help="Files, databases, folders. Without one: the usual places of all harnesses."
    ),
]
File = Annotated[Path, typer.Argument(metavar="FILE", help="A session file, a database, or a folder with one session.")]
Files = Annotated[list[Path], typer.Argument(metavar="FILE…", help="Session files, databases or folders.")]
SessionId = Annotated[str | None, typer.Option("--session", "-s", help="Which session, where a file holds several.")]
Formats = Annotated[list[str] | None, typer.Option("--format", help="Only this format; may be given again.")]
Folder = Annotated[str | None, typer.Option("--cwd", help="Only sessions that ran in this folder.")]
Subagents = Annotated[bool, typer.Option("--subagents", help="The sessions of sub-agents, too.")]
Limit = Annotated[int, typer.Option("--limit", min=1, help="How many at most.")]
Query = Annotated[
    str, typer.Argument(callback=has_words, help="Words as they stand there; letter case does not count.")
]
Last = Annotated[int, typer.Option("--last", min=1, help="How many turns, counted from the end.")]
Target = Annotated[str, typer.Option("--to", help=f"What to write: {', '.join(TARGETS)}.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Where to write. Default: the session's id, here.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite what is there.")]
Redact = Annotated[bool, typer.Option("--redact", help="Take out keys and tokens of well-known forms.")]
RedactKeys = Annotated[list[str] | None, typer.Option("--redact-key", help="Take out the values of this name, too.")]
RedactPatterns = Annotated[
    list[str] | None, typer.Option("--redact-pattern", help="Take out what this regular expression matches, too.")
]
NewId = Annotated[str | None, typer.Option("--as", help="The id of the new session; without it, a new one.")]


@app.command("list")
@command
async def list_sessions(
    places: Places = None,
    formats: Formats = None,
    cwd: Folder = None,
    subagents: Subagents = False,
    limit: Limit = 1_000,
    as_json: AsJson = False,
) -> None:
    """The sessions there are, newest first.

    Example: harness transcripts list ~/.claude --limit 20
    """
    with progress("looking"):
        looked = await in_worker(sessions_in, tuple(places or ()), tuple(formats or ()), cwd, subagents=subagents)
    found = looked.sessions
    _warn_of(looked)
    if as_json:
        say_json(
            {"sessions": [snake_keys(one.to_dict()) for one in found[:limit]], "total": len(found), **_left_out(looked)}
        )
        return
    for one in found[:limit]:
        title = one_line(one.title or one.prompt, 60)
        say(f"{one.format:<9} {told(one.last_ts or one.modified)}  {one_line(one.session_id, 60)}  {title}")
        say(f"          {one_line(path_text(one.path), 200)}")
    if not found:
        say("no sessions found; name files or folders to look at others than the usual places")


@app.command("search")
@command
async def search(
    query: Query,
    places: Places = None,
    formats: Formats = None,
    subagents: Subagents = False,
    limit: Limit = 100,
    as_json: AsJson = False,
) -> None:
    """The turns that hold the words, in all sessions.

    Example: harness transcripts search "connection refused" ~/.codex
    """
    hits: list[dict[str, Any]] = []
    covered, searched, failed = 0, 0, 0
    with progress("looking"):
        looked = await in_worker(sessions_in, tuple(places or ()), tuple(formats or ()), subagents=subagents)
    found = looked.sessions
    _warn_of(looked)
    sizes = [one.size for one in found]
    with share_of("searching", sum(sizes)) as tell:
        for number, one in enumerate(found):
            if len(hits) >= limit:
                break
            so_far = part_of(tell, sum(sizes[:number]), sum(sizes))
            result = await _found_in(one, query, limit - len(hits), so_far)
            searched, failed = searched + 1, failed + (result is None)
            if result is not None:
                covered += result.covered
                hits += [_hit(one, hit.to_dict()) for hit in result.hits[: limit - len(hits)]]
    if as_json:
        numbers = {"sessions": len(found), "searched": searched, "failed": failed, "covered_bytes": covered}
        say_json({"query": query, "hits": hits, **numbers, **_left_out(looked)})
        return
    for hit in hits:
        say(f"{hit['format']:<9} {one_line(hit['session_id'], 60)}  {told(hit.get('at'))}  {one_line(hit['snippet'])}")
    say(
        f"{counted(len(hits), 'hit')} in {searched - failed} of {counted(len(found), 'session')}, "
        f"{counted(covered, 'byte')} searched"
    )


async def _found_in(one: Candidate, query: str, limit: int, tell: Tell) -> Found | None:
    """The hits in one session; one that cannot be read is said, and the search goes on."""
    try:
        return await told_by_worker(tell, find, one.path, one.session_id, query, limit=limit)
    except HarnessError as error:
        say_warning(f"{path_text(one.path)} was not searched: {error}")
        return None


def _hit(one: Candidate, hit: dict[str, Any]) -> dict[str, Any]:
    return {"format": one.format, "session_id": one.session_id, "path": path_text(one.path), **hit}


@app.command("show")
@command
async def show(
    file: File,
    session: SessionId = None,
    last: Last = 1_000,
    as_json: AsJson = False,
) -> None:
    """What was said in a session, from its end.

    Example: harness transcripts show session.jsonl --last 5
    """
    with which_session(session), progress("reading"):
        shown = await in_worker(last_turns, file, session, last)
    tell_damage(shown.warnings)
    damage = damage_fields(shown.warnings)
    if as_json:
        say_json({**snake_keys(shown.session.to_dict()), "turns": shown.turns, "earlier": shown.is_cut, **damage})
        return
    one = shown.session
    say(f"{one.format}  {one_line(one.session_id, 80)}  {one_line(one.title, 100)}")
    say("… earlier turns are left out; --last shows more\n" if shown.is_cut else "")
    for turn in shown.turns:
        for line in turn_lines(turn):
            say(line)


@app.command("stats")
@command
async def stats(files: Files, session: SessionId = None, as_json: AsJson = False) -> None:
    """The census of each session: prompts, answers, calls, results, tokens, damage.

    Example: harness transcripts stats session.jsonl --json
    """
    rows: list[dict[str, Any]] = []
    failures: list[tuple[Path, HarnessError]] = []
    for number, file in enumerate(files, start=1):
        with share_of("counting" if len(files) == 1 else f"counting {number} of {len(files)}") as tell:
            try:
                rows += await told_by_worker(tell, stats_rows, file, session)
            except HarnessError as error:
                if len(files) == 1:
                    raise
                failures.append((file, error))
    damage = [row.pop("warnings") for row in rows]
    for row, found in zip(rows, damage, strict=True):
        tell_damage(found, row["file"] if len(rows) > 1 else "")
    if as_json:
        errors = [{"file": str(where), "error": str(why), "type": type(why).__name__} for where, why in failures]
        counted = [{**row, **damage_fields(found)} for row, found in zip(rows, damage, strict=True)]
        say_json({"sessions": counted, **({"errors": errors} if errors else {})})
    else:
        for row in rows:
            say(one_line(row["file"], 200))
            say("  " + "  ".join(f"{name}={one_line(str(value), 80)}" for name, value in row.items() if name != "file"))
    for file, failure in failures:
        say_warning(f"{file}: {failure}")
    if failures:
        raise typer.Exit(exit_code(failures[0][1]))


@app.command("convert")
@command
async def convert(
    file: File,
    target: Target = "html",
    out: Out = None,
    session: SessionId = None,
    force: Force = False,
    redact: Redact = False,
    redact_keys: RedactKeys = None,
    redact_patterns: RedactPatterns = None,
    as_json: AsJson = False,
) -> None:
    """Write a session as a page, a document, another harness's files, or a bundle.

    Example: harness transcripts convert session.jsonl --to markdown --redact
    """
    rules = _redaction(redact, redact_keys, redact_patterns)
    over = saying("over it: --force; elsewhere: --out PATH", FileExists)
    with share_of("converting") as tell, which_session(session), over:
        made = await told_by_worker(tell, write_converted, file, target, out, session, redaction=rules, overwrite=force)
    tell_damage(made.warnings)
    if as_json:
        say_json({**snake_keys(made.to_dict()), **damage_fields(made.warnings)})
        return
    for one in made.files:
        say(f"{one_line(str(one.path), 300)}  {one.bytes:,} bytes")
    for name, count in made.left_out.items():
        say(f"left out, for {made.target} has no place for it: {name} ({count})")
    if made.redaction is None:
        say("nothing was redacted; --redact takes out keys and tokens")
    else:
        say(f"redacted: {sum(made.redaction.hits.values())} places")


@app.command("import")
@command
async def import_session(
    file: File,
    session: SessionId = None,
    new_id: NewId = None,
    redact: Redact = False,
    redact_keys: RedactKeys = None,
    redact_patterns: RedactPatterns = None,
    workspace: Workspace = DEFAULT_WORKSPACE,
    agent: Agent = DEFAULT_AGENT,
    user: User = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> None:
    """Make a session of any harness one of this library's own, to go on with it.

    Example: harness transcripts import session.jsonl --as monday --user alice
    """
    user, parts = owner_named(user, namespace)
    rules = _redaction(redact, redact_keys, redact_patterns)
    with share_of("reading") as tell, which_session(session):
        transcript = await told_by_worker(tell, source_of, file, session, rules)
    with saying("another id: --as SESSION", SessionExists), share_of("importing") as logged:
        made = await import_into(
            transcript, workspace, agent, parts or ((user,) if user else ()), new_id or new_session_id(), logged
        )
    tell_damage(transcript.warnings)
    if as_json:
        say_json({**snake_keys(made.to_dict()), **damage_fields(transcript.warnings)})
        return
    said = f"{counted(made.messages, 'message')}, of them {counted(made.prompts, 'prompt')}"
    say(f"session {one_line(made.session_id, 80)}: {said}; the new ledger verifies")
    say("its lines have the time of the import; `transcripts show` tells when each message was said, if known")
    if made.open_calls:
        have = "has" if made.open_calls == 1 else "have"
        say(f"{counted(made.open_calls, 'call')} {have} no result; the next call on the session says so to the model")
    for name, count in made.left_out.items():
        say(f"left out: {name} ({count})")


def _redaction(redact: bool, keys: list[str] | None, patterns: list[str] | None) -> Redaction | None:
    """A key or a pattern asks for the usual rules, too."""
    if not (redact or keys or patterns):
        return None
    return Redaction(tuple(keys or ()), tuple(patterns or ()))


def _left_out(looked: Listing) -> dict[str, Any]:
    counted = {"files_left_out": looked.left_out, "passed_over": list(looked.closed)}
    return {name: value for name, value in counted.items() if value}


def _warn_of(looked: Listing) -> None:
    if looked.note is not None:
        say_warning(looked.note)
