"""One turn, from a directive to its reply, step by step.

The loop asks for a step, does it, and is given the next one as a value. The ledger is written by the
loop itself; what hooks do cannot keep it from being written.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from harness.agent import acting, answering
from harness.agent.meta import AgentMeta
from harness.agent.steps import Act, Finish, Reason, Step, Summarise
from harness.agent.turnstate import TurnState
from harness.errors import HookError
from harness.hooks.events import Error, PostCall, PreCall, SystemPart
from harness.hooks.uninterrupted import is_being_cancelled, uninterrupted
from harness.messages import Msg

__all__ = ["run_turn"]


async def run_turn(state: TurnState, messages: Sequence[Msg], idempotency_key: str | None) -> Msg:
    """The reply to these messages. Raises what ended the turn early, after logging how far it came."""
    try:
        await _open(state, messages, idempotency_key)
        step: Step = Reason(1)
        while not isinstance(step, Finish):
            if is_being_cancelled():
                raise asyncio.CancelledError  # a hook or a model has kept to itself that the call was stopped
            step = await _next(state, step)
        await state.journal_steering(last=True)  # left over where a hook has ended the turn
    except BaseException as error:
        await _end_early(state, state.call.ending(error))
        raise
    await state.tell(PostCall(scope=state.scope, turn_id=state.turn_id, message=step.message))
    return step.message


async def _end_early(state: TurnState, ending: BaseException) -> None:
    """Log how far the turn came, and tell it. How it ends is decided: a cancellation that comes now changes nothing."""
    with contextlib.suppress(asyncio.CancelledError):
        await uninterrupted(state.close_early(ending))
    with contextlib.suppress(asyncio.CancelledError):
        await state.tell(Error(**state.place(), error=ending))


async def _open(state: TurnState, messages: Sequence[Msg], idempotency_key: str | None) -> None:
    prompt = state.config.system_prompt
    own = (SystemPart("prompt", prompt),) if prompt else ()
    before = event = PreCall(scope=state.scope, messages=tuple(messages), system=own)
    try:
        event = await state.ask(event)
        if not event.messages:
            raise HookError("hooks on PreCall left nothing to say; keep a message, or raise to refuse the call")
    except BaseException:
        # What a person said is kept, whatever a hook makes of it.
        await state.open_turn(messages, idempotency_key)
        raise
    state.system = event.system
    await state.open_turn(event.messages, idempotency_key)
    state.note_replaced(before, event)
    for kind, details in state.scope.get(AgentMeta).changes():
        await state.notice(kind, details)
    for text in () if state.resumed else event.context:
        state.journal.add(Msg.user(text).cleaned(), via="hook", turn=state.turn_id)


async def _next(state: TurnState, step: Reason | Act | Summarise) -> Step:
    match step:
        case Reason():
            return await _after_reasoning(state, step, await answering.reason(state, step.number))
        case Act():
            await acting.run_tools(state, step.message)
            return await _after_acting(state, step)
        case Summarise():
            return Finish(await answering.summarise(state, step.number))


async def _after_reasoning(state: TurnState, step: Reason, message: Msg) -> Step:
    if state.stopped:
        return Finish(message)
    if message.tool_uses:
        return Act(message, step.number + 1)
    # Somebody may have spoken to the turn while its last answer was made.
    return Finish(message) if state.call.end_steering() else _reason_or_summarise(state, step.number + 1)


async def _after_acting(state: TurnState, step: Act) -> Step:
    if state.stopped:
        await state.commit_reply(step.message, "stopped")
        return Finish(step.message)
    return _reason_or_summarise(state, step.number)


def _reason_or_summarise(state: TurnState, number: int) -> Step:
    return Reason(number) if number <= state.config.max_steps else Summarise(number)
