"""A turn in short: what was asked, what was done, what came of it. Written once, when the turn closes.

Nothing here asks a model. What a card leaves out stands in the ledger, under the ids it names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.messages import MessageDict
from harness.models.tokens import estimate_tokens
from harness.sessions.lines.blobs import block_text
from harness.sessions.lines.entries import EntryDict
from harness.sessions.view.projection import Turn
from harness.sessions.view.turns import FRAMES
from harness.sessions.view.words import words_of
from harness.text import clean_text, dumps, without_tags

__all__ = [
    "CARDS_FRAME",
    "card_line",
    "card_words",
    "cards_message",
    "first_sentence",
    "in_short",
    "numbered_line",
    "turn_card",
]

_WORDS = 60
_LETTERS = 400
_ARGUMENTS = 1000
_LINE_ANSWER, _LINE_LETTERS, _LINE_TOOLS = 12, 160, 12
# It begins with one set of letters, so that the search runs over text without an end at full speed.
_SENTENCE_END = re.compile(r"[.!?…\u3002\uff01\uff1f\n](?:(?<=[\u3002\uff01\uff1f\n])|(?=\s|$))")


def turn_card(turn: Turn, outcome: str) -> dict[str, Any]:
    """The fields of a `turn_card`.

    turn      the turn's id                 asked     the directive in short
    did       each tool call: {tool, call, args, error?}, `call` being the id its result is found by
    answered  the last answer in short      evidence  the ids of the calls that have a result
    outcome   completed, step_limit, stopped, interrupted, or why it was cut short
    tokens    {full, card}: estimates of what the turn and its card cost to show
    """
    calls, results = _calls_and_results(turn.messages)
    card: dict[str, Any] = {
        "turn": turn.id,
        "asked": in_short(_text(turn.messages[0])),
        "did": [_did(call, results) for call in calls],
        "answered": in_short(_answer(turn.messages)),
        "outcome": outcome,
        "evidence": [call for call, block in results.items() if "synthetic" not in block],
    }
    full = sum(map(estimate_tokens, turn.messages))
    card["tokens"] = {"full": full, "card": estimate_tokens(card_line(card))}
    return card


def card_line(card: Mapping[str, Any]) -> str:
    """A card as one line of text: `asked: … → did: … → answered: …`."""
    did = ", ".join(_tools(card)) or "nothing"
    return f"asked: {card.get('asked', '')} → did: {did} → answered: {card.get('answered', '')}"


def numbered_line(number: int, card: Mapping[str, Any]) -> str:
    """A card as one line among others: `#12 asked: … → did: … → answered: …`, `number` being its turn's.

    One line whatever the card holds, each part of it bounded; what is left out ends in `…`. A turn
    that did not end well says how it ended. The answer is only hinted at: `recall` has the whole.
    """
    tools = [_few(tool, _LINE_TOOLS) for tool in _tools(card)]
    more = [f"{len(tools) - _LINE_TOOLS} more"] if len(tools) > _LINE_TOOLS else []
    did = ", ".join([*tools[:_LINE_TOOLS], *more]) or "nothing"
    asked, answer = in_short(str(card.get("asked", ""))), _few(str(card.get("answered", "")), _LINE_ANSWER)
    outcome = str(card.get("outcome", "completed"))
    ended = "" if outcome in ("completed", "unrecorded") else f" ({_few(outcome, _LINE_ANSWER)})"
    line = f"#{number} asked: {asked} → did: {did} → answered: {answer or 'nothing'}{ended}"
    return without_tags(" ".join(clean_text(line).split()), FRAMES)


def cards_message(first_turn_id: str, lines: Sequence[str]) -> MessageDict:
    """The message that shows cards: `lines` as `numbered_line` makes them, oldest first.

    It costs at most `CARDS_FRAME` and what each line, with a line feed, costs alone. Its id comes
    from the first turn it shows, so that it is the same message for as long as it begins there.
    """
    inner = without_tags("\n".join(lines), FRAMES)
    text = f"<turns>\n{_CARDS_HEADING}\n{inner}\n</turns>"
    return {"id": f"{first_turn_id}/cards", "role": "user", "content": [{"type": "text", "text": text}]}


def card_words(card: Mapping[str, Any]) -> frozenset[str]:
    """The words by which a turn is found: of what was asked and answered, and of the calls that were made."""
    did = _done(card)
    said = [str(card.get("asked", "")), str(card.get("answered", "")), *(str(each.get("tool")) for each in did)]
    return words_of("\n".join([*said, *(text for each in did for text in _texts(each.get("args")))]))


def first_sentence(text: str) -> str:
    """The text up to the end of its first sentence or line."""
    text = text.strip()
    end = _SENTENCE_END.search(text, 1)
    return text[: end.end()].strip() if end else text


def in_short(text: str) -> str:
    """A text of at most 60 words as it is; of a longer one the first sentence, or its first 60 words."""
    text = text.strip()
    words = text.split(None, _WORDS)
    if len(words) > _WORDS:
        text = text[: -len(words.pop())].rstrip()  # nothing behind those words is shown, so no end is looked for there
    elif len(text) <= _LETTERS:
        return text
    sentence = first_sentence(text)
    short = " ".join(words if len(sentence) == len(text) else sentence.split())
    return short if len(short) <= _LETTERS else f"{short[:_LETTERS]}…"


def _calls_and_results(messages: Sequence[MessageDict]) -> tuple[list[EntryDict], dict[str, EntryDict]]:
    """The tool calls in order, and the results by the ids of their calls."""
    calls: list[EntryDict] = []
    results: dict[str, EntryDict] = {}
    for message in messages:
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            kind = block.get("type") if isinstance(block, dict) else None
            if kind == "toolUse":
                calls.append(block)
            elif kind == "toolResult":
                results[str(block.get("id"))] = block
    return calls, results


def _tools(card: Mapping[str, Any]) -> list[str]:
    """The tools in the order of their first use, with how often."""
    counts: dict[str, int] = {}
    for each in _done(card) if card.get("did") else ():
        counts[str(each.get("tool"))] = counts.get(str(each.get("tool")), 0) + 1
    return [f"{tool} \u00d7{count}" if count > 1 else tool for tool, count in counts.items()]


def _done(card: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    did = card.get("did")
    return [each for each in did if isinstance(each, Mapping)] if isinstance(did, list) else []


def _few(text: str, most: int) -> str:
    """Its first words, and letters, with a mark where there are more."""
    words = text.split()
    short = " ".join(words[:most])[:_LINE_LETTERS]
    return short if short == " ".join(words) else f"{short}…"


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value, names of fields aside."""
    if isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item)
    elif isinstance(value, str):
        yield value


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
        [block_text(block) for block in blocks if isinstance(block, dict) and block.get("type") != "thinking"]
    )


_CARDS_HEADING = "Earlier turns of this conversation, a line each; recall(turn=n) shows one whole."
CARDS_FRAME = estimate_tokens(cards_message("", []))
"""Tokens that the message with cards costs apart from its lines."""
