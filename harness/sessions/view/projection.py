"""What the model sees: a pure function of the lines on the active path.

- A model's output counts when its request completed. Partial text never does.
- What hooks and steering put in (`via` hook, steer) is visible while its turn is open, and gone
  when it closes. What hooks put right behind a directive is shown as the end of that directive.
  Lines `via:repair` stand for a line that is missing, and stay.
- After a message with tool calls come its results as one tool message, in the order of the calls,
  in whatever lines and order they were logged; the first result of a call wins, a result without
  a call is left out. Calls without a result are named in `open_calls`, never invented here.
- The summary of the newest boundary comes first, as a user message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.ids import new_id
from harness.messages import MessageDict
from harness.sessions.lines.entries import Entry, EntryDict
from harness.sessions.view.turns import FRAMES, SUMMARY_MARK, Draft, Step, blocks_of, build_turns, newest_boundary
from harness.text import without_tags

__all__ = [
    "OpenCall",
    "Turn",
    "View",
    "cut_for",
    "make_view",
    "project",
    "project_turns",
    "repairs",
    "safe_cuts",
    "summary_message",
]

STOPPED = "[stopped]"


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A tool call that the conversation holds no result of."""

    id: str
    name: str
    message_id: str
    turn_id: str


@dataclass(slots=True)  # one is made of every turn that is read, and a frozen one takes three times as long to make
class Turn:
    """One directive and what followed; never changed. `id` is the entry id of the message that opened it.

    Only the last turn of a view can be open: it is closed once its last message is an assistant's
    without tool calls. `aborted` says that somebody stopped it.
    """

    id: str
    messages: tuple[MessageDict, ...]
    closed: bool
    aborted: bool
    entry_ids: tuple[str, ...]
    open_calls: tuple[OpenCall, ...] = ()


@dataclass(frozen=True, slots=True)
class View:
    """A conversation as the model sees it. Message dicts are shared: replace them, never change them."""

    turns: tuple[Turn, ...] = ()
    summary: str | None = None
    summary_message: MessageDict | None = None

    @property
    def messages(self) -> list[MessageDict]:
        """The messages of a request, in order."""
        messages = [self.summary_message] if self.summary_message else []
        for turn in self.turns:
            messages.extend(turn.messages)
        return messages

    @property
    def open_calls(self) -> tuple[OpenCall, ...]:
        """The calls without a result, in order."""
        return tuple(call for turn in self.turns for call in turn.open_calls)

    @property
    def open_turn(self) -> Turn | None:
        """The last turn if it is not closed."""
        return self.turns[-1] if self.turns and not self.turns[-1].closed else None


def project(path: Sequence[Entry]) -> View:
    """The view of the active path, root first, from any line at or before the boundary's position on."""
    boundary = newest_boundary(path)
    return make_view(project_turns(path, boundary), boundary)


def project_turns(
    path: Sequence[Entry], boundary: Entry | None, *, closed: bool = False, committed: set[str] | None = None
) -> tuple[Turn, ...]:
    """The turns of a path that its newest boundary keeps.

    `closed` says that a directive follows, which closes the last one too; `committed` as in `build_turns`.
    """
    drafts = build_turns(path, boundary, committed)
    turns = [_turn(draft, closed=closed or draft is not drafts[-1] or draft.answered) for draft in drafts]
    return tuple([turn for turn in turns if turn.messages])


def make_view(turns: Sequence[Turn], boundary: Entry | None) -> View:
    """The view of these turns behind the newest boundary."""
    summary = str(boundary.data.get("summary") or "") if boundary else None
    message = summary_message(boundary.id, summary) if boundary and summary else None
    return View(tuple(turns), summary, message)


def summary_message(entry_id: str, summary: str) -> MessageDict:
    """The message that stands for a summary which the line `entry_id` holds."""
    # Its own frame is taken out of it here too: what a ledger from elsewhere holds may never have been cleaned.
    text = f"<context_summary>\n{without_tags(summary, FRAMES)}\n</context_summary>"
    # The mark tells it from what a person said, should a snapshot with it come back without its ledger.
    meta = {SUMMARY_MARK: True}
    return {"id": entry_id, "role": "user", "content": [{"type": "text", "text": text}], "meta": meta}


def _turn(draft: Draft, *, closed: bool) -> Turn:
    if not draft.steps and not draft.passing:  # as in most turns, nothing is more than itself
        return Turn(draft.id, tuple(draft.messages), closed, draft.aborted, tuple(draft.ids))
    messages, calls = _shown(draft, closed)
    return Turn(draft.id, tuple(messages), closed, draft.aborted, tuple(draft.ids), tuple(calls))


