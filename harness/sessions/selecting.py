"""Which messages a request shows where it does not show the whole conversation, by ids of ledger lines.

`select` in a `request_begin` holds, in the order shown: the id of the boundary for its summary, the
id of a turn for the whole turn as it stands, and the id of any other message's line for that message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from harness.messages import MessageDict
from harness.sessions.projection import View

__all__ = ["selected_messages", "split_shown"]

FindLine = Callable[[MessageDict], str | None]


def split_shown(
    view: View, messages: Sequence[MessageDict], find: FindLine
) -> list[tuple[str | None, tuple[MessageDict, ...]]]:
    """The messages in pieces, each with its id; None for a message that no line holds.

    `find` gives the line that holds exactly this message.
    """
    turns = {str(turn.messages[0].get("id")): turn for turn in view.turns}
    pieces: list[tuple[str | None, tuple[MessageDict, ...]]] = []
    index = 0
    while index < len(messages):
        message = messages[index]
        turn = turns.get(str(message.get("id")))
        if turn and tuple(messages[index : index + len(turn.messages)]) == turn.messages:
            pieces.append((turn.id, turn.messages))
        elif message == view.summary_message:
            pieces.append((str(message["id"]), (message,)))
        else:
            pieces.append((find(message), (message,)))
        index += len(pieces[-1][1])
    return pieces


def selected_messages(view: View, select: Sequence[str], lines: Mapping[str, MessageDict]) -> list[MessageDict] | None:
    """The messages that these ids stand for; None if one of them is not there. `lines` holds messages by entry id."""
    turns = {turn.id: turn for turn in view.turns}
    messages: list[MessageDict] = []
    for entry_id in select:
        if view.summary_message and view.summary_message["id"] == entry_id:
            messages.append(view.summary_message)
        elif entry_id in turns:
            messages.extend(turns[entry_id].messages)
        elif entry_id in lines:
            messages.append(lines[entry_id])
        else:
            return None
    return messages
