"""What the parts of one turn share: identity, the conversation, and the way events take."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from harness.agent.call import Call
from harness.agent.config import AgentConfig
from harness.agent.handoff import Handoff
from harness.agent.journal import Journal
from harness.agent.replacing import replacements
from harness.agent.stream import stream_event
from harness.context import CallScope
from harness.errors import CallCancelled, CallTimeout, PersistenceError
from harness.hooks.chain import Hook, where
from harness.hooks.events import Event, Notice, SystemPart
from harness.hooks.persistence import SessionPersistenceHook, plan_snapshot
from harness.messages import Msg, Usage
from harness.models.base import Model
from harness.sessions.lines.entries import START
from harness.sessions.snapshots.state_modules import StateModules
from harness.text import clean, error_text, said

__all__ = ["TurnState"]

log = logging.getLogger("harness.agent")
E = TypeVar("E", bound=Event)


class TurnState:
    """One turn in progress. It lives as long as its call; nothing of it is shared with another."""

    def __init__(self, config: AgentConfig, call: Call, scope: CallScope, models: Sequence[Model]) -> None:
        self.config = config
        self.call = call
        self.scope = scope
        self.models = tuple(models)
        self.journal = scope.get(Journal)
        self.modules = scope.get(StateModules)
        self.system: tuple[SystemPart, ...] = ()
        self.turn_id: str | None = None
        self.request_id: str | None = None
        self.resumed = False
        """The turn was begun by an earlier call and goes on with this one."""
        self.prefix_digest: str | None = None
        """Of the request in progress; see `harness.sessions.view.prefix`."""
        self.usage: Usage | None = None
        """Tokens of the turn's requests so far."""
        self.stopped = False
        """A hook has asked to end the turn with what there is."""
        self._failed_hooks: list[tuple[Hook, type[Event]]] = []

    def place(self) -> dict[str, Any]:
        """The fields that every event of this turn has."""
        return {"scope": self.scope, "turn_id": self.turn_id, "request_id": self.request_id}

    async def open_turn(self, messages: Sequence[Msg], idempotency_key: str | None) -> None:
        """Log what the person sends, whatever comes meanwhile; from then on the turn has an id.

        The same prompt sent once more, after a crash before its answer, goes on with its turn.
        """
        try:
            await self.look_for_media(messages)
        finally:
            self._open_turn(messages, idempotency_key)

    async def look_for_media(self, messages: Sequence[Msg]) -> None:
        """Look for the media that messages name and do not bring, and say which are lost; before these are logged."""
        for sha256 in await self.journal.tree.look_for_media(messages):
            text = f"a message names a medium that nobody has, {sha256}, and a text was stored in its place"
            if not any(warning.startswith(text) for warning in self.call.warnings):
                self.warn(f"{text}; give the bytes along, as Media.from_bytes does")

    def _open_turn(self, messages: Sequence[Msg], idempotency_key: str | None) -> None:
        tree = self.journal.tree
        self.turn_id = self.journal.resume_turn(idempotency_key)
        self.resumed = self.turn_id is not None
        if not self.resumed:
            if tree.turn is None and tree.boundary == START:
                messages = self.scope.get(Handoff).opened(messages)
            cleaned = [message.cleaned() for message in messages]
            self._tell_reused_ids(cleaned)
            self.turn_id = self.journal.open_turn(cleaned, idempotency_key)
        self.call.turn_id = self.turn_id

    def _tell_reused_ids(self, messages: Iterable[Msg]) -> None:
        for message in messages:
            if self.journal.has_other_words(message):
                self.warn(
                    f"message id {message.id!r} was used before in this session, with another message, and this one "
                    "was stored under an id of its own; give each message an id of its own"
                )

    # ---- events

    async def ask(self, event: E, finish: Callable[[E], E] = lambda changed: changed) -> E:
        """Let the hooks change an event, `finish` what came of it, show that, and give it back."""
        event = self.config.hooks.own(event)
        changed = finish(await self.config.hooks.change(event))
        if self.turn_id is not None:
            self.note_replaced(event, changed)
        self._show(changed)
        return changed

    def note_replaced(self, before: Event, after: Event) -> None:
        """Log what hooks have put in the place of something."""
        for replaced in replacements(before, after):
            self.journal.event("replace", replaced, turn=self.turn_id, request=self.request_id)

    async def tell(self, event: Event) -> None:
        """Tell hooks and consumers; a hook that fails costs a warning, nothing else."""
        self._show(event)
        for hook, error in await self.config.hooks.notify(self.config.hooks.own(event)):
            if (failed := (hook, type(event))) in self._failed_hooks:
                continue  # said once: chunks come by the thousand
            self._failed_hooks.append(failed)
            text = f"hook {where(hook)} failed on {type(event).__name__}: {said(error)}"
            self.warn(text)
            self._show(self._notice("hook_failure", {"message": text}))

    async def notice(self, kind: str, details: Mapping[str, Any]) -> None:
        """Log an event of the ledger, and show it."""
        self.journal.event(kind, details, turn=self.turn_id, request=self.request_id)
        await self.tell(self._notice(kind, details))

    async def announce(self, kind: str, details: Mapping[str, Any]) -> None:
        """Show how work behind the reply gets on; the call's own consumers see it while the call lasts."""
        notice = self._notice(kind, details)
        if not self.call.done:
            self._show(notice)
        await self.config.hooks.notify(self.config.hooks.own(notice))

    def warn(self, text: str) -> None:
        """Say to the caller that something went less than well."""
        self.call.warnings.append(text)

    def _notice(self, kind: str, details: Mapping[str, Any]) -> Notice:
        return Notice(**self.place(), kind=kind, details=clean(details).value)

    def _show(self, event: Event) -> None:
        self.call.emit(stream_event(event, self.call.id, self.call.event_count + 1))

    # ---- ends

    async def commit_reply(self, reply: Msg, outcome: str | None) -> None:
        """The turn's last commit: what is buffered, its card, and every state that changed, in one write.

        `outcome` is None where somebody spoke meanwhile, so that the turn goes on. Raises
        `PersistenceError` with the reply in it when the disk refuses.
        """
        if outcome and self.turn_id:
            self.journal.tree.add_card(self.turn_id, outcome)
        self.journal.save_states(self.modules.values(), turn=self.turn_id)
        if outcome and self._has_snapshot_hook():
            plan_snapshot(self.scope)
        try:
            await self.journal.commit(sync=True)
        except PersistenceError as error:
            error.reply = reply
            raise
        self.call.entry_id = self.journal.entry_of(reply.id)
        self.call.usage = self.usage

    def _has_snapshot_hook(self) -> bool:
        return any(type(hook) is SessionPersistenceHook for hook in self.config.hooks.hooks)

    async def close_early(self, error: BaseException) -> None:
        """Log how far the turn came. Does not raise: the error that ended the turn is the one to see."""
        try:
            if self.turn_id is not None:
                await self.journal_steering(last=True)
                details = {"reason": _reason_of(error), "message": error_text(error)[:2000]}
                self.journal.event("abort", details, turn=self.turn_id)
                self.journal.save_states(self.modules.values(), turn=self.turn_id)
                await self.journal.commit(sync=True)
                self._tell_that_it_is_stored(error)
        except Exception as failure:
            log.exception("session %r: the end of a turn could not be stored", self.scope.session_id)
            error.add_note(f"the end of this turn could not be stored: {said(failure)}")

    def _tell_that_it_is_stored(self, error: BaseException) -> None:
        """What the disk refused at first it has taken now: whoever repeats the call should know that it is there."""
        if isinstance(error, PersistenceError) and error is self.journal.refusal:
            told = (
                "the second attempt has stored the turn: repeat it only under its idempotency key, or it is said twice"
            )
            error.args = (f"{error}; {told}",)

    async def journal_steering(self, *, last: bool = False) -> None:
        """Log what was said to the turn in progress since this was asked before, whatever comes meanwhile."""
        messages = self.call.take_steering(last=last)
        self._tell_reused_ids(messages)
        await self.log_messages(messages, via="steer")

    async def log_messages(self, messages: Sequence[Msg], *, via: str, request: str | None = None) -> None:
        """Log what was said in this turn, whatever comes while its media are looked for."""
        try:
            await self.look_for_media(messages)
        finally:
            for message in messages:
                self.journal.add(message, via=via, turn=self.turn_id, request=request)


def _reason_of(error: BaseException) -> str:
    match error:
        case CallCancelled():
            return "stopped"
        case CallTimeout():
            return "timeout"
        case _:
            return type(error).__name__