def _shown(draft: Draft, closed: bool) -> tuple[list[MessageDict], list[OpenCall]]:
    """The messages, results behind their calls and what passes by only while it is open; and the calls without one."""
    first = 0 if closed else _end_of_context(draft)
    messages = [_with_context(draft.messages[:first])] if first else []
    calls: list[OpenCall] = []
    for index, message in enumerate(draft.messages[first:], first):
        if closed and index in draft.passing:
            continue
        messages.append(message)
        if step := draft.steps.get(index):
            if step.results:
                messages.append(_results_message(step))
            if len(step.results) < len(step.calls):
                calls.extend(_open_calls(step, draft.id))
    return messages, calls


def _end_of_context(draft: Draft) -> int:
    """The index behind the messages that hooks put behind a directive; 0 where there are none."""
    messages, end = draft.messages, 1
    while end < len(messages) and draft.passing.get(end) == "hook" and messages[end]["role"] == "user":
        end += 1
    return end if end > 1 and messages[0]["role"] == "user" else 0


def _with_context(messages: Sequence[MessageDict]) -> MessageDict:
    """What hooks put behind a directive becomes the end of that directive, a block each."""
    return {**messages[0], "content": [block for message in messages for block in _content(message)]}


def _content(message: MessageDict) -> list[EntryDict]:
    content = message.get("content")
    return content if isinstance(content, list) else [{"type": "text", "text": str(content)}]


def _results_message(step: Step) -> MessageDict:
    """The results in call order; the logged message itself where it is just that."""
    found = [step.results[call] for call in step.calls if call in step.results]
    blocks = [block for block, _ in found]
    source = found[0][1]
    if source["role"] == "tool" and source["content"] == blocks:
        return source
    return {"id": source.get("id"), "role": "tool", "content": blocks}


def _open_calls(step: Step, turn_id: str) -> list[OpenCall]:
    message_id = str(step.message.get("id"))
    uses = {str(block.get("id")): str(block.get("name", "")) for block in blocks_of(step.message, "toolUse")}
    return [OpenCall(call, uses[call], message_id, turn_id) for call in step.calls if call not in step.results]


def repairs(view: View, reason: str) -> list[MessageDict]:
    """The messages that make a view sendable: a marked error result for each open call, and, where
    the last turn was stopped or has no answer at all, an assistant line that closes it.

    To be logged `via:repair` when the next request is about to be made; then a second call gives
    an empty list. `reason` is one word or so: `interrupted`, `cancelled`.
    """
    by_message: dict[str, list[OpenCall]] = {}
    for call in view.open_calls:
        by_message.setdefault(call.message_id, []).append(call)
    made = [_tool_message([_synthetic(call, reason) for call in calls]) for calls in by_message.values()]
    turn = view.open_turn
    if turn and (turn.aborted or turn.messages[-1]["role"] == "user"):
        made.append({"id": new_id(), "role": "assistant", "content": [{"type": "text", "text": STOPPED}]})
    return made


def _tool_message(blocks: list[MessageDict]) -> MessageDict:
    return {"id": new_id(), "role": "tool", "content": blocks}


def _synthetic(call: OpenCall, reason: str) -> MessageDict:
    text = f"[{reason}: this call did not finish; whether it had an effect is unknown]"
    return {
        "type": "toolResult",
        "id": call.id,
        "name": call.name,
        "content": [{"type": "text", "text": text}],
        "isError": True,
        "synthetic": reason,
    }


def safe_cuts(messages: Sequence[MessageDict]) -> list[int]:
    """Every k for which no result in `messages[k:]` answers a call in `messages[:k]`; an orphan pins nothing."""
    called: dict[str, int] = {}
    unsafe: set[int] = set()
    for index, message in enumerate(messages):
        for result in blocks_of(message, "toolResult"):
            if (start := called.get(str(result.get("id")))) is not None:
                unsafe.update(range(start + 1, index + 1))
        if message.get("role") == "assistant":
            called.update((str(call.get("id")), index) for call in blocks_of(message, "toolUse"))
    return [cut for cut in range(len(messages) + 1) if cut not in unsafe]


def cut_for(turns: Sequence[Turn], keep_messages: int) -> int:
    """How many turns, from the oldest, to summarise so that at most `keep_messages` messages stay.

    Whole turns only. The newest turn stays if it is open or if there are others to summarise.
    """
    total, cut = 0, len(turns)
    while cut and total + len(turns[cut - 1].messages) <= keep_messages:
        cut -= 1
        total += len(turns[cut].messages)
    if cut == len(turns) and cut and (cut > 1 or not turns[-1].closed):
        cut -= 1
    return cut
