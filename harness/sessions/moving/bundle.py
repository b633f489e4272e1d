"""What a bundle holds: one session in one file, to take to another machine.

session.log.jsonl    the ledger, byte for byte
session.jsonl        the context file
session.head.json    the anchor
files/<2 hex>/<sha256>   every content that the ledger names
manifest.json        whose session it is, and length and SHA-256 of each of these
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.errors import SessionDamaged
from harness.filesystem.archives import ArchiveReader, Member
from harness.sessions.lines.formats import check_format
from harness.sessions.lines.layout import Owner, SessionFiles
from harness.text import dumps, read_json

__all__ = [
    "ANCHOR",
    "CONTENTS",
    "CONTEXT",
    "LEDGER",
    "MANIFEST",
    "MAX_BYTES",
    "Bundle",
    "encode_manifest",
    "place_of",
    "read_manifest",
]

MANIFEST = "manifest.json"
LEDGER = "session.log.jsonl"
CONTEXT = "session.jsonl"
ANCHOR = "session.head.json"
CONTENTS = "files/"
"""How the names of contents begin."""
MAX_BYTES = 1024**3
"""Bytes that a bundle may unpack to, unless somebody says otherwise."""

_FORMAT = 1
_MAX_MANIFEST = 64 * 1024 * 1024
_CONTENT = re.compile(r"files/([0-9a-f]{2})/(\1[0-9a-f]{62})")


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle on disk, and what it says of itself. `missing` are contents that the ledger names and nobody has."""

    path: Path
    owner: Owner
    ledger_id: str
    members: tuple[Member, ...]
    missing: tuple[str, ...] = ()

    @property
    def session_id(self) -> str:
        """The session in it."""
        return self.owner.session

    @property
    def bytes(self) -> int:
        """What it unpacks to."""
        return sum(member.bytes for member in self.members)


def encode_manifest(owner: Owner, ledger_id: str, members: Sequence[Member]) -> bytes:
    """The bytes of `manifest.json`."""
    files = [asdict(member) for member in members]
    return (
        dumps({"format": _FORMAT, "type": "session", **owner.fields(), "ledgerId": ledger_id, "files": files}) + b"\n"
    )


def read_manifest(archive: ArchiveReader, path: Path, max_bytes: int) -> Bundle:
    """What a bundle says of itself, checked against what is in it. Raises `SessionDamaged`, `NewerFormat`."""
    if MANIFEST not in archive.sizes:
        raise SessionDamaged(f"{path} has no {MANIFEST}, so it is no bundle of a session; give a file that export made")
    try:
        bundle = _parsed(read_json(archive.read(MANIFEST, _MAX_MANIFEST)), path)
    except (ValueError, KeyError, TypeError) as error:
        raise SessionDamaged(f"{MANIFEST} in {path} cannot be read ({error!r}); export the session again") from error
    _check_names(archive, bundle)
    if bundle.bytes > max_bytes:
        raise SessionDamaged(
            f"{path} unpacks to {bundle.bytes} bytes, allowed are {max_bytes}; allow more, or refuse it"
        )
    return bundle


def place_of(name: str, files: SessionFiles) -> Path:
    """Where a member goes. Raises `SessionDamaged` for a name that is none of ours."""
    known: Mapping[str, Path] = {LEDGER: files.ledger, CONTEXT: files.context, ANCHOR: files.anchor}
    if name in known:
        return known[name]
    if content := _CONTENT.fullmatch(name):
        return files.blobs / content[1] / content[2]
    raise SessionDamaged(f"a bundle cannot hold {name[:200]!r}; export the session again")


def _parsed(data: Any, path: Path) -> Bundle:
    if data["type"] != "session":
        raise SessionDamaged(f"{path} is a bundle of type {data['type']!r}, not of a session; give one of a session")
    check_format({"format": data["format"]}, path, _FORMAT)
    owner = Owner(_text(data["session"]), _text(data["agent"]), tuple(_text(part) for part in data["tenant"]))
    members = tuple(_member(item) for item in data["files"])
    return Bundle(path, owner, _text(data["ledgerId"]), members)


def _member(item: Any) -> Member:
    size = item["bytes"]
    if type(size) is not int or size < 0:
        raise ValueError(f"{size!r} is no length")
    return Member(_text(item["path"]), size, _text(item["sha256"]))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _check_names(archive: ArchiveReader, bundle: Bundle) -> None:
    listed = [member.path for member in bundle.members]
    if sorted([*listed, MANIFEST]) != sorted(archive.sizes):
        raise SessionDamaged(
            f"{bundle.path} does not hold the files that its {MANIFEST} lists; export the session again"
        )
    if LEDGER not in listed:
        raise SessionDamaged(f"{bundle.path} holds no ledger; export the session again")
    nowhere = SessionFiles(Path(), "session")
    for name in listed:
        place_of(name, nowhere)
