"""From a session to files: read, redact, render, write."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import ConfigError, TranscriptRefused
from harness.sessions.lines.headers import read_first_line
from harness.sessions.lines.layout import LEDGER_SUFFIX, Owner, SessionFiles
from harness.sessions.moving.exporting import export_session
from harness.text import read_json
from harness.transcripts.export import bundle, claude, html, huggingface, markdown, penguin
from harness.transcripts.export.base import Target, file_digest, safe_name
from harness.transcripts.export.losses import losses
from harness.transcripts.export.placing import WrittenFile, check_free, check_plain, in_its_place, put, spare_source
from harness.transcripts.export.redacting import Redaction, RedactionReport, redact_transcript
from harness.transcripts.formats.ledger import LedgerFormat
from harness.transcripts.lines import TranscriptWarning
from harness.transcripts.reader import Transcript, read
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
class Exported:
    """What an export did.

    left_out   what the target has no place for, counted
    redaction  what was taken out; None where nothing was asked to be
    warnings   what was wrong with the session that was read
    """

    target: str
    session_id: str
    out: Path
    files: tuple[WrittenFile, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)
    redaction: RedactionReport | None = None
    warnings: tuple[TranscriptWarning, ...] = ()

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
    something is in the way and `overwrite` was not said, `TranscriptRefused` where the target has a place for nothing
    that was said, `PersistenceError` where the disk refuses.
    """
    known = _target(target)
    owner = _owner(transcript) if known is bundle.TARGET and redaction is None else None
    if owner is not None:
        return _own_bundle(transcript, owner, Path(out) if out is not None else None, overwrite=overwrite)
    report = None
    if redaction is not None:  # before anything is named for the session
        transcript, report = redact_transcript(transcript, redaction)
    place = Path(out) if out is not None else Path(f"{safe_name(transcript.session_id)}{known.suffix}")
    check_free(place, wants_folder=known.is_folder, overwrite=overwrite)
    rendered = known.render(transcript, report)
    left_out = Counter(losses(transcript, known.holds)) + Counter(rendered.left_out)
    if rendered.says_nothing:
        raise _nothing_said(transcript, known, left_out)
    places = {place / name if name else place: data for name, data in rendered.files.items()}
    spare_source(transcript, *places)
    check_plain(*places)
    gone = [place / name for name in known.earlier(place, rendered)] if overwrite else []
    spare_source(transcript, *gone)
    files = put(place if known.is_folder else place.parent, places, gone, overwrite=overwrite)
    return Exported(target, transcript.session_id, place, files, dict(left_out), report, transcript.warnings)


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


def _own_bundle(transcript: Transcript, owner: Owner, out: Path | None, *, overwrite: bool) -> Exported:
    """A session of this library goes as it is: its ledger byte for byte, in one file that its import verifies."""
    source = transcript.source
    place = out or Path(f"{safe_name(transcript.session_id)}.zip")
    spare_source(transcript, place)
    with in_its_place(place, overwrite=overwrite) as staged:
        made = export_session(SessionFiles(source.parent, source.name.removesuffix(LEDGER_SUFFIX)), owner, staged)
    written = WrittenFile(place, **file_digest(place))
    missing = {"missing files": len(made.missing)} if made.missing else {}
    return Exported(bundle.TARGET.name, transcript.session_id, place, (written,), missing, None, transcript.warnings)


def _nothing_said(transcript: Transcript, target: Target, left_out: Mapping[str, int]) -> TranscriptRefused:
    told = [f"{count:,} {name}" for name, count in left_out.items() if name != "findings"]
    counts = ", ".join(told) or "no message in it"
    place = f"session {transcript.session_id!r} in {transcript.file_name}"
    text = f"{place}: {target.title} has a place for nothing of what is in it ({counts}); nothing was written"
    return TranscriptRefused("no_transcript", f"{text}; write it as html or bundle, which leave none of that out")


def _target(name: str) -> Target:
    if name not in TARGETS:
        raise ConfigError(f"{name!r} is nothing a session can be written as; choose one of {', '.join(TARGETS)}")
    return TARGETS[name]
