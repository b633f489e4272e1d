"""Our own bundle of a session of any format: the normal form, its media, and a manifest with checksums.

    manifest.json           what it is, where it came from (with the digest of the source), what it holds
    transcript.jsonl        a header line, then a turn a line, in the normal form
    files/<2 hex>/<sha256>  the bytes of the media

A session of this library travels better with its own ledger, byte for byte: `harness sessions export`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from harness.errors import ConfigError, FileMissing, HarnessError
from harness.filesystem import disk
from harness.text import read_json
from harness.transcripts.export.base import Rendered, Target, file_digest, json_lines, media_of, missing_media
from harness.transcripts.export.losses import FEATURES
from harness.transcripts.export.redacting import RedactionReport
from harness.transcripts.formats.bundle import COUNTED, HEADER, TRANSCRIPT
from harness.transcripts.reader import Transcript
from harness.transcripts.turns import Turn

__all__ = ["MANIFEST", "TARGET", "check_bundle", "is_bundle", "render"]

MANIFEST = "manifest.json"
_SCHEMA = "harness-transcript/1"
_MEDIUM = re.compile(r"files/[0-9a-f]{2}/[0-9a-f]{64}")


def render(transcript: Transcript, redaction: RedactionReport | None) -> Rendered:
    """See the module."""
    media = media_of(transcript)
    files = {f"files/{name[:2]}/{name}": data for name, data in media.items()}
    files[TRANSCRIPT] = json_lines(_lines(transcript, is_redacted=redaction is not None))
    files[MANIFEST] = orjson.dumps(_manifest(transcript, redaction, files), option=orjson.OPT_INDENT_2) + b"\n"
    missing = missing_media(transcript, media)
    hidden = len(transcript.head.subagents) if redaction is not None else 0
    return Rendered(files, {name: count for name, count in (("media", missing), ("sub-agents", hidden)) if count})


def _earlier(folder: Path, _rendered: Rendered) -> list[str]:
    """The media that a bundle names which is in the way; anything else beside it is somebody else's."""
    manifest = _manifest_in(folder) or {}
    listed = manifest.get("files")
    return [name for name in listed if _MEDIUM.fullmatch(name)] if isinstance(listed, dict) else []


TARGET = Target(
    "bundle",
    "a bundle of this library",
    "",
    render,
    FEATURES | {"sidechain", "abandoned"},
    is_folder=True,
    earlier=_earlier,
)


def check_bundle(folder: Path) -> list[str]:
    """What is wrong with a bundle, a sentence each; empty where every file is what the manifest says.

    Raises `ConfigError` where there is no manifest of a bundle.
    """
    listed = _listed(folder)
    there = {TRANSCRIPT, *listed}
    for below in disk.list_folder(folder / "files"):
        there |= {f"files/{below.name}/{item.name}" for item in disk.list_folder(folder / "files" / below.name)}
    found = [_checked(folder, name, listed.get(name)) for name in sorted(there)]
    return [finding for finding in found if finding]


def is_bundle(folder: Path) -> bool:
    """Whether a folder says that it is a bundle; what it holds may still be damaged."""
    return _manifest_in(folder) is not None


def _checked(folder: Path, name: str, wanted: object) -> str:
    if not isinstance(wanted, dict):
        return f"{name} is not in the manifest"
    if name.startswith("/") or ".." in name.split("/"):
        return f"{name} leads out of the bundle"
    try:
        data = disk.read(folder / name)
    except HarnessError:
        return f"{name} is missing"
    return "" if _mark(data) == wanted else f"{name} is not what was written: its bytes have changed"


def _listed(folder: Path) -> dict[str, Any]:
    manifest = _manifest_in(folder)
    files = manifest.get("files") if manifest is not None else None
    if not isinstance(files, dict):
        raise ConfigError(f"{folder} has no manifest of a bundle; give the folder that an export wrote")
    return files


def _manifest_in(folder: Path) -> dict[str, Any] | None:
    try:
        manifest = read_json(disk.read(folder / MANIFEST))
    except (FileMissing, ValueError):
        return None
    return manifest if isinstance(manifest, dict) and manifest.get("schema") == _SCHEMA else None


def _lines(transcript: Transcript, *, is_redacted: bool) -> Iterator[dict[str, Any]]:
    """Sub-agents are named where nothing is to be taken out: what they are called is in their own files too."""
    head = transcript.head
    named = {
        "harness": head.harness,
        "format": transcript.format,
        "sessionId": transcript.session_id,
        "title": transcript.about.title or transcript.about.weak_title,
        "model": head.model,
        "models": list(head.models),
        "cwd": head.cwd,
        "branch": head.branch,
        "firstTs": head.first_ts,
        "lastTs": head.last_ts,
        "parent": head.parent,
        "forkedFrom": head.forked_from,
        "subagents": [] if is_redacted else [_without(agent.to_dict(), "source") for agent in head.subagents],
        "counts": {name: getattr(transcript.counts, field) for name, field in COUNTED.items()},
        "tokens": _tokens(transcript),
    }
    yield {"type": HEADER, "version": 1, **{name: value for name, value in named.items() if value}}
    for turn in transcript.turns:
        yield _turn(turn)


def _without(fields: Mapping[str, Any], gone: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != gone}


def _tokens(transcript: Transcript) -> dict[str, Any] | None:
    tokens = transcript.tokens
    return {"usage": dict(tokens.usage), "first": tokens.first, "naive": tokens.naive} if tokens.is_known else None


def _turn(turn: Turn) -> dict[str, Any]:
    named = {"at": turn.at, "aside": turn.aside, "line": turn.line or None, "key": turn.key}
    message = {**turn.message, "content": [_stored(block) for block in turn.blocks]}
    kept = {name: value for name, value in named.items() if value is not None}
    return {"type": "turn", "kind": turn.kind, **kept, "message": message}


def _stored(block: dict[str, Any]) -> dict[str, Any]:
    """A block whose media are named by their digest; the bytes lie in `files`."""
    made = dict(block)
    if isinstance(block.get("media"), dict):
        made["media"] = {name: value for name, value in block["media"].items() if name != "data"}
    if isinstance(block.get("content"), list):
        made["content"] = [_stored(item) if isinstance(item, dict) else item for item in block["content"]]
    return made


def _manifest(transcript: Transcript, redaction: RedactionReport | None, files: Mapping[str, bytes]) -> dict[str, Any]:
    head = {name: value for name, value in transcript.head.to_dict().items() if name not in ("subagents", "prompts")}
    named = {
        "schema": _SCHEMA,
        "session": {"id": transcript.session_id, "format": transcript.format, **head},
        "source": {"name": transcript.file_name, **file_digest(transcript.source)},
        "stats": transcript.stats(),
        "warnings": [{"kind": found.kind, "line": found.line, "text": found.text} for found in transcript.warnings],
        "redaction": redaction.told() if redaction is not None else None,
        "files": {name: _mark(data) for name, data in sorted(files.items())},
    }
    return {name: value for name, value in named.items() if value is not None}


def _mark(data: bytes) -> dict[str, Any]:
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
