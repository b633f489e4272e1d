"""From a session to files: read, redact, render, write."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import ConfigError, FileExists
from harness.filesystem import disk
from harness.sessions.lines.headers import read_first_line
from harness.sessions.lines.layout import LEDGER_SUFFIX, Owner, SessionFiles
from harness.sessions.moving.exporting import export_session
from harness.text import read_json
from harness.transcripts.export import bundle, claude, html, huggingface, markdown, penguin
from harness.transcripts.export.base import Target, file_digest, safe_name
from harness.transcripts.export.redacting import Redaction, RedactionReport, redact_transcript
from harness.transcripts.formats.ledger import LedgerFormat
from harness.transcripts.reader import Transcript, read
from harness.transcripts.source import is_folder
from harness.transcripts.telling import Tell

__all__ = ["TARGETS", "Exported", "WrittenFile", "convert", "export"]

TARGETS: Mapping[str, Target] = {
    target.name: target
    for target in (
        html.TARGET,
        markdown.TARGET,
        huggingface.TARGET,
        huggingface.ROW_TARGET,
        bundle.TARGET,
        claude.TARGET,
        penguin.TARGET,
        penguin.ENVELOPES_TARGET,
    )
}
"""What a session can be written as, by name."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that an export wrote."""

    path: Path
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export did.

    left_out   what the target has no place for, counted
    redaction  what was taken out; None where nothing was asked to be
    """

    target: str
    session_id: str
    out: Path
    files: tuple[WrittenFile, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)
    redaction: RedactionReport | None = None

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        made = {
            "target": self.target,
            "sessionId": self.session_id,
            "out": str(self.out),
            "files": [{"path": str(one.path), "bytes": one.bytes, "sha256": one.sha256} for one in self.files],
            "leftOut": dict(self.left_out),
        }
        return {**made, "redaction": self.redaction.to_dict()} if self.redaction is not None else made


def convert(
    source: str | os.PathLike[str],
    target: str,
    out: str | os.PathLike[str] | None = None,
    session_id: str | None = None,
    *,
    redaction: Redaction | None = None,
    overwrite: bool = False,
    tell: Tell | None = None,
) -> Exported:
    """Read a session and write it as `target`; see `export`, and `read` for `tell`.

    In a loop use `in_worker(convert, ...)`.

    Raises what `read` and `export` raise.
    """
    _target(target)  # a name that is none is said before a long file is read
    return export(read(source, session_id, tell=tell), target, out, redaction=redaction, overwrite=overwrite)


def export(
    transcript: Transcript,
    target: str,
    out: str | os.PathLike[str] | None = None,
    *,
    redaction: Redaction | None = None,
    overwrite: bool = False,
) -> Exported:
    """Write a session that was read without a `cap` as one of `TARGETS`: a file, or a folder of them.

    `out` is where; without it, the session's id in the working directory. The bundle of a session of this
    library is one file with its ledger, byte for byte, unless something is to be redacted. Blocking.

    Raises `ConfigError` for an unknown target and for a place that is the session itself, `FileExists` where
    something is in the way and `overwrite` was not said, `PersistenceError` where the disk refuses.
    """
    known = _target(target)
    owner = _owner(transcript) if known is bundle.TARGET and redaction is None else None
    if owner is not None:
        return _own_bundle(transcript, owner, Path(out) if out is not None else None)
    place = Path(out) if out is not None else Path(f"{safe_name(transcript.session_id)}{known.suffix}")
    _check_free(place, wants_folder=known.is_folder, overwrite=overwrite)
    report = None
    if redaction is not None:
        transcript, report = redact_transcript(transcript, redaction)
    rendered = known.render(transcript, report)
    places = {place / name if name else place: data for name, data in rendered.files.items()}
    _spare_source(transcript.source, place, *places)
    _check_plain(*places)
    files = tuple(_write(path, data, overwrite) for path, data in places.items())
    return Exported(target, transcript.session_id, place, files, dict(rendered.left_out), report)


def _owner(transcript: Transcript) -> Owner | None:
    """Whose session of this library it is; None for any other, and for a ledger that does not say."""
    if transcript.format != LedgerFormat.name:
        return None
    header = read_json(read_first_line(transcript.source))
    match header:
        case {"session": str(session), "agent": str(agent), "tenant": list(tenant)}:
            return Owner(session, agent, tuple(str(part) for part in tenant))
        case _:
            return None


def _own_bundle(transcript: Transcript, owner: Owner, out: Path | None) -> Exported:
    """A session of this library goes as it is: its ledger byte for byte, in one file that its import verifies."""
    source = transcript.source
    place = out or Path(f"{safe_name(transcript.session_id)}.zip")
    _spare_source(source, place)
    disk.make_folder(place.parent)
    made = export_session(SessionFiles(source.parent, source.name.removesuffix(LEDGER_SUFFIX)), owner, place)
    written = WrittenFile(place, **file_digest(place))
    missing = {"missing files": len(made.missing)} if made.missing else {}
    return Exported(bundle.TARGET.name, transcript.session_id, place, (written,), missing)


def _target(name: str) -> Target:
    if name not in TARGETS:
        raise ConfigError(f"{name!r} is nothing a session can be written as; choose one of {', '.join(TARGETS)}")
    return TARGETS[name]


def _check_free(place: Path, *, wants_folder: bool, overwrite: bool) -> None:
    """Nothing is lost by an export: what is there already is in the way."""
    is_there = disk.mark(place) is not None
    is_a_folder = is_there and is_folder(place)
    if is_there and is_a_folder != wants_folder:
        wanted = "a folder" if wants_folder else "a file"
        raise FileExists(f"{place} is in the way: {wanted} is to be written there; name another place")
    is_full = bool(disk.list_folder(place)) if is_a_folder else is_there
    if is_full and not overwrite:
        raise FileExists(f"{place} is there already; name another place, or say that it may be overwritten")


def _check_plain(*places: Path) -> None:
    """Only files give way to files: a device, a pipe or a link would be gone, and what it led to not written."""
    for place in places:
        if not disk.is_file_or_nothing(place):
            raise FileExists(f"{place} is no plain file and stays as it is; name another place")


def _spare_source(source: Path, *places: Path) -> None:
    """What is being read is not overwritten, not even where that was allowed: the copy holds less than it."""
    if any(place.resolve() == source.resolve() for place in places):
        raise ConfigError(f"{source} is the session that is read and stays as it is; name another place")


def _write(path: Path, data: bytes, overwrite: bool) -> WrittenFile:
    disk.make_folder(path.parent)
    if overwrite:
        disk.replace(path, data, sync=False)
    elif not disk.create(path, data, sync=False):
        raise FileExists(f"{path} appeared while it was about to be written; name another place")
    return WrittenFile(path, len(data), hashlib.sha256(data).hexdigest())
