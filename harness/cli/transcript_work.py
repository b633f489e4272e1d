"""What `harness transcripts …` does: functions that a worker process can run, and the import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import SessionDamaged, TranscriptRefused
from harness.filesystem import pool
from harness.filesystem.namespaces import agent_root, tenant_root, write_tenant_file
from harness.sessions.checking.verify import verify_session
from harness.sessions.lines.layout import Owner
from harness.sessions.tree.session_tree import SessionTree
from harness.transcripts import Candidate, Page, Transcript, candidates, join, page, read, stitched, summary
from harness.transcripts.discovery import usual_listing
from harness.transcripts.export import Redaction, check_bundle, is_bundle, redact_transcript
from harness.transcripts.formats import format_named
from harness.transcripts.importing import Imported, import_transcript
from harness.transcripts.lines import TranscriptWarning
from harness.transcripts.listing import Listing, distinct, listing
from harness.transcripts.opening import open_session
from harness.transcripts.refusing import path_text
from harness.transcripts.source import is_folder
from harness.transcripts.telling import Tell, part_of

__all__ = ["Shown", "import_into", "last_turns", "sessions_in", "source_of", "stats_rows"]


def sessions_in(
    places: Sequence[Path], formats: Sequence[str] = (), cwd: str | None = None, *, subagents: bool = False
) -> Listing:
    """The sessions in these files and folders, the newest first; without any, those in the usual places.

    Raises `FileMissing`, `TranscriptRefused`, and `ConfigError` for a format that does not exist.
    """
    if not places:
        return usual_listing(formats=formats or None, cwd=cwd, subagents=subagents)
    for name in formats:
        format_named(name)  # raises for one that does not exist
    looked = [listing(place) for place in places]
    found = distinct(one for each in looked for one in each.sessions)
    kept = [
        one
        for one in found
        if (not formats or one.format in formats)
        and (subagents or one.subagent_of is None)
        and (cwd is None or one.cwd == cwd)
    ]
    newest = sorted(kept, key=lambda one: (one.last_ts or one.modified, one.session_id), reverse=True)
    closed = dict.fromkeys(name for each in looked for name in each.closed)
    return Listing(newest, sum(each.left_out for each in looked), tuple(closed))


@dataclass(frozen=True, slots=True)
class Shown:
    """The end of a session: `turns` stitched, whether there are earlier ones, and what is wrong with what was read."""

    session: Candidate
    turns: list[dict[str, Any]]
    is_cut: bool
    warnings: tuple[TranscriptWarning, ...] = ()


def last_turns(source: Path, session_id: str | None, last: int) -> Shown:
    """The last turns of a session, read from its end. Raises what `page` raises."""
    found = open_session(source, session_id)
    path, named = found.path, found.opened.session_id
    here = page(path, named, where="tail")
    pages: list[Page] = [here]
    count = len(stitched(here.turns))
    while here.before is not None and count <= last:
        here = page(path, named, where="before", cursor=here.before, window=1024 * 1024)
        pages.insert(0, here)
        count += len(here.turns)
    turns = stitched(join(pages))
    session = next((one for one in candidates(path) if one.session_id == named), None)
    if session is None:
        raise TranscriptRefused("no_such_session", f"{source} changed while it was read; try again")
    warnings = tuple(found for each in pages for found in each.warnings)
    return Shown(session, turns[-last:], here.before is not None or len(turns) > last, warnings)


def stats_rows(source: Path, session_id: str | None = None, tell: Tell | None = None) -> list[dict[str, Any]]:
    """The census of each session in a file or folder, or of the one named.

    `file` says where it is, `warnings` what is wrong with it.
    """
    found = [one for one in candidates(source) if session_id in (None, one.session_id)]
    if not found:
        summary(source, session_id)  # it knows why there is none
    counts: dict[Path, int] = {}
    for one in found:
        counts[one.path] = counts.get(one.path, 0) + 1
    rows, before, total = [], 0, sum(one.size for one in found)
    for one in found:
        name = f"{path_text(one.path)}#{one.session_id}" if counts[one.path] > 1 else path_text(one.path)
        found_there = summary(one.path, one.session_id, tell=tell and part_of(tell, before, total))
        rows.append({"file": name, "session_id": one.session_id, **found_there.stats, "warnings": found_there.warnings})
        before += one.size
    return rows


def source_of(
    source: Path, session_id: str | None, redaction: Redaction | None, tell: Tell | None = None
) -> Transcript:
    """A session to import, redacted if that was asked. Raises what `read` raises, and `SessionDamaged`.

    A bundle whose files are not those its manifest names is refused.
    """
    if is_folder(source) and is_bundle(source) and (found := check_bundle(source)):
        raise SessionDamaged(f"the bundle {source} is damaged: {found[0]}; get it again from where it was exported")
    transcript = read(source, session_id, tell=tell)
    return redact_transcript(transcript, redaction)[0] if redaction is not None else transcript


async def import_into(
    transcript: Transcript,
    workspace: Path,
    agent: str,
    namespace: tuple[str, ...],
    session: str,
    tell: Tell | None = None,
) -> Imported:
    """Import a transcript as a new session of this namespace with this agent, and prove what was written.

    Raises what `import_transcript` raises, and `SessionDamaged` where the new ledger does not verify.
    """
    root = tenant_root(workspace, namespace)
    await pool.run(write_tenant_file, root, namespace)
    tree = SessionTree(agent_root(root, agent) / "sessions", session, agent=agent, namespace=namespace)
    imported = await import_transcript(transcript, tree, tell)
    report = await pool.run(verify_session, tree.files, Owner(session, agent, namespace))
    if not report.ok:
        raise SessionDamaged(f"the new session {session!r} does not verify: {report.findings[0].text}; check the disk")
    return imported
