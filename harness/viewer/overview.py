"""A whole session in figures: what its header says, where its turns are, what happened when.

Runs in a worker process: it reads everything once and gives back only what the pages need.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.sessions.prices import find_price
from harness.transcripts import read, stitched
from harness.viewer.shown import first_words

__all__ = ["overview"]

_MOST_WARNINGS = 200


def overview(source: Path, session_id: str) -> dict[str, Any]:
    """Head, census, warnings, outline and the points in time of one session.

    Raises what `read` raises.
    """
    transcript = read(source, session_id)
    turns = stitched(transcript.turns)
    cost = _cost(turns)
    return {
        "format": transcript.format,
        "sessionId": transcript.session_id,
        "size": transcript.size,
        "head": transcript.head.to_dict(),
        "stats": dict(transcript.stats()),
        "warnings": [
            {"kind": found.kind, "line": found.line, "text": found.text}
            for found in transcript.warnings[:_MOST_WARNINGS]
        ],
        "outline": {
            "keys": [turn["key"] for turn in turns],
            "prompts": [_prompt(turn) for turn in turns if turn["kind"] in ("prompt", "queued")],
        },
        "requests": [_request(turn) for turn in turns if turn.get("usage")],
        "moments": list(_moments(turns, transcript.turns)),
        **({} if cost is None else {"cost": cost}),
    }


def _prompt(turn: Mapping[str, Any]) -> dict[str, Any]:
    words = " ".join(str(block.get("text", "")) for block in turn["content"] if block.get("type") == "text")
    at = {"at": turn["at"]} if turn.get("at") else {}
    return {"key": turn["key"], "words": first_words(words), **at}


def _request(turn: Mapping[str, Any]) -> dict[str, Any]:
    return {name: turn[name] for name in ("key", "at", "model", "provider", "usage") if turn.get(name)}


def _moments(turns: Sequence[Mapping[str, Any]], messages: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """What began when; a call lasts until the message that brought its result."""
    answered = {block.get("id"): turn.at for turn in messages if turn.kind == "results" for block in turn.blocks}
    for turn in turns:
        if not turn.get("at") or turn.get("aside"):
            continue
        yield {"kind": turn["kind"], "at": turn["at"], "key": turn["key"]}
        for block in turn["content"]:
            until = answered.get(block.get("id")) if block.get("type") == "toolUse" else None
            if until:
                yield {
                    "kind": "tool",
                    "at": turn["at"],
                    "end": until,
                    "name": block.get("name", ""),
                    "key": turn["key"],
                }


def _cost(turns: Sequence[Mapping[str, Any]]) -> float | None:
    """US dollars of the requests whose model has a known price; None where none has."""
    spent = [
        (str(turn.get("provider", "")), str(turn.get("model", "")), turn["usage"])
        for turn in turns
        if turn.get("usage")
    ]
    known = [price for provider, model, used in spent if (price := find_price(provider, model, used)) is not None]
    return float(sum(known)) if known else None
