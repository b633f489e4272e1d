"""`files` of a line: the list of the contents beside the ledger that it names.

It is written where the line is built, by who knows what was moved or kept for it, so a reader need not know at which
places a line may name one. It has objects, `{"sha256":…}`, since that is how all of a ledger names contents: what
searches a line for that, as version 0.1.0 does, finds all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard

from harness.sessions.lines.entries import MAX_LINE, EntryDict
from harness.sessions.lines.references import LOOK, is_sum
from harness.sessions.lines.unlisted import unlisted_names
from harness.text import dumps

__all__ = ["FILES", "LISTED_BYTES", "listing", "names_in", "written_again"]

FILES = "files"
"""The field of that name is nobody else's."""
LISTED_BYTES = 78
"""How much longer a line is for each content that it lists."""


def listing(names: Iterable[str]) -> dict[str, Any]:
    """The field of a line that names these contents; no field where there are none."""
    found = [{"sha256": name} for name in sorted({*names})]
    return {FILES: found} if found else {}


def names_in(entry: Mapping[str, Any]) -> list[str]:
    """The SHA-256 of each content that a parsed line names; a line without `LOOK` names none."""
    files = entry.get(FILES)
    return [item["sha256"] for item in files] if _is_list(files) else [*unlisted_names(entry)]


def written_again(line: EntryDict) -> bytes:
    """The JSON of a line that is copied, with the list that it may lack, where there is room. Raises as `dumps`."""
    raw = dumps(line)
    if LOOK not in raw or not _is_ours(line):
        return raw
    again = dumps(line | listing([*names_in(line), *unlisted_names(line)]))
    # A list that is not whole would be believed.
    return again if len(again) <= MAX_LINE else dumps({key: value for key, value in line.items() if key != FILES})


def _is_ours(line: EntryDict) -> bool:
    """Whether an application has not put something of its own there, as it could in version 0.1.0."""
    return FILES not in line or _is_list(line[FILES])


def _is_list(files: Any) -> TypeGuard[list[dict[str, str]]]:
    if not isinstance(files, list) or not files:
        return False
    return all(isinstance(item, dict) and is_sum(item.get("sha256")) for item in files)
