"""A turn in short: what was asked, what was done, what came of it. Written once, when the turn closes.

Nothing here asks a model. What a card leaves out stands in the ledger, under the ids it names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from harness.messages import MessageDict
from harness.models.tokens import estimate_tokens
from harness.sessions.blobs import block_text
from harness.sessions.entries import EntryDict
from harness.sessions.projection import Turn
from harness.sessions.turns import blocks_of
from harness.text import dumps

__all__ = ["card_line", "in_short", "turn_card"]

_WORDS = 60
_LETTERS = 400
_ARGUMENTS = 1000
_SENTENCE = re.compile(r".+?(?:[.!?…](?=\s|$)|[\u3002\uff01\uff1f]|\n|$)")


def turn_card(turn: Turn, outcome: str) -> dict[str, Any]:
    """The fields of a `turn_card`.

    turn      the turn's id                 asked     the directive in short
    did       each tool call: {tool, call, args, error?}, `call` being the id its result is found by
    answered  the last answer in short      evidence  the ids of the calls that have a result
    outcome   completed, step_limit, stopped, interrupted, or why it was cut short
    tokens    {full, card}: estimates of what the turn and its card cost to show
    """
    results = {str(block.get("id")): block for message in turn.messages for block in blocks_of(message, "toolResult")}
    calls = [call for message in turn.messages for call in blocks_of(message, "toolUse")]
    made = [str(block["id"]) for block in results.values() if "synthetic" not in block]
    card: dict[str, Any] = {
        "turn": turn.id,
        "asked": in_short(_text(turn.messages[0])),
        "did": [_did(call, results) for call in calls],
        "answered": in_short(_answer(turn.messages)),
        "outcome": outcome,
        "evidence": made,
    }
    full = sum(estimate_tokens(message) for message in turn.messages)
    return {**card, "tokens": {"full": full, "card": estimate_tokens(card_line(card))}}


def card_line(card: Mapping[str, Any]) -> str:
    """A card as one line of text: `asked: … → did: … → answered: …`."""
    counts: dict[str, int] = {}
    for each in card.get("did", ()):
        counts[str(each.get("tool"))] = counts.get(str(each.get("tool")), 0) + 1
    did = ", ".join(f"{tool} \u00d7{count}" if count > 1 else tool for tool, count in counts.items()) or "nothing"
    return f"asked: {card.get('asked', '')} → did: {did} → answered: {card.get('answered', '')}"


def in_short(text: str) -> str:
    """A text of at most 60 words as it is; of a longer one the first sentence, or its first 60 words."""
    words = text.split()
    if len(words) <= _WORDS and len(text) <= _LETTERS:
        return text.strip()
    first = _SENTENCE.match(text.strip())
    short = " ".join((first.group() if first else text).split()[:_WORDS])
    return short if len(short) <= _LETTERS else f"{short[:_LETTERS]}…"


def _did(call: EntryDict, results: Mapping[str, EntryDict]) -> EntryDict:
    result = results.get(str(call.get("id")), {})
    done = {"tool": call.get("name"), "call": call.get("id"), "args": _arguments(call.get("input"))}
    return {**done, "error": True} if result.get("isError") else done


def _arguments(value: Any) -> Any:
    short = _shortened(value)
    if isinstance(short, dict) and len(dumps(short)) > _ARGUMENTS:
        return {"keys": [in_short(str(key)) for key in short][:_WORDS]}
    return short if len(dumps(short)) <= _ARGUMENTS else None


def _shortened(value: Any) -> Any:
    if isinstance(value, str):
        return in_short(value)
    if isinstance(value, dict):
        return {key: _shortened(item) for key, item in value.items()}
    return [_shortened(item) for item in value] if isinstance(value, list) else value


def _answer(messages: Sequence[MessageDict]) -> str:
    last = messages[-1]
    return _text(last) if last.get("role") == "assistant" else ""


def _text(message: MessageDict) -> str:
    content = message.get("content")
    blocks = content if isinstance(content, list) else [{"text": content}]
    return "\n".join(
        block_text(block) for block in blocks if isinstance(block, dict) and block.get("type") != "thinking"
    )
