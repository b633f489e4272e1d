"""Turns for people to look at: each result inside the call it answers, media by reference."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from harness.transcripts.blocks import BlockDict
from harness.transcripts.touched import files_touched
from harness.transcripts.turns import Turn

__all__ = ["stitched", "tag_of"]

_TAG = re.compile(r"\s*<([A-Za-z][\w-]{0,40})")
_HEADING = re.compile(r"\s*#+ (AGENTS\.md instructions)")


def stitched(turns: Iterable[Turn]) -> list[dict[str, Any]]:
    """One JSON object a turn; what stands behind an answer as its results stands in its calls here.

    A call has either `result` or `open: true`. A `media` without an address has a `ref` to ask for.
    """
    made: list[dict[str, Any]] = []
    for turn in turns:
        if turn.kind == "results" and made:
            _answer(made[-1], turn)
        else:
            made.append(_turn(turn))
    return made


def tag_of(turn: Turn) -> str | None:
    """What a harness calls a text of its own: the tag around it, or its role."""
    if turn.kind not in ("context", "meta"):
        return None
    found = _TAG.match(turn.text) or _HEADING.match(turn.text)
    return found[1] if found else str(turn.message.get("name") or turn.kind)


def _turn(turn: Turn) -> dict[str, Any]:
    message = turn.message
    named = {
        "key": turn.key,
        "kind": turn.kind,
        "role": turn.role,
        "at": turn.at,
        "line": turn.line or None,
        "final": turn.final or None,
        "aside": turn.aside,
        "tag": tag_of(turn),
        "id": message["id"],
        "model": message.get("model"),
        "provider": message.get("provider"),
        "usage": message.get("usage"),
        "stop": message.get("stop"),
        "content": [_block(block, f"{turn.key}.{n}") for n, block in enumerate(turn.blocks)],
    }
    return {name: value for name, value in named.items() if value is not None}


def _answer(made: dict[str, Any], turn: Turn) -> None:
    results = {block["id"]: (n, block) for n, block in enumerate(turn.blocks)}
    for block in made["content"]:
        if block["type"] == "toolUse" and block["id"] in results:
            number, found = results[block["id"]]
            block.pop("open", None)
            block["result"] = {
                name: value
                for name, value in _block(found, f"{turn.key}.{number}").items()
                if name not in ("type", "id")
            }


def _block(block: BlockDict, ref: str) -> BlockDict:
    made = {name: value for name, value in block.items() if name != "opaque"}
    if block["type"] == "toolUse":
        files = files_touched(block)
        made |= {"open": True, **({"files": list(files)} if files else {})}
    if isinstance(block.get("media"), dict):
        made["media"] = {name: value for name, value in block["media"].items() if name != "data"} | {"ref": ref}
    content = block.get("content")
    if block["type"] == "toolResult" and isinstance(content, list):
        made["content"] = [_block(member, f"{ref}.{n}") for n, member in enumerate(content)]
    return made
