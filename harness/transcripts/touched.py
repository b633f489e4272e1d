"""Which files a tool call names: file tools by their argument, patches by their headers."""

from __future__ import annotations

import re
from typing import Any

from harness.transcripts.blocks import BlockDict

__all__ = ["files_touched"]

_ARGUMENTS = ("file_path", "filePath", "notebook_path", "absolute_path", "path", "target_file", "file", "filename")
_TOOL = re.compile(r"read|write|edit|patch|create|view|replace|delete|move|notebook|file", re.IGNORECASE)
_SEARCH = re.compile(r"grep|glob|search|list|ls$|find", re.IGNORECASE)
_PATCH = re.compile(r"^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+)$", re.MULTILINE)
_PATCH_BEGIN = "*** Begin Patch"


def files_touched(call: BlockDict) -> tuple[str, ...]:
    """The files a `toolUse` block reads or changes, as the call names them; shell commands are not searched."""
    given = call.get("input")
    if not isinstance(given, dict):
        return ()
    found = [name for text in _strings(given) if _PATCH_BEGIN in text for name in _PATCH.findall(text)]
    tool = str(call.get("name", ""))
    if _TOOL.search(tool) and not _SEARCH.search(tool):
        found += [name for key in _ARGUMENTS if isinstance(name := given.get(key), str) and name.strip()]
    return tuple(dict.fromkeys(name.strip() for name in found))


def _strings(given: dict[str, Any]) -> list[str]:
    """The texts of the arguments; a patch may stand in a list that is a command."""
    texts = [value for value in given.values() if isinstance(value, str)]
    lists = [value for value in given.values() if isinstance(value, list)]
    return texts + [member for value in lists for member in value if isinstance(member, str)]
