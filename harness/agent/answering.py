"""The answering part of a turn: one request to the model, logged before it goes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from harness.agent.choosing import choose
from harness.agent.overflow import make_room, refused_again
from harness.agent.requesting import Attempt, Outcome, Requester, RequestLimits, status_of
from harness.agent.turnstate import TurnState
from harness.errors import ContextOverflow, ModelError
from harness.hooks.events import (
    PostReasoning,
    PostSummary,
    PreReasoning,
    PreSummary,
    ReasoningChunk,
    SummaryChunk,
    SystemPart,
)
from harness.messages import Msg, ToolUse
from harness.models.base import Chunk, Model, ModelRequest, TextDelta, ThinkingDelta, ToolCallDelta, ToolSpec
from harness.sessions.view.prefix import PrefixWatch
from harness.text import clean_text, error_text
from harness.tools import ActiveToolGroups

__all__ = ["reason", "summarise"]

_LIMIT_INSTRUCTION = (
    "You have reached the limit of steps for this request. Do not call tools any more. "
    "Say what was done, what was found, and what is left to do."
)

A = TypeVar("A", PostReasoning, PostSummary)

_LIMIT_REPLY = "I have reached the limit of steps for this request."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What a request shows beside the conversation, and where its chunks go."""

    system: tuple[SystemPart, ...]
    tools: tuple[ToolSpec, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    chunks: type[ReasoningChunk] = ReasoningChunk


async def reason(state: TurnState, step: int) -> Msg:
    """Ask the model once, and commit its answer. Raises `ModelError` when no model gives one."""
    await state.journal_steering()
    await choose(state, state.models[0], state.system, _tools(state))
    event = await state.ask(
        PreReasoning(
            scope=state.scope,
            turn_id=state.turn_id,
            step=step,
            messages=state.journal.messages_for(*_target(state)),
            system=state.system,
            tools=_tools(state),
            options=state.config.model_options,
        )
    )
    await state.log_messages([addition.cleaned() for addition in event.additions], via="hook")
    plan = _Plan(system=state.journal.shown(event.system), tools=event.tools, options=event.options)
    outcome = await _request(state, plan)
    done = await _asked(state, plan, outcome, PostReasoning(**state.place(), message=_own(state, outcome)))
    state.stopped = state.stopped or done.stop
    return await _commit(state, done.message.cleaned(), outcome)


async def summarise(state: TurnState, step: int) -> Msg:
    """The closing request at the step limit: no tools, one instruction; its answer is the reply."""
    await choose(state, state.models[0], state.system, _tools(state))
    event = await state.ask(
        PreSummary(
            scope=state.scope,
            turn_id=state.turn_id,
            step=step,
            messages=state.journal.messages_for(*_target(state)),
            system=state.system,
            options=state.config.model_options,
            instruction=_LIMIT_INSTRUCTION,
        )
    )
    await state.journal_steering(last=True)
    state.journal.add(Msg.user(event.instruction).cleaned(), via="hook", turn=state.turn_id)
    # The tools stay declared: providers refuse a history of calls to tools they are not told of.
    system = state.journal.shown(event.system)
    plan = _Plan(system=system, tools=_tools(state), options=event.options, chunks=SummaryChunk)
    outcome = await _request(state, plan)
    reply = _without_calls(_own(state, outcome))
    done = await _asked(state, plan, outcome, PostSummary(**state.place(), message=reply))
    return await _commit(state, done.message.cleaned(), outcome)


async def _asked(state: TurnState, plan: _Plan, outcome: Outcome, event: A) -> A:
    """What the hooks make of an answer. Where they refuse it, it is none: its text is kept as partial."""

    def signed(changed: A) -> A:
        made = {"provider": outcome.model.provider, "model": outcome.model.name}
        message = changed.message if changed.message.provider else changed.message.with_changes(**made)
        message = state.journal.own(message)  # a hook may answer with the same object every time
        return changed if message is changed.message else changed.change(message=message)

    try:
        return await state.ask(event, signed)
    except BaseException as error:
        outcome.attempts[-1].usage = outcome.message.usage  # it was given, and refused
        await _Logged(state, plan).failed(error, outcome.attempts)
        raise


async def _commit(state: TurnState, message: Msg, outcome: Outcome) -> Msg:
    """Log the answer and the end of its request. A last answer is committed with the turn's states."""
    try:
        await state.log_messages([message], via="model", request=state.request_id)
    finally:
        _end(state, "completed", outcome.attempts, message)
    if message.usage is not None:
        state.usage = message.usage if state.usage is None else state.usage + message.usage
    if message.tool_uses and not state.stopped:
        await state.journal.commit(sync=True)
    else:
        await state.commit_reply(message, _outcome(state, message))
    return message


def _outcome(state: TurnState, message: Msg) -> str | None:
    """How the turn ends with this answer; None where it goes on for somebody who spoke meanwhile."""
    if state.stopped:
        return "stopped"
    if (message.meta or {}).get("stepLimit"):
        return "step_limit"
    return "completed" if state.call.end_steering() else None


def _end(state: TurnState, status: str, attempts: Sequence[Attempt], answer: Msg | None = None) -> None:
    if state.request_id is None:
        return
    state.journal.end_request(
        state.request_id,
        status,
        turn=state.turn_id,
        attempts=[attempt.to_dict() for attempt in attempts],
        stop=answer.stop if answer else None,
        usage=answer.usage if answer else None,
        prefix_digest=state.prefix_digest if answer else None,
    )


async def _request(state: TurnState, plan: _Plan) -> Outcome:
    requester = Requester(state.models, RequestLimits(state.config.retry, state.config.model_timeout))

    def make(_model: Model, messages: Sequence[Msg]) -> ModelRequest:
        return ModelRequest(
            messages=tuple(messages),
            system="\n\n".join(part.text for part in plan.system if part.text),
            tools=plan.tools,
            options=plan.options,
            load_media=state.journal.load_media,
        )

    return await requester.ask(_Logged(state, plan), make)


class _Logged:
    """Writes a request's life into the ledger and onto the event stream."""

    def __init__(self, state: TurnState, plan: _Plan) -> None:
        self._state = state
        self._plan = plan
        self._model: Model | None = None
        self._shrunk: Model | None = None

    async def begin(self, model: Model, ordinal: int) -> Sequence[Msg]:
        state, plan = self._state, self._plan
        self._model = model
        tokens = await choose(state, model, plan.system, plan.tools)
        messages = state.journal.messages_for(model.provider, model.name)
        state.request_id = state.journal.begin_request(
            purpose="execute",
            attempt=ordinal,
            system=plan.system,
            tools=plan.tools,
            options=plan.options,
            provider=model.provider,
            model=model.name,
            turn=state.turn_id,
            messages=messages,
            tokens=tokens,
        )
        self._note_prefix()
        await state.journal.commit(sync=False)
        return messages

    def _note_prefix(self) -> None:
        """A request that does not begin as the one before costs more; the ledger says what made it so."""
        state, request_id = self._state, self._state.request_id
        if request_id is None:
            return
        prefix = state.journal.prefix_of(state.scope.get(PrefixWatch), request_id)
        state.prefix_digest = prefix.digest
        if prefix.cause is not None:
            state.journal.event("prefix_changed", {"cause": prefix.cause}, turn=state.turn_id, request=request_id)

    async def chunk(self, chunk: Chunk) -> None:
        event = _chunk_event(self._state, self._plan.chunks, chunk)
        if event is not None:
            await self._state.tell(event)

    async def retry(self, model: Model, error: ModelError, delay: float, attempt: int) -> None:
        name, text = f"{model.provider}:{model.name}", error_text(error)
        details = {"model": name, "error": text, "attempt": attempt, "seconds": delay}
        await self._state.notice("retry", details)

    async def fallback(self, model: Model, error: ModelError, following: Model) -> None:
        details = {
            "from": f"{model.provider}:{model.name}",
            "to": f"{following.provider}:{following.name}",
            "error": error_text(error),
        }
        await self._state.notice("fallback", details)

    async def overflow(self, model: Model, error: ContextOverflow) -> bool:
        self._shrunk = model
        return await make_room(self._state, self._plan.system, self._plan.tools, model, error)

    async def failed(self, error: BaseException, attempts: Sequence[Attempt]) -> None:
        if isinstance(error, ContextOverflow) and self._model and self._shrunk is self._model:
            await refused_again(self._state, self._plan.system, self._plan.tools, self._model, error)
        text = attempts[-1].text
        if text:
            partial = Msg.assistant(text).cleaned()
            state = self._state
            state.journal.add(partial, via="model", turn=state.turn_id, request=state.request_id, partial=True)
        _end(self._state, status_of(error), attempts)


def _chunk_event(state: TurnState, kind: type[ReasoningChunk], chunk: Chunk) -> ReasoningChunk | None:
    place = state.place()
    match chunk:
        case TextDelta(text):
            return kind(**place, text=clean_text(text)) if text else None
        case ThinkingDelta(text):
            return kind(**place, thinking=clean_text(text)) if text else None
        case ToolCallDelta(id=call_id, name=name, arguments=arguments):
            use = {"id": call_id, "name": name, "arguments": arguments}
            return kind(**place, tool_use={key: clean_text(text) for key, text in use.items()})
        case _:
            return None


def _own(state: TurnState, outcome: Outcome) -> Msg:
    """The answer as this session keeps it: who made it, and ids of its own for the message and each call."""
    message = state.journal.own(outcome.message.cleaned())
    seen: set[str] = set()
    blocks = [_with_own_id(block, seen) if isinstance(block, ToolUse) else block for block in message.blocks]
    return message.with_changes(
        role="assistant", blocks=blocks, model=outcome.model.name, provider=outcome.model.provider
    )


def _with_own_id(use: ToolUse, seen: set[str]) -> ToolUse:
    """Some providers repeat ids within one answer; results could not tell such calls apart."""
    own, n = use.id or use.name, 1
    while own in seen:
        n += 1
        own = f"{use.id or use.name}#{n}"
    seen.add(own)
    return use if own == use.id else use.model_copy(update={"id": own})


def _without_calls(message: Msg) -> Msg:
    kept = [block for block in message.blocks if not isinstance(block, ToolUse)]
    meta = {**(message.meta or {}), "stepLimit": True}
    return message.with_changes(blocks=kept or [_LIMIT_REPLY], meta=meta)


def _target(state: TurnState) -> tuple[str, str]:
    return state.models[0].provider, state.models[0].name


def _tools(state: TurnState) -> tuple[ToolSpec, ...]:
    groups = state.scope.find(ActiveToolGroups)
    return state.config.toolkit.specs(None if groups is None else groups.active)
