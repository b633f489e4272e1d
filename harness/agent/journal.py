"""The turn's pen: what the loop writes into the ledger, in the loop's words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

from harness.errors import PersistenceError
from harness.hooks.events import SystemPart
from harness.ids import new_id
from harness.messages import MessageDict, Msg, Usage
from harness.models.base import ToolSpec
from harness.models.replay import for_provider
from harness.sessions import SessionTree, repairs
from harness.sessions.lines.built import BuiltMessages
from harness.sessions.lines.entries import Entry
from harness.sessions.selection.selecting import Selected
from harness.sessions.view.prefix import Prefix, PrefixWatch
from harness.sessions.view.turns import PASSING
from harness.state import State
from harness.text import error_text

__all__ = ["Journal"]


class Journal:
    """Writes one call's lines. Lines are kept in memory until `commit`."""

    def __init__(self, tree: SessionTree, policy: str, built: BuiltMessages, *, goes_on: bool = False) -> None:
        self.tree = tree
        self.unstored: str | None = None
        """Why what was logged is not on disk, where the call goes on without."""
        self.refusal: PersistenceError | None = None
        """What the last commit raised that could not be done."""
        self._policy = policy
        self._built = built
        self._goes_on = goes_on
        self._own_ids: dict[str, str] = {}
        """By an id that was used before: under which the message that came with it last is logged."""
        self._shown: list[MessageDict] = []
        """What the request begun last shows."""
        self.choice: Callable[[], tuple[list[Selected], list[MessageDict]]] | None = None
        """What a request shows where that is not the whole view: how its line says so, and the messages."""

    # ---- what the model sees

    def messages_for(self, provider: str, model: str) -> tuple[Msg, ...]:
        """The conversation as this model may see it, lines not yet committed included."""
        messages = self.choice()[1] if self.choice else self.tree.view().messages
        return self.built_for(messages, provider, model)

    def built_for(self, messages: Sequence[MessageDict], provider: str, model: str) -> tuple[Msg, ...]:
        """These messages as this model may see them; each is built once while it is in use."""
        return self._built.of(for_provider(messages, provider, model))

    def shown(self, system: Sequence[SystemPart]) -> tuple[SystemPart, ...]:
        """These pieces of the system text as they are stored, and so as they are sent."""
        stored = [self.tree.redacted({"name": part.name, "text": part.text}, "system") for part in system]
        return tuple(SystemPart(part.name, new["text"]) for part, new in zip(system, stored, strict=True))

    def as_stored(self, message: Msg) -> Msg:
        """A message as it is stored."""
        before = message.to_dict()
        after = self.tree.redacted(before)
        return message if after == before else Msg.from_dict(dict(after))

    async def load_media(self, sha256: str) -> bytes:
        """The bytes behind a media block of this session."""
        return await self.tree.load_media(sha256)

    # ---- messages

    @property
    def open_turn_id(self) -> str | None:
        """The turn in progress, or None between turns."""
        turn = self.tree.view().open_turn
        return turn.id if turn else None

    def resume_turn(self, idempotency_key: str | None) -> str | None:
        """The open turn that a prompt with this key began, made ready to go on; None if there is none."""
        asked = self.tree.answered(idempotency_key) if idempotency_key is not None else None
        if asked is None or asked.turn.id != self.open_turn_id:
            return None
        for repair in repairs(self.tree.view(), "interrupted"):
            if repair["role"] == "tool":
                self._repair(repair, frozenset())
        return asked.turn.id

    def open_turn(self, messages: Sequence[Msg], idempotency_key: str | None) -> str | None:
        """Log what repairs the conversation, then the directive; returns the turn's id."""
        brought = {result.id for message in messages for result in message.tool_results}
        before = self.tree.view().open_turn
        for repair in repairs(self.tree.view(), "interrupted"):
            self._repair(repair, brought)
        if before and not brought:
            self.tree.add_card(before.id, "stopped" if before.aborted else "interrupted")
        *earlier, last = messages
        for message in earlier:
            own = self.own(message, unless=_is_history)
            self.tree.add_message(own, via=_via(own))
        # A history that somebody brings along may be broken off too; its last turn is not closed here.
        for repair in repairs(self.tree.view(), "interrupted"):
            if repair["role"] == "tool":
                self._repair(repair, brought)
        last = self.own(last)
        self.tree.add_message(last, via=_via(last), idempotency_key=idempotency_key)
        return self.tree.turn

    def _repair(self, repair: MessageDict, brought: Set[str]) -> None:
        """Log a repair, without the results that the caller brings himself."""
        content = [block for block in repair["content"] if block.get("id") not in brought]
        if content:
            self.tree.add_message({**repair, "content": content}, via="repair")

    def add(
        self, message: Msg, *, via: str, turn: str | None, request: str | None = None, partial: bool = False
    ) -> None:
        """Log a message of this turn; the very same one, put there once more within the turn, stays one."""
        own = self.own(message, unless=lambda line: line.data.get("turnId") == turn)
        self.tree.add_message(own, via=via, turn=turn, request=request, partial=partial)

    def own(self, message: Msg, *, unless: Callable[[Entry], bool] = lambda _: False) -> Msg:
        """The message under an id that no other one has: the tree takes a message of a known id for one it has.

        It keeps the id where the line that has it says the same and is one that counts (`unless`): then nothing
        is to be logged.
        """
        known = self._own_ids.get(message.id, message.id)
        line = self.tree.message_line(known)
        if line is None and message.id:
            return message
        if line is not None and message.id and unless(line) and self._says(line, message):
            return message.with_changes(id=known)
        own = message.with_changes(id=new_id())
        if message.id:
            self._own_ids[message.id] = own.id
        return own

    def has_other_words(self, message: Msg) -> bool:
        """Whether the ledger has another message under this one's id."""
        line = self.tree.message_line(message.id)
        return line is not None and not self._says(line, message)

    def _says(self, line: Entry, message: Msg) -> bool:
        """Whether a line holds what would be stored of this message."""
        stored, new = line.data["message"], self.tree.redacted(message.to_dict())
        return all(stored.get(part) == new.get(part) for part in ("role", "content"))

    def entry_of(self, message_id: str) -> str | None:
        """The ledger entry that holds a message."""
        return self.tree.entry_id(message_id)

    # ---- requests

    def begin_request(
        self,
        *,
        purpose: str,
        attempt: int,
        system: Sequence[SystemPart],
        tools: Sequence[ToolSpec],
        options: Mapping[str, Any],
        provider: str,
        model: str,
        turn: str | None,
        messages: Sequence[Msg],
        select: Sequence[Selected] | None = None,
        tokens: int | None = None,
    ) -> str:
        """Log all that a request is about to show; returns the request's id.

        `select` names what it shows where that is not the conversation; see `SessionTree.select`.
        `tokens` is what it was estimated at.
        """
        binding = self.tree.bind(
            [{"name": part.name, "text": part.text} for part in system],
            [{"name": tool.name, "schema": _tool_dict(tool)} for tool in tools],
            model,
            provider,
            options,
            turn=turn,
        )
        shown = self._shown = [self._built.stored(message) for message in messages]
        if select is None and self.choice:
            select = self.choice()[0]
        return self.tree.begin_request(
            purpose, attempt, binding, shown, turn, self._policy, select=select, tokens=tokens
        )

    def end_request(
        self,
        request_id: str,
        status: str,
        *,
        turn: str | None,
        attempts: Sequence[Mapping[str, Any]],
        stop: str | None = None,
        usage: Usage | None = None,
        prefix_digest: str | None = None,
    ) -> None:
        """Log how a request ended; `completed` commits its answer."""
        counted = usage.to_dict() if usage else None
        self.tree.end_request(request_id, status, stop, counted, attempts, prefix_digest=prefix_digest, turn=turn)

    def prefix_of(self, watch: PrefixWatch, request_id: str) -> Prefix:
        """How the request just begun begins, and whether that is how the one before it began."""
        turn = self.tree.view().open_turn
        opening = str(turn.messages[0].get("id")) if turn else None
        selected = self.choice is not None
        return watch.look(self.tree.path(), request_id, self._shown, opening, selected=selected)

    # ---- the rest

    def event(self, kind: str, data: Mapping[str, Any], *, turn: str | None = None, request: str | None = None) -> None:
        """Log an event."""
        self.tree.add("event", {"kind": kind, "data": dict(data)}, turn=turn, request=request)

    def save_states(self, values: Mapping[str, State], *, turn: str | None) -> None:
        """Log the whole value of each module whose value is not the one logged last."""
        logged = self.tree.states()
        for name, given in values.items():
            value = self.tree.redacted_state(name, given)
            if logged.get(name) != value:
                self.tree.add("state", {"module": name, "value": value}, turn=turn)

    async def commit(self, *, sync: bool) -> None:
        """Write what was logged; with `sync` it is on disk afterwards.

        Raises `PersistenceError`, or notes it in `unstored` where the call goes on without the disk.
        """
        try:
            await self.tree.commit(sync=sync)
        except PersistenceError as error:
            if not self._goes_on:
                self.refusal = error
                raise
            self.unstored = error_text(error)
        else:
            self.unstored = None


def _is_history(line: Entry) -> bool:
    """Whether a line stays in sight when its turn has closed: a conversation that is brought along has it."""
    return line.data.get("via") not in PASSING


def _via(message: Msg) -> str:
    return "user" if message.role == "user" else "repair"


def _tool_dict(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
