"""A whole session in figures: what its header says, where its turns are, what happened when.

Runs in a worker process: it goes through everything and gives back only what the pages need.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.filesystem.confined import inside
from harness.sessions.catalog.prices import find_price
from harness.transcripts import Page, page, stitched, summary
from harness.transcripts.telling import Tell
from harness.transcripts.worker import packed
from harness.viewer.shown import cut, first_words
from harness.viewer.window import MOST_WARNINGS

__all__ = ["overview", "overview_in"]

_WINDOW = 1024 * 1024
_CAP = 500
"""Characters of a block that are enough to name a prompt."""


def overview(source: Path, session_id: str, tell: Tell | None = None) -> dict[str, Any]:
    """Head, census, warnings, outline and the points in time of one session.

    Goes through it twice: counting, then page by page, of whose turns no more than one page is held at a time. `tell`
    is given how many bytes of both were read, and of how many. Raises what `page` raises.
    """
    whole = summary(source, session_id, tell=tell and _doubled(tell)).to_dict()
    warnings = whole["warnings"]
    parts = [_part(found) for found in _pages(source, session_id, tell)][::-1]
    spent = [each for part in parts for each in part["requests"]]
    cost = _cost(spent)
    return {
        **whole,
        "head": _cut(whole["head"]),
        "stats": _cut(whole["stats"]),
        "warnings": warnings[:MOST_WARNINGS],
        **({"warningsLeftOut": len(warnings) - MOST_WARNINGS} if len(warnings) > MOST_WARNINGS else {}),
        "outline": {
            "keys": [key for part in parts for key in part["keys"]],
            "prompts": [prompt for part in parts for prompt in part["prompts"]],
            "end": parts[-1]["end"],
            "after": parts[-1]["after"],
        },
        "requests": [_cut(each) for each in spent],
        "moments": [moment for part in parts for moment in part["moments"]],
        **({} if cost is None else {"cost": cost}),
    }


def overview_in(folder: Path, source: Path, session_id: str, *, tell: Tell) -> bytes:
    """The same of a session that is in this folder, wherever a link leads; packed, to be kept."""
    return packed(inside(folder, overview, source, session_id, tell))


def _doubled(tell: Tell) -> Tell:
    return lambda done, total: tell(done, 2 * total)


def _pages(source: Path, session_id: str, tell: Tell | None) -> Iterator[Page]:
    """All pages, from the end: which branch a turn is on is known from what comes after it."""
    found = page(source, session_id, window=_WINDOW, cap=_CAP)
    yield found
    while found.before is not None:
        if tell is not None:
            tell(2 * found.size - found.start, 2 * found.size)
        found = page(source, session_id, where="before", cursor=found.before, window=_WINDOW, cap=_CAP)
        yield found


def _part(found: Page) -> dict[str, Any]:
    """What an overview needs of a page's turns."""
    turns = stitched(found.turns)
    return {
        "keys": [turn["key"] for turn in turns],
        "prompts": [_prompt(turn) for turn in turns if turn["kind"] in ("prompt", "queued")],
        "requests": [_request(turn) for turn in turns if turn.get("usage")],
        "moments": list(_moments(turns, found.turns)),
        "end": found.end,
        "after": found.after,
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
                    "name": first_words(str(block.get("name", ""))),
                    "key": turn["key"],
                }


def _cut(value: Any) -> Any:
    """The same with no name longer than a page prints it."""
    if isinstance(value, str):
        return cut(value)
    if isinstance(value, dict):
        return {name: _cut(member) for name, member in value.items()}
    return [_cut(member) for member in value] if isinstance(value, list) else value


def _cost(turns: Sequence[Mapping[str, Any]]) -> float | None:
    """US dollars of the requests whose model has a known price; None where none has."""
    spent = [
        (str(turn.get("provider", "")), str(turn.get("model", "")), turn["usage"])
        for turn in turns
        if turn.get("usage")
    ]
    known = [price for provider, model, used in spent if (price := find_price(provider, model, used)) is not None]
    return float(sum(known)) if known else None
