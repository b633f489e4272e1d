"""A prompt under an idempotency key that was used before: its reply, and whether it says what the first one said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any

from harness.messages import MessageDict, Msg
from harness.sessions.ledger.answers import Answered
from harness.sessions.tree.session_tree import SessionTree

__all__ = ["other_words", "reply_of"]


def reply_of(found: Answered) -> tuple[Msg, str] | None:
    """The reply that this prompt got, and its line; None if it got none."""
    turn = found.turn
    # A line that closes a stopped turn was made by no model: it is no reply.
    answers = [message for message in turn.messages if message["role"] == "assistant" and "provider" in message]
    if found.stopped_at is not None and answers:
        return Msg.from_dict(answers[-1]), found.stopped_at
    closed_by_it = turn.closed and answers and answers[-1] is turn.messages[-1]
    return (Msg.from_dict(answers[-1]), turn.entry_ids[-1]) if closed_by_it else None


def other_words(tree: SessionTree, key: str, found: Answered, messages: Sequence[Msg]) -> str | None:
    """The warning for a caller whose message is not the one that `key` was first used with; None if it is.

    None too for a turn that was closed without a reply: then the new message is answered. Only texts are
    compared, each as it would be stored. Where a hook has put another message in the place of the first
    one, nobody can tell any more.
    """
    if found.turn.closed and reply_of(found) is None:
        return None
    asked = takewhile(lambda message: message["role"] == "user", found.turn.messages)
    said = {text for message in asked for text in _texts(message)}
    now = tree.redacted(messages[-1].cleaned().to_dict())
    if said.issuperset(_texts(now)) or _was_replaced(tree, found.turn.entry_ids):
        return None
    return (
        f"idempotency key {key!r} was used before, with another message, and this call got what that one gets; "
        "give each message a key of its own"
    )


def _texts(message: MessageDict | Any) -> Iterator[str]:
    content = message.get("content")
    blocks: Iterable[Any] = content if isinstance(content, list) else [{"type": "text", "text": content}]
    return (block["text"] for block in blocks if block.get("type") == "text")


def _was_replaced(tree: SessionTree, turn: Sequence[str]) -> bool:
    """Whether a hook changed what opened the turn; known as far back as the newest boundary."""
    entries = (entry.data for entry in tree.path() if entry.kind == "event")
    changed = (data for data in entries if data.get("kind") == "replace" and data.get("turnId") in turn)
    return any(data.get("data", {}).get("event") == "pre_call" for data in changed)
