"""What every target of an export has in common."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from harness.errors import FileMissing, SessionDamaged
from harness.filesystem import disk
from harness.ids import encode_name
from harness.sessions.lines.blobs import read_blob
from harness.text import counted, dumps
from harness.transcripts.blocks import BlockDict, integer
from harness.transcripts.export.redacting import RedactionReport
from harness.transcripts.lines import TranscriptWarning
from harness.transcripts.reader import Transcript
from harness.transcripts.turns import Turn

__all__ = [
    "Rendered",
    "Target",
    "UniqueNames",
    "conversation",
    "file_digest",
    "findings_told",
    "json_lines",
    "media_of",
    "medium_label",
    "missing_media",
    "nothing_said",
    "safe_name",
    "spoken",
    "text_of",
    "unplaced_usage",
]

_PORTABLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,150}", re.ASCII)
_LONGEST = 1000
_MEDIA = frozenset({"image", "audio", "video", "file", "unreadable_image"})
_HELD = _MEDIA | {"text", "thinking", "toolUse", "toolResult"}


@dataclass(frozen=True, slots=True)
class Rendered:
    """A session in the form of a target: contents by relative path, and what the form has no place for.

    A target of one file gives its content under the empty path. `says_nothing`: beside what stands at the head of every
    session there is nothing in it, and who reads it would find no session.
    """

    files: Mapping[str, bytes]
    left_out: Mapping[str, int] = field(default_factory=dict)
    says_nothing: bool = False


def _nothing(_place: Path, _rendered: Rendered) -> Iterable[str]:
    return ()


class Target(NamedTuple):
    """A form in which sessions can be written.

    suffix     what names end with that it gives itself; no two targets give one session the same name
    render     makes it; blocking, and free of side effects
    holds      what it has a place for, of `losses.FEATURES` and of asides; the rest is counted as left out
    is_folder  it writes a folder of files
    earlier    what an earlier export of the session left in a folder, and would be read as part of the new one
    """

    name: str
    title: str
    suffix: str
    render: Callable[[Transcript, RedactionReport | None], Rendered]
    holds: frozenset[str] = frozenset()
    is_folder: bool = False
    earlier: Callable[[Path, Rendered], Iterable[str]] = _nothing


class UniqueNames:
    """Keeps names of strangers apart: the second of a kind gets a number behind it."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def of(self, name: str) -> str:
        """The name itself, or one like it that nobody has yet."""
        made, number = name, 1
        while made in self._taken:
            number += 1
            made = f"{name}#{number}"
        self._taken.add(made)
        return made


def conversation(turns: Iterable[Turn], left_out: Counter[str]) -> Iterator[Turn]:
    """The turns of the conversation itself; what sub-agents said, and branches that were left, are counted out."""
    for turn in turns:
        if turn.aside is None:
            yield turn
        else:
            left_out[turn.aside] += 1


def spoken(content: Iterable[BlockDict], left_out: Counter[str]) -> list[BlockDict]:
    """What a person or a model said. What their harness noted beside it (an error, a patch) is counted out.

    Where only text has a place it would become words that nobody spoke.
    """
    given = list(content)
    kept = [block for block in given if block["type"] in _HELD]
    left_out["foreign blocks"] += len(given) - len(kept)
    return kept


def nothing_said(turn: Turn, left_out: Counter[str]) -> None:
    """Count out a turn of which a target has a place for nothing, and the tokens that it cost."""
    left_out["empty"] += 1
    left_out["message usage"] += any(turn.message.get("usage", {}).values())


def findings_told(findings: Sequence[TranscriptWarning]) -> str:
    """How much was found while a file was read, and the first lines of it, each once."""
    lines = [*dict.fromkeys(found.line for found in findings)][:5]
    first = f"{'line' if len(lines) == 1 else 'lines'} {', '.join(map(str, lines))}"
    return f"{counted(len(findings), 'finding')} while the file was read, the first in {first}."


def text_of(content: Iterable[BlockDict], left_out: Counter[str]) -> str:
    """Content where only text has a place: media become a line that says what they were."""
    parts = []
    for block in content:
        if isinstance(block.get("text"), str):
            parts.append(block["text"])
        elif block.get("type") in _MEDIA:
            left_out["media"] += 1
            parts.append(medium_label(block))
        else:
            left_out["foreign blocks"] += 1
            parts.append(dumps({name: value for name, value in block.items() if name != "opaque"}).decode())
    return "\n".join(part for part in parts if part)


def medium_label(block: BlockDict) -> str:
    """A medium in words."""
    media = block.get("media")
    if isinstance(media, dict):
        return f"[{block['type']}: {media.get('mediaType', 'unknown')}, {integer(media.get('bytes')):,} bytes]"
    return f"[{block.get('type')}: {block.get('url', 'not readable')}]"


def unplaced_usage(transcript: Transcript) -> dict[str, int]:
    """Tokens that no message tells: targets that count by message have no place for them."""
    told: Counter[str] = Counter()
    for turn in transcript.turns:
        told.update(turn.message.get("usage", {}))
    known = transcript.tokens.usage if transcript.tokens.is_known else {}
    return {"session usage": 1} if any(told[name] != count for name, count in known.items()) else {}


def media_of(transcript: Transcript) -> dict[str, bytes]:
    """The bytes of a session's media by their SHA-256, as far as they are there."""
    found: dict[str, bytes] = {}
    for turn in transcript.turns:
        for media in _media_in(turn.blocks):
            name, data = str(media.get("sha256")), media.get("data")
            if isinstance(data, bytes):
                found[name] = data
            elif "sha256" in media and name not in found:
                found.update(_stored(transcript, name))
    return found


def missing_media(transcript: Transcript, there: Mapping[str, bytes]) -> int:
    """How many media of a session have no bytes that are there."""
    named = (media for turn in transcript.turns for media in _media_in(turn.blocks))
    return sum(str(media.get("sha256")) not in there for media in named)


def _stored(transcript: Transcript, name: str) -> dict[str, bytes]:
    """A medium that lies beside the session's file; a viewer of the export is told that one is missing."""
    try:
        return {name: read_blob(transcript.source.parent / "files", name)}
    except (FileMissing, SessionDamaged):
        return {}


def _media_in(content: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for block in content:
        if isinstance(block, dict):
            if isinstance(block.get("media"), dict):
                yield block["media"]
            if isinstance(block.get("content"), list):
                yield from _media_in(block["content"])


def json_lines(records: Iterable[Mapping[str, Any]]) -> bytes:
    """Records as JSON, a line each."""
    return b"".join(dumps(record) + b"\n" for record in records)


def file_digest(path: Path) -> dict[str, Any]:
    """Length and SHA-256 of a file, read in blocks: it may be a large database."""
    seen, size = hashlib.sha256(), 0
    for block in disk.read_blocks(path):
        seen.update(block)
        size += len(block)
    return {"bytes": size, "sha256": seen.hexdigest()}


def safe_name(session_id: str) -> str:
    """A file name for a session of strangers: its id where that can be one."""
    if _PORTABLE.fullmatch(session_id):
        return session_id
    return encode_name(session_id[:_LONGEST].replace("\0", "\ufffd").strip() or "session", "session id")
