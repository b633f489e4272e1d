"""What a Codex tool answered: text, pictures, and how the command ended."""

from __future__ import annotations

import re

from harness.transcripts import blocks
from harness.transcripts.blocks import BlockDict

__all__ = ["exit_code", "output_blocks"]

_EXIT = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)", re.MULTILINE)
_EXITED, _EXIT_CODE = "Process exited with code", "Exit code:"
_METADATA = '"metadata"'


def output_blocks(output: object, *, whole: bool) -> list[BlockDict]:
    """What a tool answered, as blocks: text as it stands, pictures by their bytes."""
    if isinstance(output, dict) and isinstance(output.get("text"), str):
        return [blocks.text(output["text"])]
    if not isinstance(output, list):
        return [blocks.text(output if isinstance(output, str) else blocks.json_text(output))]
    return [_part(part, whole=whole) for part in output]


def exit_code(output: object) -> int | None:
    """The exit code that an output names, as JSON or in a line of its own."""
    if not isinstance(output, str):
        return None
    parsed = blocks.parsed(output) if output.startswith("{") and _METADATA in output else None
    metadata = parsed.get("metadata") if isinstance(parsed, dict) else None
    code = metadata.get("exit_code") if isinstance(metadata, dict) else None
    if isinstance(code, int) and not isinstance(code, bool):
        return code
    if _EXITED not in output and _EXIT_CODE not in output:  # much faster through a long text than the pattern
        return None
    found = _EXIT.search(output)
    return int(found[1]) if found else None


def _part(part: object, *, whole: bool) -> BlockDict:
    if isinstance(part, dict) and part.get("type") == "input_image":
        return blocks.image_from_url(part.get("image_url"), whole=whole) or {"type": "unreadable_image"}
    found = part.get("text") if isinstance(part, dict) else None
    return blocks.text(found if isinstance(found, str) else blocks.json_text(part))
