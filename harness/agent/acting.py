"""The acting part of a turn: tools run side by side, each result is logged as soon as it is there."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from harness.agent.turnstate import TurnState
from harness.hooks.events import ActingChunk, PostActing, PreActing
from harness.hooks.uninterrupted import stop_all
from harness.messages import Msg, ToolResult
from harness.tools import ToolCall

__all__ = ["run_tools"]


async def run_tools(state: TurnState, message: Msg) -> None:
    """Run the tools this committed message asks for.

    Hooks are asked call by call, in order, before any tool starts. Results are logged in the order
    they come, so that a crash costs none that was there; the model is shown them in call order.
    """
    prepared = [await _prepare(state, PreActing(**state.place(), tool_use=use)) for use in message.tool_uses]
    logging_turn = asyncio.Lock()
    tasks = [asyncio.ensure_future(_execute(state, event, logging_turn)) for event in prepared]
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        await stop_all(tasks)  # none may write into a session that the call has given back
        raise


async def _prepare(state: TurnState, event: PreActing) -> PreActing:
    own = event.tool_use.model_copy(deep=True)  # what hooks and the tool edit in place is not what the model has said
    changed = await state.ask(replace(event, tool_use=own))
    if changed.tool_use == event.tool_use:
        return changed
    # The call keeps its id, so that its result finds it; what runs instead is noted beside it.
    use = changed.tool_use.model_copy(update={"id": event.tool_use.id})
    state.journal.event("replace", {"toolUse": use.to_dict()}, turn=state.turn_id, request=state.request_id)
    return changed.change(tool_use=use)


async def _execute(state: TurnState, event: PreActing, one_at_a_time: asyncio.Lock) -> None:
    result = event.result if event.result is not None else await _run(state, event)
    async with one_at_a_time:
        done = await state.ask(PostActing(**state.place(), tool_use=event.tool_use, result=result))
        state.stopped = state.stopped or done.stop
        await _log(state, event, done.result)


async def _run(state: TurnState, event: PreActing) -> ToolResult:
    use = event.tool_use
    pieces: list[asyncio.Task[None]] = []

    def emit(text: str) -> None:
        chunk = ActingChunk(**state.place(), tool_use=use, text=text)
        pieces.append(asyncio.ensure_future(state.tell(chunk)))

    call = ToolCall(id=use.id, name=use.name, input=use.input)
    try:
        result = await state.config.toolkit.run(call, state.scope, emit, state.config.tool_timeout)
        await asyncio.gather(*pieces)
    except BaseException:
        await stop_all(pieces)
        raise
    return result


async def _log(state: TurnState, event: PreActing, result: ToolResult) -> None:
    own = result.model_copy(update={"id": event.tool_use.id, "name": event.tool_use.name})
    await state.log_messages([Msg.tool(own).cleaned()], via="tool", request=state.request_id)
    await state.journal.commit(sync=False)
